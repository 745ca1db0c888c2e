"""`memsim bench`: how fast the SGEMMs are beside cuBLAS, live or from a recording."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from memsim.cli.progress import progress_bar
from memsim.cli.project import open_cache
from memsim.data import data_folder
from memsim.report import bench as report
from memsim.validate.bench.measure import measure_speed
from memsim.validate.bench.plan import SIZES, part_of, plan_bench, read_size, sgemm_names
from memsim.validate.bench.recording import newest_bench
from memsim.validate.bench.table import analyze_kernels, make_rows, unchanged


@click.command()
@click.argument("kernel", nargs=-1)
@click.option("--live", is_flag=True, help="Measure now, on this machine's GPU.")
@click.option("--record", is_flag=True, help="Keep what --live measured as a new recording.")
@click.option(
    "--size",
    multiple=True,
    metavar="SIZE",
    help="4096 for 4096 cubed, or M,N,K; may be given again. Default with --live: 1024, 2048, 4096, 8192.",
)
@click.option("--gpu", metavar="NAME", help="Only recordings made on it: a folder of the recordings.")
@click.option("--json", "as_json", is_flag=True, help="Print the same records as JSON.")
@click.option(
    "--traces",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Where recordings are read and written, instead of those that ship with memsim.",
)
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

    Without KERNEL it is every SGEMM of the catalogue. Without --live it shows the newest recording. With
    --live it checks every product against cuBLAS and times the kernels and cuBLAS (float32, no TF32) by CUDA
    events in the same run; that needs a GPU, CuPy and cuBLAS.

    Exits with 1 if a kernel computes something wrong.

    \b
    Examples:
      memsim bench
      memsim bench kernel_v4 kernel_v5 --live --size 4096
      memsim bench --live --record
    """
    if record and not live:
        raise click.UsageError("--record makes no sense without --live", ctx)
    if gpu and live:
        raise click.UsageError(
            "--gpu chooses among recordings, and --live measures on this machine's GPU", ctx
        )
    folder = traces or data_folder("traces")
    sizes = [read_size(text) for text in size]
    if live:
        plan = plan_bench(kernel or sgemm_names(), sizes or SIZES)
        with progress_bar("timing") as progress:
            recording = measure_speed(plan, progress)
        if record:
            click.echo(f"recorded: {recording.save(folder)}", err=True)
    else:
        recording = part_of(newest_bench(folder, gpu), kernel, sizes)

    rows = make_rows(recording, analyze_kernels(unchanged(recording), open_cache(False)))
    if as_json:
        click.echo(json.dumps(report.to_dict(recording, rows), indent=2))
    else:
        report.write(recording, rows, sys.stdout)
