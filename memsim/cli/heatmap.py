"""`memsim heatmap`: how each shared access uses the 32 banks, in the terminal or as a picture."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from memsim.analysis import Analysis
from memsim.cli.launch_options import analyze_target, target_options
from memsim.cli.options import PICTURE
from memsim.cli.output import save_picture
from memsim.cli.untrusted import allow_named
from memsim.views.heatmap import terminal
from memsim.views.plot import Plots


@click.command()
@target_options
@click.option(
    "--compare",
    metavar="OTHER",
    callback=allow_named,
    help="A second TARGET, drawn with the first on the same scales.",
)
@PICTURE
@click.pass_context
def heatmap(
    ctx: click.Context, /, target: str, compare: str | None, output: Path | None, **launch: Any
) -> None:
    """Shows how each access to shared memory uses the 32 banks.

    One row per access site, one column per bank. Colour shows how many words the bank serves for one
    request; a number in a cell marks a bank conflict. Bars show the ways, and wavefronts against the
    ideal.

    TARGET and its options are the same as for `memsim analyze`.

    \b
    Examples:
      memsim heatmap kernel_v4_colmajor
      memsim heatmap kernel_v4 --compare kernel_v4_colmajor -o heatmap.png
    """
    analyses = [analyze_target(ctx, target)]
    if compare is not None:
        analyses.append(analyze_target(ctx, compare, beside=True))
    if output is None:
        terminal.write(analyses, sys.stdout)
    else:
        save_picture(output, lambda: _page(analyses), lambda: Plots(analyses[0]).heatmap(*analyses[1:]))


def _page(analyses: Sequence[Analysis]) -> str:
    from memsim.views.report.page import heatmap_page

    return heatmap_page(analyses)
