"""The options that every verb about a project's targets has, and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from memsim.store import cache_folder
from memsim.targets.project import Project, find_project, read_project

Command = TypeVar("Command", bound=Callable[..., Any])


def project_options(command: Command) -> Command:
    """`--config`, `--jobs` and `--no-cache`."""
    options = (
        click.option(
            "--config",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="The configuration; the nearest memsim.toml or pyproject.toml if left out.",
        ),
        click.option(
            "--jobs", "-j", type=click.IntRange(1), metavar="N", help="Processes; one for each processor."
        ),
        click.option("--no-cache", is_flag=True, help="Analyze everything anew, and keep nothing."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def open_project(config: Path | None) -> Project:
    """The project that `--config` names, or the one that holds here."""
    return read_project(config or find_project(Path.cwd()))


def open_cache(no_cache: bool) -> Path | None:
    """Where traces are kept, if anywhere."""
    return None if no_cache else cache_folder()
