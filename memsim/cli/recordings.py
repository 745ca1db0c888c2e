"""Options of the commands that measure on a GPU, or show what was recorded on one."""

from __future__ import annotations

from pathlib import Path

import click

from memsim.cli.options import JSON, taking
from memsim.data import data_folder

recording_options = taking(
    click.option("--live", is_flag=True, help="Measure on this machine's GPU."),
    click.option("--record", is_flag=True, help="Save the --live measurement as a new recording."),
    click.option(
        "--gpu",
        metavar="NAME",
        help="Use only recordings made on this GPU (a folder name in the recordings).",
    ),
    JSON,
    click.option(
        "--traces",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="FOLDER",
        help="Folder to read and write recordings. Default: the recordings that ship with memsim.",
    ),
)


def folder_of_recordings(
    ctx: click.Context, live: bool, record: bool, gpu: str | None, traces: Path | None
) -> Path:
    """Where recordings are.

    Raises:
        click.UsageError: options that make no sense together.
    """
    if record and not live:
        raise click.UsageError("--record needs --live", ctx)
    if gpu and live:
        raise click.UsageError(
            "--gpu selects among recordings, but --live measures on this machine's GPU", ctx
        )
    return traces or data_folder("traces")
