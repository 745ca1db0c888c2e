"""The options that several verbs share, except those that describe a launch; and the project, the cache and
the trust that they ask for.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memsim.boundary import allow, boundary_of, confine, confinement, project_of
from memsim.data import data_folder
from memsim.errors import MemsimError
from memsim.store import cache_folder

if TYPE_CHECKING:
    from memsim.targets.project import Project


Command = TypeVar("Command", bound=Callable[..., object])
Option = Callable[[Callable[..., object]], Callable[..., object]]


def with_options(*options: Option) -> Callable[[Command], Command]:
    """Decorates a verb that takes these options; its help lists them in this order."""

    def take(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return take


def when_asked(do: Callable[[], None]) -> Callable[[click.Context, click.Parameter, bool], None]:
    """The callback of a flag that does something as soon as it is read."""
    return lambda ctx, option, asked: None if not asked or ctx.resilient_parsing else do()


#: The value of `-o` without a file: the verb has a name for it.
UNNAMED = Path("?")


def file_option(*names: str, **how: Any) -> Option:
    """An option whose value is a file to write."""
    kind = click.Path(path_type=Path, dir_okay=False)
    return click.option(*names, type=kind, **{"metavar": "FILE", **how})


def output_option(*names: str, **how: Any) -> Option:
    """One whose file may be left out; gives `UNNAMED` then."""
    return file_option(*names, metavar="[FILE]", is_flag=False, flag_value=str(UNNAMED), **how)


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


PICTURE = output_option(
    *("--output", "-o"),
    help="Write to FILE, a .png, .svg, .pdf or .html; without FILE, a page named after the kernel. "
    "Default: print to the terminal.",
)


# --- what is trusted: docs/security.md says what a pull request may do --------------------------

VARIABLE = "MEMSIM_UNTRUSTED"


def trust_nothing() -> None:
    """From now on only files of the project around the working folder are read, and nothing of it is run."""
    if confinement() is None:
        here = Path.cwd()
        confine(boundary_of(project_of(here) or here))


def asked_by_environment() -> bool:
    """Whether every verb is to trust nothing; what an option asks for, this does not switch off."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def allow_named(ctx: click.Context, option: click.Parameter, named: Any) -> Any:
    """Trusts what the command line itself names outside of the working folder: TARGETs, `-I`, `--config`.

    A name inside is the project's: a link there may lead anywhere.
    """
    if confinement() is not None and named is not None:
        for name in [named] if isinstance(named, (str, Path)) else named:
            path = Path(os.path.normpath(Path.cwd() / name))
            folder = path if path.is_dir() else path.parent
            if path.exists() and not path.is_relative_to(Path.cwd()):
                allow(project_of(folder) or folder)
    return named


UNTRUSTED = click.option(
    "--untrusted",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=when_asked(trust_nothing),
    help="Trust no file of the project: read no others, run nothing that they name, limit compilers.",
)


# --- a project, and where its traces are kept -------------------------------------------------

NO_CACHE = click.option("--no-cache", is_flag=True, help="Neither read nor write the cache.")


def jobs_option(default: str, of: str = "processes") -> Option:
    """`--jobs`; default, of: what it is, in words."""
    return click.option(
        *("--jobs", "-j"), type=click.IntRange(1), metavar="N", help=f"Number of {of}. Default: {default}."
    )


JOBS = jobs_option("one per CPU core")
CONFIG = click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    callback=allow_named,
    help="Configuration file. Default: the nearest memsim.toml or pyproject.toml.",
)
project_options = with_options(CONFIG, JOBS, NO_CACHE, UNTRUSTED)


def open_project(config: Path | None) -> Project:
    """The project that `--config` names, or the one that holds here."""
    from memsim.targets.project import find_project, read_project

    return read_project(config or find_project(Path.cwd()))


def path_here() -> Path | None:
    """The configuration of the project that holds here, if there is one."""
    from memsim.targets.project import find_project

    try:
        return find_project(Path.cwd())
    except MemsimError:
        return None


def open_cache(no_cache: bool) -> Path | None:
    """Where traces are kept, if anywhere."""
    return None if no_cache else cache_folder()


# --- recordings of GPUs ------------------------------------------------------------------------

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
