"""`memsim heatmap`: how each shared access uses the 32 banks, in the terminal or as a picture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from memsim.cli.launch_options import analyzed, target_options
from memsim.cli.output import PAGE, output_option, save_figure
from memsim.files import write_text
from memsim.views.heatmap import terminal


@click.command()
@target_options
@click.option("--compare", metavar="OTHER", help="A second TARGET, drawn with the first on the same scales.")
@output_option("a .png, .svg, .pdf or .html. Default: print to the terminal.")
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
    analyses = [analyzed(ctx, target)]
    if compare is not None:
        analyses.append(analyzed(ctx, compare, beside=True))
    if output is None:
        terminal.write(analyses, sys.stdout)
    elif output.suffix == PAGE:
        from memsim.views.heatmap.page import heatmap_page

        write_text(output, heatmap_page(analyses), "the page")
    else:
        save_figure(output, lambda: analyses[0].plot.heatmap(*analyses[1:]))
