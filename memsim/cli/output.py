"""The option `-o FILE` of verbs that make pictures and pages, drawing them, and printing a line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memsim.views.plain import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Command = TypeVar("Command", bound=Callable[..., Any])
PAGE = ".html"


def output_option(what: str, required: bool = False) -> Callable[[Command], Command]:
    """`-o FILE`; `what` says which kinds."""
    return click.option(
        "--output",
        "-o",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        required=required,
        help=f"Write to FILE, {what}",
    )


def save_figure(path: Path, draw: Callable[[], Figure]) -> None:
    """Draws a figure and writes it; nothing is drawn for a kind of file that is not known.

    Raises:
        MemsimError: an unknown suffix, matplotlib is not installed, or the file cannot be written.
    """
    from memsim.views.canvas import check_suffix, save

    check_suffix(path)
    save(draw(), path)


def say(text: object, *, err: bool = False) -> None:
    """Prints a text that may have names and source of others in it."""
    click.echo(plain(str(text)), err=err)
