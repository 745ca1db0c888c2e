"""Printing a line or a record, writing a picture or a page, and a progress bar."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from memsim.cli.answered import remark
from memsim.cli.options import UNNAMED
from memsim.files import write_text
from memsim.views.plain import columns_of, plain, plain_line, wrap_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from msgspec import Struct

    from memsim.document import JsonObject


PAGE = ".html"


def save_picture(
    asked: Path, name: str, page: Callable[[], str], draw: Callable[[], Figure], *, err: bool
) -> None:
    """Writes a page, or a figure, by the file's suffix; nothing is drawn for a kind that is not known.

    name: of the page, if no file is asked for.

    Raises:
        MemsimError: an unknown suffix, matplotlib is not installed, or the file cannot be written.
    """
    with path_to_write(asked, free_path(name, PAGE), err=err) as path:
        if path.suffix == PAGE:
            write_text(path, page(), "the page")
            return
        from memsim.views.canvas import check_suffix, save

        check_suffix(path, PAGE)
        save(draw(), path)


def path_of(name: str, suffix: str = "") -> Path:
    """A path in the working folder, named after a kernel, script or pattern."""
    return Path((re.sub(r"_*[^\w.-]+_*", "_", name).strip("_.") or "memsim") + suffix)


def free_path(name: str, suffix: str = "") -> Path:
    """A path in the working folder where nothing is, named after a kernel or script."""
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(path for path in (path_of(one, suffix) for one in names) if not path.exists())


@contextmanager
def path_to_write(asked: Path, default: Path, *, err: bool = False) -> Iterator[Path]:
    """Gives the path that is asked for, or the default, which is told once it is written."""
    path = default if asked == UNNAMED else asked
    yield path
    if asked == UNNAMED:
        say(f"written: {path}", err=err)


def say(line: object = "", *, err: bool = False) -> None:
    """Prints a line that may have names and source of others in it."""
    say_lines([plain_line(str(line))], err)


def say_all(text: object, *, err: bool = False) -> None:
    """Prints lines that may have names and source of others in them."""
    say_lines(plain(str(text)).split("\n"), err)


def say_lines(lines: Iterable[str], err: bool) -> None:
    """Prints lines that are `plain` already, at once."""
    columns = columns_of(sys.stderr if err else sys.stdout)
    text = "\n".join(wrap_line(line, columns) for line in lines)
    if err:
        remark(text)
    click.echo(text, err=err)


def say_code(text: str, *, err: bool = False) -> None:
    """Prints lines of code as they are."""
    click.echo(plain(text), err=err)


def echo_json(document: Struct | JsonObject | list[JsonObject]) -> None:
    """Prints a document, or values of documents."""
    from memsim.document import json_text

    echo_document(json_text(document))


def echo_document(text: str) -> None:
    """Prints a text for a program, whose format says how names are written."""
    click.echo(text)


def say_written(
    answer: str, files: Iterable[Path | str], notes: Iterable[str] = (), *, as_json: bool
) -> None:
    """What a verb that writes files prints: the answer and its notes, a line each, or a document."""
    if not as_json:
        say(answer)
        for note in notes:
            say(note)
        return
    from memsim.document import WrittenDocument

    echo_json(WrittenDocument(answer=answer, files=tuple(map(str, files)), notes=tuple(notes)))


Report: TypeAlias = Callable[[float], None] | None


@contextmanager
def progress_bar(title: str) -> Iterator[Report]:
    """Gives a function that takes the share done, 0 to 1, or None if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(plain_line(title)), total=1.0)
        yield lambda done: bar.update(task, completed=done)
