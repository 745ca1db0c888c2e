"""`memsim report`: everything about a launch as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memsim.analysis import Analysis
from memsim.cli.output import PAGE, output_option
from memsim.cli.target import analyzed, job_of, target_options
from memsim.data import data_folder
from memsim.errors import MemsimError
from memsim.files import write_text
from memsim.job import Job
from memsim.kernels import Spec
from memsim.report.html import Recorded, report_page


@click.command()
@target_options
@output_option("an .html page.", required=True)
@click.pass_context
def report(ctx: click.Context, /, target: str, output: Path, **launch: Any) -> None:
    """Writes a page with all there is to see.

    The source with what each line costs, requests lane by lane, the bank heatmap, the layouts of shared
    arrays, the flow of memory. The page needs no network. Recorded hardware counters stand beside the
    predicted ones where there is a recording of the launch.

    TARGET and its options are those of `memsim analyze`.

    \b
    Example:
      memsim report kernel_v4_colmajor -o report.html
    """
    if output.suffix != PAGE:
        raise MemsimError("a report is a page", file=str(output), hint=f"call it {output.stem}{PAGE}")
    analysis = analyzed(ctx, target)
    write_text(output, report_page(analysis, _recorded(analysis, job_of(ctx, target))), "the page")


def _recorded(analysis: Analysis, job: Job) -> Recorded | str:
    """The newest recording of the same launch, compared; or why there is none."""
    if not isinstance(job.kernel, Spec):
        return "recordings are of catalogue kernels"
    if analysis.trace.blocks_replayed < analysis.trace.launch.blocks:
        return "a recording is of all blocks"
    from memsim.validate.replay import replay
    from memsim.validate.shelf import newest_recording

    try:
        comparison = replay(newest_recording(data_folder("traces"), job.kernel, tuple(job.size.values())))
    except MemsimError as error:
        return error.message
    recording = comparison.recording
    return Recorded(
        where=f"{recording.device.gpu}, Nsight Compute {recording.ncu}, {recording.date}",
        counters={figure.metric: (figure.measured, figure.verdict) for figure in comparison.totals},
    )
