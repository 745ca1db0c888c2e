"""The options that every verb about a project's targets has, and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memsim.store import cache_folder

if TYPE_CHECKING:
    from memsim.targets.project import Project

Command = TypeVar("Command", bound=Callable[..., Any])


def project_options(command: Command) -> Command:
    """`--config`, `--jobs` and `--no-cache`."""
    options = (
        click.option(
            "--config",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Configuration file. Default: the nearest memsim.toml or pyproject.toml.",
        ),
        click.option(
            "--jobs",
            "-j",
            type=click.IntRange(1),
            metavar="N",
            help="Number of processes. Default: one per CPU core.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return no_cache_option(command)


def no_cache_option(command: Command) -> Command:
    """`--no-cache`."""
    return click.option("--no-cache", is_flag=True, help="Neither read nor write the cache.")(command)


def open_project(config: Path | None) -> Project:
    """The project that `--config` names, or the one that holds here."""
    from memsim.targets.project import find_project, read_project

    return read_project(config or find_project(Path.cwd()))


def open_cache(no_cache: bool) -> Path | None:
    """Where traces are kept, if anywhere."""
    return None if no_cache else cache_folder()
