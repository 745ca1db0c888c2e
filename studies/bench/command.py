"""`python -m studies.bench`: how fast the SGEMMs are beside cuBLAS, live or from a recording."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from memsim.cli import run
from memsim.cli.options import folder_of_recordings, open_cache, recording_options
from memsim.cli.output import progress_bar, say
from studies.bench import report
from studies.bench.measure import measure_speed
from studies.bench.plan import SIZES, part_of, plan_bench, read_size, sgemm_names, takes
from studies.bench.recording import Size, newest_bench
from studies.bench.table import analyze_kernels, make_rows, unchanged

NAME = "python -m studies.bench"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("kernel", nargs=-1)
@click.option(
    "--size",
    multiple=True,
    metavar="SIZE",
    help="4096 for 4096 cubed, or M,N,K; may be given again. Default with --live: 1024, 2048, 4096, 8192.",
)
@recording_options
@click.pass_context
def bench(
    ctx: click.Context,
    /,
    kernel: tuple[str, ...],
    live: bool,
    record: bool,
    size: tuple[str, ...],
    gpu: str | None,
    as_json: bool,
    traces: Path | None,
) -> None:
    """Sets how fast KERNELs are beside cuBLAS and beside what memsim predicts for them.

    Without KERNEL it is every SGEMM of the catalogue that takes the sizes. Without --live it shows the newest
    recording. With --live it checks every product against float64 and times the kernels and cuBLAS (float32,
    no TF32) by CUDA events in the same run; that needs a GPU, CuPy and cuBLAS.

    Exit code 1 if a kernel computes something wrong.

    \b
    Examples:
      python -m studies.bench
      python -m studies.bench kernel_v4 kernel_v5 --live --size 4096
      python -m studies.bench --live --record
    """
    folder = folder_of_recordings(ctx, live, record, gpu, traces)
    sizes = [read_size(text) for text in size]
    if live:
        plan = plan_bench(kernel or _who_takes(sizes or SIZES), sizes or SIZES)
        with progress_bar("timing") as progress:
            recording = measure_speed(plan, progress)
        if record:
            say(f"recorded: {recording.save(folder)}", err=True)
    else:
        recording = part_of(newest_bench(folder, gpu), kernel, sizes)

    rows = make_rows(recording, analyze_kernels(unchanged(recording), open_cache(False)))
    if as_json:
        click.echo(json.dumps(report.to_dict(recording, rows), indent=2))
    else:
        report.write(recording, rows, sys.stdout)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code; `arguments` default to the process's own."""
    return run(bench, arguments, NAME)


def _who_takes(sizes: Sequence[Size]) -> list[str]:
    """The SGEMMs that take the sizes, and the others are told; all if none does, for the reason."""
    names = sgemm_names()
    taking = [name for name in names if takes(name, sizes)]
    if not taking:
        return names
    if len(taking) < len(names):
        others = ", ".join(name for name in names if name not in taking)
        say(f"left out, as they do not take every size: {others}", err=True)
    return taking
