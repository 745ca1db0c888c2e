"""Options of the commands that measure on a GPU, or show what was recorded on one.

In: options of a command line. Out: the folder of recordings, once they fit together.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from memsim.data import data_folder

Command = TypeVar("Command", bound=Callable[..., object])

OPTIONS = (
    click.option("--live", is_flag=True, help="Measure now, on this machine's GPU."),
    click.option("--record", is_flag=True, help="Keep what --live measured as a new recording."),
    click.option("--gpu", metavar="NAME", help="Only recordings made on it: a folder of the recordings."),
    click.option("--json", "as_json", is_flag=True, help="Print the same records as JSON."),
    click.option(
        "--traces",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="FOLDER",
        help="Where recordings are read and written, instead of those that ship with memsim.",
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
        raise click.UsageError("--record makes no sense without --live", ctx)
    if gpu and live:
        raise click.UsageError(
            "--gpu chooses among recordings, and --live measures on this machine's GPU", ctx
        )
    return traces or data_folder("traces")
