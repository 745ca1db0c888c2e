"""The options that several verbs share, except those that describe a launch, and how a verb takes several."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from memsim.cli.untrusted import UNTRUSTED, allow_named

Command = TypeVar("Command", bound=Callable[..., Any])
Option = Callable[[Callable[..., Any]], Callable[..., Any]]


def taking(*options: Option) -> Callable[[Command], Command]:
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


JSON = click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
NO_CACHE = click.option("--no-cache", is_flag=True, help="Neither read nor write the cache.")
JOBS = click.option(
    *("--jobs", "-j"),
    type=click.IntRange(1),
    metavar="N",
    help="Number of processes. Default: one per CPU core.",
)
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
project_options = taking(CONFIG, JOBS, NO_CACHE, UNTRUSTED)
