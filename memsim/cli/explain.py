"""`memsim explain`: one request of an access taken apart, lane by lane."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from memsim.analysis import Analysis
from memsim.cli.output import output_option, save_figure, say
from memsim.cli.target import analyzed, target_options
from memsim.details.choose import sites_on_line, worst_site
from memsim.details.request import take_apart
from memsim.report.help import what_would_help
from memsim.report.labels import access
from memsim.report.terminal import request as terminal


@click.command()
@target_options
@click.option("--line", metavar="[FILE:]LINE", help="The access on a source line; the worst of several.")
@click.option("--site", type=click.IntRange(0), metavar="N", help="The access with that number in a heatmap.")
@output_option(".png, .svg or .pdf; the terminal if left out.")
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
    """Takes one request apart: what each lane asks for, and what happens to it.

    For shared memory: the lanes by the banks, the wavefront that serves each lane, the rule that grouped
    them, the words that collide, the conflict graph. For global memory: the sectors of each 128-byte line,
    the bytes that are used, and what coalescing would need. It is the worst request of the access that
    --line or --site names, or of the worst access: the one with most conflicts, then with most sectors that
    nobody needs, then with most wavefronts above the ideal.

    TARGET and its options are those of `memsim analyze`.

    \b
    Examples:
      memsim explain kernel_v4_colmajor
      memsim explain kernel_v4 --line 55
      memsim explain kernel_v1 --site 0 -o scattered.svg
    """
    if line is not None and site is not None:
        raise click.UsageError("--line and --site both choose the access; give one", ctx)
    analysis = analyzed(ctx, target)
    number, others = _choose(analysis, line, site)
    if output is not None:
        save_figure(output, lambda: analysis.plot.lanes(number))
        return
    terminal.write(take_apart(analysis, number), sys.stdout)
    for line in what_would_help(analysis, number):
        click.echo(line)
    for other in others:
        say(f"Also on this line: --site {other}, {access(analysis.sites[other])}")


def _choose(analysis: Analysis, line: str | None, site: int | None) -> tuple[int, list[int]]:
    """The row to explain, and the others on the same line."""
    if line is not None:
        first, *others = sites_on_line(analysis, line)
        return first, others
    return worst_site(analysis) if site is None else site, []
