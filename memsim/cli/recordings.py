"""Options of the commands that measure on a GPU, or show what was recorded on one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from memsim.data import data_folder

Command = TypeVar("Command", bound=Callable[..., object])

OPTIONS = (
    click.option("--live", is_flag=True, help="Measure on this machine's GPU."),
    click.option("--record", is_flag=True, help="Save the --live measurement as a new recording."),
    click.option(
        "--gpu",
        metavar="NAME",
        help="Use only recordings made on this GPU (a folder name in the recordings).",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the results as JSON."),
    click.option(
        "--traces",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="FOLDER",
        help="Folder to read and write recordings. Default: the recordings that ship with memsim.",
    ),
)


def recording_options(command: Command) -> Command:
    """--live, --record, --gpu, --json and --traces."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


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
