"""`memsim explain`: one request of an access taken apart, lane by lane."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from memsim.analysis import Analysis
from memsim.cli.launch_options import analyze_target, target_options
from memsim.cli.options import PICTURE
from memsim.cli.output import save_picture, say
from memsim.pictures.worst_request import take_apart
from memsim.views.analyze.costs import choose_sites
from memsim.views.explain import terminal
from memsim.views.labels import access
from memsim.views.plot import Plots
from memsim.views.suggest.advice import what_would_help


@click.command()
@target_options
@click.option(
    "--line",
    metavar="[FILE:]LINE",
    help="Explain the access on this source line; the worst one if there are several.",
)
@click.option(
    "--site", type=click.IntRange(0), metavar="N", help="Explain the access with this number in the heatmap."
)
@PICTURE
@click.pass_context
def explain(
    ctx: click.Context,
    /,
    target: str,
    line: str | None,
    site: int | None,
    output: Path | None,
    **launch: Any,
) -> None:
    """Explains one request: what each lane accesses and how the hardware serves it.

    For shared memory: each lane's bank and wavefront, the rule that groups the lanes, the words that
    collide, and the conflict graph. For global memory: the sectors of each 128-byte line, the bytes
    used, and what a coalesced access would need. Shows the worst request of the access chosen with
    --line or --site, by default of the worst access: most conflicts, then most unneeded sectors, then
    most wavefronts above the ideal.

    TARGET and its options are the same as for `memsim analyze`.

    \b
    Examples:
      memsim explain kernel_v4_colmajor
      memsim explain kernel_v4 --line 55
      memsim explain kernel_v1 --site 0 -o scattered.svg
    """
    if line is not None and site is not None:
        raise click.UsageError("--line and --site both select the access; give only one", ctx)
    analysis = analyze_target(ctx, target)
    number, *others = choose_sites(analysis, line, site)
    if output is not None:
        save_picture(output, lambda: _page(analysis, number), lambda: Plots(analysis).lanes(number))
        return
    terminal.write(take_apart(analysis, number), sys.stdout)
    for line in what_would_help(analysis, number):
        say(line)
    for other in others:
        say(f"Also on this line: --site {other}, {access(analysis.sites[other])}")


def _page(analysis: Analysis, number: int) -> str:
    from memsim.views.report.page import request_page

    return request_page(analysis, number)
