"""The options that several verbs share, except those that describe a launch, and how a verb takes several."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from memsim.cli.untrusted import UNTRUSTED, allow_named
from memsim.data import data_folder

Command = TypeVar("Command", bound=Callable[..., Any])
Option = Callable[[Callable[..., Any]], Callable[..., Any]]


def with_options(*options: Option) -> Callable[[Command], Command]:
    """Decorates a verb that takes these options; its help lists them in this order."""

    def take(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return take


def file_option(*names: str, **how: Any) -> Option:
    """An option whose value is a file to write."""
    kind = click.Path(path_type=Path, dir_okay=False)
    return click.option(*names, type=kind, metavar="FILE", **how)


def _stands_for(name: str, value: object) -> Callable[[click.Context, click.Parameter, object], None]:
    """An option that gives another one its value, unless that is given itself."""

    def take(ctx: click.Context, option: click.Parameter, given: object) -> None:
        if given in (True, "json"):
            ctx.default_map = {**(ctx.default_map or {}), name: value}

    return take


def format_option(*others: str) -> Option:
    """`--format` with text, JSON and others, and `--json`, which is short for one of them; gives `form`."""
    return with_options(
        click.option(
            "--format", "form", type=click.Choice(["text", *others]), default="text", show_default=True
        ),
        click.option(
            "--json",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            hidden=True,
            callback=_stands_for("form", "json"),
        ),
    )


#: `--json`, and as other verbs have it `--format json`; gives `as_json`.
JSON = with_options(
    click.option("--json", "as_json", is_flag=True, help="Print the results as JSON."),
    click.option(
        "--format",
        type=click.Choice(["text", "json"]),
        is_eager=True,
        expose_value=False,
        hidden=True,
        callback=_stands_for("as_json", True),
    ),
)
NO_CACHE = click.option("--no-cache", is_flag=True, help="Neither read nor write the cache.")


def jobs_option(default: str) -> Option:
    """`--jobs`; default: what it is, in words."""
    return click.option(
        *("--jobs", "-j"),
        type=click.IntRange(1),
        metavar="N",
        help=f"Number of processes. Default: {default}.",
    )


JOBS = jobs_option("one per CPU core")
SCHEDULER = click.option("--scheduler", metavar="ADDRESS", help="Run on the workers of this Dask scheduler.")
CONFIG = click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    callback=allow_named,
    help="Configuration file. Default: the nearest memsim.toml or pyproject.toml.",
)
PICTURE = file_option(
    *("--output", "-o"),
    help="Write to FILE, a .png, .svg, .pdf or .html. Default: print to the terminal.",
)
project_options = with_options(CONFIG, JOBS, NO_CACHE, UNTRUSTED)


recording_options = with_options(
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
