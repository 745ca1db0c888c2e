"""`memsim heatmap`, `memsim explain`, `memsim report`: a launch drawn: banks, a request, all on a page."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import click

from memsim.analysis import Analysis
from memsim.cli.launch_options import analysis_of, analyze_target, job_of, target_options
from memsim.cli.options import JSON, PICTURE, UNNAMED, allow_named, output_option
from memsim.cli.output import PAGE, echo_json, free_path, save_picture, say, say_written
from memsim.data import data_folder
from memsim.errors import MemsimError
from memsim.files import write_text
from memsim.job import Job
from memsim.kernels import Spec
from memsim.pictures.worst_request import take_apart
from memsim.views.analyze.costs import choose_sites
from memsim.views.explain.request_text import request_document
from memsim.views.explain.request_text import write as write_request
from memsim.views.heatmap.heat_rows import heatmap_document
from memsim.views.heatmap.heat_rows import write as write_heatmap
from memsim.views.labels import access
from memsim.views.plot import Plots
from memsim.views.suggest.advice import what_would_help

if TYPE_CHECKING:
    from memsim.views.report.page import Recorded


@click.command()
@target_options
@click.option(
    "--compare",
    metavar="OTHER",
    callback=allow_named,
    help="A second TARGET, drawn with the first on the same scales.",
)
@PICTURE
@JSON
@click.pass_context
def heatmap(
    ctx: click.Context, /, target: str, compare: str | None, output: Path | None, as_json: bool, **_: object
) -> None:
    """Shows how each access to shared memory uses the 32 banks.

    One row per access site, one column per bank. Colour shows how many words the bank serves for one
    request; a number in a cell marks a bank conflict. A row ends with its ways, and its wavefronts
    beside the ideal.

    TARGET and its options are the same as for `memsim analyze`.

    \b
    Examples:
      memsim heatmap kernel_v4_colmajor
      memsim heatmap kernel_v4 --compare kernel_v4_colmajor -o heatmap.png
    """
    analyses = [analyze_target(ctx, target)]
    if compare is not None:
        analyses.append(analyze_target(ctx, compare, beside=True))
    if output is not None:
        name, plots = f"{analyses[0].trace.kernel}-heatmap", Plots(analyses[0])
        page, draw = lambda: pages().heatmap_page(analyses), lambda: plots.heatmap(*analyses[1:])
        save_picture(output, name, page, draw, err=as_json)
    if as_json:
        echo_json(heatmap_document(analyses))
    elif output is None:
        write_heatmap(analyses, sys.stdout)


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
@JSON
@click.pass_context
def explain(
    ctx: click.Context,
    /,
    target: str,
    line: str | None,
    site: int | None,
    output: Path | None,
    as_json: bool,
    **_: object,
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
        name = f"{analysis.trace.kernel}-request-{number}"
        page, draw = lambda: pages().request_page(analysis, number), lambda: Plots(analysis).lanes(number)
        save_picture(output, name, page, draw, err=as_json)
    if as_json:
        echo_json(request_document(analysis.trace.kernel, take_apart(analysis, number)))
    elif output is None:
        write_request(take_apart(analysis, number), sys.stdout)
        for line in what_would_help(analysis, number):
            say(line)
        for other in others:
            say(f"Also on this line: --site {other}, {access(analysis.sites[other])}")


@click.command()
@target_options
@click.option(
    "--compare",
    metavar="OTHER",
    callback=allow_named,
    help="A second TARGET: the page also shows what is different, TARGET before and OTHER after.",
)
@output_option("--output", "-o", help="Write to FILE, an .html file. Default: named after the kernel.")
@JSON
@click.pass_context
def report(
    ctx: click.Context, /, target: str, compare: str | None, output: Path | None, as_json: bool, **_: object
) -> None:
    """Writes an HTML report on a launch.

    It shows the cost of each access and its share of the total, what would help, the source next to the
    machine code, requests lane by lane, the bank heatmap, the layouts of shared arrays and the data flow.
    The page works offline. If the launch was recorded on a GPU, measured counters are shown next to the
    predicted ones.

    TARGET and its options are the same as for `memsim analyze`.

    \b
    Examples:
      memsim report kernel_v4_colmajor
      memsim report kernel_v4_colmajor --compare kernel_v4 -o before-and-after.html
    """
    if output == UNNAMED:
        output = None  # which is the same here
    if output is not None and output.suffix != PAGE:
        raise MemsimError(
            "a report must be an .html file", file=str(output), hint=f"name it {output.stem}{PAGE}"
        )
    job = job_of(ctx, target)
    analysis = analysis_of(ctx, target, job, with_time=True)
    after = None if compare is None else analyze_target(ctx, compare, beside=True, with_time=True)
    page = pages().report_page(analysis, _recorded(analysis, job), after=after)
    path = output or free_path(analysis.trace.kernel, PAGE)
    write_text(path, page, "the page")
    if as_json or output is None:
        say_written(f"written: {path}", [path], as_json=as_json)


def pages() -> ModuleType:
    """What makes pages; no other verb waits for it."""
    from memsim.views.report import page

    return page


def _recorded(analysis: Analysis, job: Job) -> Recorded | str:
    """The newest recording of the same launch, compared; or why there is none."""
    if not isinstance(job.kernel, Spec):
        return "only catalogue kernels have recordings"
    if analysis.trace.blocks_replayed < analysis.trace.launch.blocks:
        return "recordings cover all blocks"
    from memsim.validate.code_recording import newest_code, replay

    try:
        recording = newest_code(data_folder("traces"), job.kernel, tuple(job.size.values()))
        origin = analysis.trace.origin
        is_same = origin is not None and origin.digest == recording.code.digest
        comparison = replay(recording, analysis if is_same else None)
    except MemsimError as error:
        return error.message
    from memsim.views.report.page import Recorded

    return Recorded(
        where=f"{recording.device.gpu}, Nsight Compute {recording.ncu}, {recording.date}",
        counters={figure.metric: (figure.measured, figure.verdict) for figure in comparison.totals},
    )
