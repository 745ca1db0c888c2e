"""What terminals are given: lines that are cut nowhere, tables that fit, and coloured cells.

Numbers are never cut: what does not fit loses columns, the least important first, and then the end of its
source code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from memsim.views.canvas import ink_on
from memsim.views.plain import CONSTANT_WIDTH, columns_of, plain_console, plain_line, wrapped

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


class Screen:
    """A stream that reports are printed on. columns: how many its reader sees, None if nobody says. room: how
    many a table may take.
    """

    def __init__(self, stream: TextIO, **options: Any) -> None:
        """`options` are those of rich's consoles."""
        self._console = plain_console(stream, **options)
        self.columns = self._console.width if self._console.is_terminal else columns_of(stream)
        self.room = self.columns or CONSTANT_WIDTH
        self._console.width = UNLIMITED

    def say(self, text: str | Text = "", style: str = "") -> None:
        """Prints a line, broken at blanks; nothing in it is markup, and nothing in it ends the line."""
        if isinstance(text, str):
            text = wrapped(plain_line(text), self.columns)
        elif "\n" in text.plain:
            text.plain = plain_line(text.plain)
        self._console.print(text, style=style, soft_wrap=True)

    def code(self, text: str, indent: int = 0, style: str = "") -> None:
        """Prints a line of source, cut where the reader's terminal ends."""
        self.say(" " * indent + cut(text, max((self.columns or UNLIMITED) - indent, NARROWEST_CODE)), style)

    def table(self, columns: Sequence[Column], rows: Iterable[Row]) -> None:
        """Prints a table at most as wide as the reader's terminal, if that is possible."""
        table = fit_table(columns, rows, self.room)
        if self._console.is_terminal:
            self._console.print(table)
            return
        with self._console.capture() as printed:  # without the blanks that fill the last column
            self._console.print(table)
        self._console.file.writelines(f"{line.rstrip()}\n" for line in printed.get().splitlines())


def cell(text: str, colour: str, width: int) -> Text:
    """`text` on a colour, at the right of `width` columns; neighbours touch only where it fills them."""
    from rich.text import Text

    style = f"{ink_on(colour)} on {colour}" if colour else ""
    return Text(" " * (width - len(text))) + Text(text, style=style)


GAP = 2
NARROWEST_CODE = 20
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


def fit_table(columns: Sequence[Column], rows: Iterable[Row], room: int) -> Table:
    """The rows as a table at most `room` wide, if leaving out columns and cutting code can do it."""
    from rich.table import Table
    from rich.text import Text

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

    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for i in shown:
        table.add_column(columns[i].name, justify="right" if columns[i].right else "left")
    for row in rows:
        cells = [cut(row.cells[i], width_of_code) if i == code else row.cells[i] for i in shown]
        table.add_row(*map(Text, cells), style=row.style)
    return table


def cut(text: str, width: int) -> str:
    """`text`, or its beginning and dots in `width` columns; a tab in it takes one."""
    text = text.replace("\t", " ")
    return text if len(text) <= width else text[: max(width - 3, 0)] + "..."
