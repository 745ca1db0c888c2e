"""Tables that fit the reader's terminal.

Text in, a rich table out. Numbers are never cut: what does not fit loses columns, the least important
first, and then the end of its source code.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memsim.views.plain import plain_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

GAP = 2
PIPE = 100  # columns of a table that goes to a file or another program
NARROWEST_CODE = 30
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


def room_of(console: Console) -> int:
    """How many columns a table may take: those of the terminal, or of `COLUMNS`, or `PIPE`."""
    if console.is_terminal:
        return console.width
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isdecimal() and int(given) else PIPE


def fitted(columns: Sequence[Column], rows: Iterable[Row], room: int) -> Table:
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
