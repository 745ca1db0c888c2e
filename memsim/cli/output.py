"""The option `-o FILE` of verbs that make pictures and pages, and writing them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memsim.errors import MemsimError

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
        help=f"Write a file: {what}",
    )


def save_figure(path: Path, draw: Callable[[], Figure]) -> None:
    """Draws a figure and writes it; nothing is drawn for a kind of file that is not known.

    Raises:
        MemsimError: an unknown suffix, matplotlib is not installed, or the file cannot be written.
    """
    from memsim.report.figures.canvas import check_suffix, save

    check_suffix(path)
    save(draw(), path)


def write_text(path: Path, text: str) -> None:
    """Writes a page.

    Raises:
        MemsimError: the file cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise MemsimError(f"cannot write it: {error.strerror}", file=str(path)) from None
