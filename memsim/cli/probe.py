"""`memsim probe`: for which instructions the model's rules hold on a GPU."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from memsim.cli.progress import progress_bar
from memsim.data import data_folder
from memsim.report import probe as report
from memsim.validate.probe.judge import judge_probe
from memsim.validate.probe.measure import run_probe
from memsim.validate.probe.recording import newest_probe

FAILED = 1


@click.command()
@click.option("--live", is_flag=True, help="Measure now, on this machine's GPU, with Nsight Compute.")
@click.option("--record", is_flag=True, help="Keep what --live measured as a new recording.")
@click.option("--gpu", metavar="NAME", help="Only recordings made on it: a folder of the recordings.")
@click.option("--json", "as_json", is_flag=True, help="Print the same records as JSON.")
@click.option(
    "--traces",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Where recordings are read and written, instead of those that ship with memsim.",
)
@click.pass_context
def probe(
    ctx: click.Context, /, live: bool, record: bool, gpu: str | None, as_json: bool, traces: Path | None
) -> None:
    """Tells for which instructions the model's rules hold on a GPU.

    One warp executes one instruction for each of thousands of address patterns, and every count is
    compared with the prediction. Without --live, it is the newest recording that is compared.

    Exits with 1 if a rule does not hold.
    """
    if record and not live:
        raise click.UsageError("--record makes no sense without --live", ctx)
    if gpu and live:
        raise click.UsageError("--gpu chooses among recordings, and --live measures this GPU", ctx)
    folder = traces or data_folder("traces")
    if live:
        with progress_bar("probing") as progress:
            recording = run_probe(progress)
        if record:
            click.echo(f"recorded: {recording.save(folder)}", err=True)
    else:
        recording = newest_probe(folder, gpu)

    found = judge_probe(recording)
    if as_json:
        click.echo(json.dumps(report.to_dict(recording, found), indent=2))
    else:
        report.write(recording, found, sys.stdout)
    ctx.exit(0 if all(held.holds for held in found) else FAILED)
