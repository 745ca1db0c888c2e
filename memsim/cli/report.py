"""`memsim report`: everything about a launch as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memsim.analysis import Analysis
from memsim.cli.launch_options import analysis_of, analyze_target, job_of, target_options
from memsim.cli.options import file_option
from memsim.cli.output import PAGE
from memsim.cli.untrusted import allow_named
from memsim.data import data_folder
from memsim.errors import MemsimError
from memsim.files import write_text
from memsim.job import Job
from memsim.kernels import Spec
from memsim.views.report import Recorded, report_page


@click.command()
@target_options
@click.option(
    "--compare",
    metavar="OTHER",
    callback=allow_named,
    help="A second TARGET: the page also shows what is different, TARGET before and OTHER after.",
)
@file_option("--output", "-o", required=True, help="Write to FILE, an .html file.")
@click.pass_context
def report(ctx: click.Context, /, target: str, compare: str | None, output: Path, **launch: Any) -> None:
    """Writes an HTML report on a launch.

    It shows the cost of each access and its share of the total, what would help, the source next to the
    machine code, requests lane by lane, the bank heatmap, the layouts of shared arrays and the data flow.
    The page works offline. If the launch was recorded on a GPU, measured counters are shown next to the
    predicted ones.

    TARGET and its options are the same as for `memsim analyze`.

    \b
    Examples:
      memsim report kernel_v4_colmajor -o report.html
      memsim report kernel_v4_colmajor --compare kernel_v4 -o before-and-after.html
    """
    if output.suffix != PAGE:
        raise MemsimError(
            "a report must be an .html file", file=str(output), hint=f"name it {output.stem}{PAGE}"
        )
    job = job_of(ctx, target)
    analysis = analysis_of(ctx, target, job)
    after = None if compare is None else analyze_target(ctx, compare, beside=True)
    page = report_page(analysis, _recorded(analysis, job), after=after)
    write_text(output, page, "the page")


def _recorded(analysis: Analysis, job: Job) -> Recorded | str:
    """The newest recording of the same launch, compared; or why there is none."""
    if not isinstance(job.kernel, Spec):
        return "only catalogue kernels have recordings"
    if analysis.trace.blocks_replayed < analysis.trace.launch.blocks:
        return "recordings cover all blocks"
    from memsim.validate.code_recording import newest_code, replay

    try:
        recording = newest_code(data_folder("traces"), job.kernel, tuple(job.size.values()))
        comparison = replay(recording)
    except MemsimError as error:
        return error.message
    return Recorded(
        where=f"{recording.device.gpu}, Nsight Compute {recording.ncu}, {recording.date}",
        counters={figure.metric: (figure.measured, figure.verdict) for figure in comparison.totals},
    )
