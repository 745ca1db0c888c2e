"""What terminals are given: lines that are cut nowhere, tables that fit, and coloured cells.

Numbers are never cut: what does not fit loses columns, the least important first, and then the end of its
source code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, TextIO

from memsim.views.plain import (
    CONSTANT_WIDTH,
    columns_of,
    may_have_colours,
    plain,
    plain_console,
    plain_line,
    wrap_line,
)

if TYPE_CHECKING:
    from rich.text import Text


#: A part of a line, and its style.
Piece = tuple[str, str]
NO_LINKS: Mapping[str, str] = {}


class Screen:
    """A stream that reports are printed on. columns: how many its reader sees, None if nobody says. room: how
    many a table may take. Without colours nothing of rich is loaded.
    """

    def __init__(self, stream: TextIO, *, colours: bool | None = None) -> None:
        """colours: None where it is a terminal."""
        self._stream = stream
        self._console = None
        self.columns = columns_of(stream)
        if may_have_colours(stream) if colours is None else colours:
            self._console = plain_console(stream, force_terminal=colours)
            if self._console.is_terminal:
                self.columns = self._console.width
            self._console.width = UNLIMITED
        self.room = self.columns or CONSTANT_WIDTH

    def say(
        self, text: str | Text | list[Piece] = "", style: str = "", links: Mapping[str, str] = NO_LINKS
    ) -> None:
        """Prints a line, broken at blanks; nothing in it is markup, and nothing in it ends the line.

        links: addresses that terminals lead to from words of a plain text.
        """
        if isinstance(text, str):
            text = wrap_line(plain_line(text), self.columns)
        elif isinstance(text, list):
            text = plain_line("".join(part for part, _ in text)) if self._console is None else _styled(text)
        elif "\n" in text.plain:
            text.plain = plain_line(text.plain)
        if self._console is not None:
            text = _linked(text, links) if isinstance(text, str) and links else text
            self._console.print(text, style=style, soft_wrap=True)
        else:
            self._stream.write(f"{text if isinstance(text, str) else plain(text.plain)}\n".expandtabs())

    def say_code(self, text: str, indent: int) -> None:
        """Prints a line of source, cut where the reader's terminal ends."""
        room = max((self.columns or UNLIMITED) - indent, NARROWEST_CODE)
        self.say(" " * indent + cut_to_width(text, room))

    def table(self, columns: Sequence[Column], rows: Iterable[Row]) -> None:
        """Prints a table at most as wide as the reader's terminal, if that is possible."""
        shown, rows = fit_table(columns, rows, self.room)
        styles = ("bold", *(row.style for row in rows))
        for line, style in zip(lines_of_table(shown, rows), styles, strict=True):
            if self._console is not None and self._console.is_terminal:
                self._console.print(line, style=style, soft_wrap=True)
            else:  # without the blanks that fill the last column
                self._stream.write(f"{line.rstrip()}\n")


def text_of(write: Callable[[TextIO], None]) -> str:
    """What is written on a stream, as text without the blank lines at its end."""
    stream = StringIO()
    write(stream)
    return stream.getvalue().rstrip()


def _linked(text: str, links: Mapping[str, str]) -> Text:
    from rich.text import Text

    made = Text(text)
    for words, address in links.items():
        for found in re.finditer(r"\s".join(map(re.escape, words.split())), text):
            made.stylize(f"link {address}", *found.span())
    return made


def _styled(pieces: Sequence[Piece]) -> Text:
    from rich.text import Text

    return Text.assemble(*((plain_line(text), style) for text, style in pieces))


def cell(text: str, colour: str, width: int) -> Text:
    """`text` on a colour, at the right of `width` columns; neighbours touch only where it fills them."""
    from rich.text import Text

    from memsim.views.canvas import ink_on

    style = f"{ink_on(colour)} on {colour}" if colour else ""
    return Text(" " * (width - len(text))) + Text(text, style=style)


GAP = 2
NARROWEST_CODE = 12
UNLIMITED = 1_000_000  # a console this wide never cuts


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    right: numbers, at its right end. keep: 0 for a column that is never left out; of the others the one with
    the highest number goes first. is_code: source code, the only cells that may be cut.
    """

    name: str
    right: bool = False
    keep: int = 0
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a row, one for each column, and its style."""

    cells: Sequence[str]
    style: str = ""


def fit_table(columns: Sequence[Column], rows: Iterable[Row], room: int) -> tuple[list[Column], list[Row]]:
    """The rows as a table at most `room` wide, if leaving out columns and cutting code can do it."""
    rows = [Row([plain_line(text) for text in row.cells], row.style) for row in rows]
    widths = [
        max([len(column.name), *(len(row.cells[i]) for row in rows)]) for i, column in enumerate(columns)
    ]
    shown = [i for i, column in enumerate(columns) if any(row.cells[i] for row in rows) or not column.keep]
    code = next((i for i, column in enumerate(columns) if column.is_code), None)

    def left_for_code() -> int:
        return room - sum(widths[i] + GAP for i in shown if i != code)

    needed = 0 if code is None else min(widths[code], NARROWEST_CODE)
    for i in sorted((i for i in shown if columns[i].keep), key=lambda i: -columns[i].keep):
        if left_for_code() >= needed:
            break
        shown.remove(i)
    width_of_code = max(left_for_code(), NARROWEST_CODE)

    def cells(row: Row) -> list[str]:
        return [cut_to_width(row.cells[i], width_of_code) if i == code else row.cells[i] for i in shown]

    return [columns[i] for i in shown], [Row(cells(row), row.style) for row in rows]


def lines_of_table(columns: Sequence[Column], rows: Sequence[Row]) -> list[str]:
    """The lines of a table: its heading, and a line for each row."""
    texts = [[column.name for column in columns], *([one.expandtabs() for one in row.cells] for row in rows)]
    widths = [max(map(_width, each)) for each in zip(*texts, strict=True)]
    return [
        (" " * GAP).join(
            " " * (width - _width(text)) + text if column.right else text + " " * (width - _width(text))
            for column, width, text in zip(columns, widths, line, strict=True)
        )
        for line in texts
    ]


def _width(text: str) -> int:
    """The columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut_to_width(text: str, width: int) -> str:
    """`text`, or its beginning and dots in `width` columns; a tab in it takes one."""
    text = text.replace("\t", " ")
    return text if len(text) <= width else text[: max(width - 3, 0)] + "..."
