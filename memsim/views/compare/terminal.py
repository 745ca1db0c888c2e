"""Two analyses side by side in a terminal, the differences first. A is before, B is now."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from memsim.guard.comparison import Comparison, Comparisons
from memsim.views.compare.compared_rows import (
    TOTALS,
    code_now,
    files_of,
    launches_of,
    lines_of,
    rows_of,
    total_rows,
)
from memsim.views.labels import count
from memsim.views.screen import open_console
from memsim.views.tables import Column, Row, fitted

if TYPE_CHECKING:
    from rich.console import Console

COLUMNS = (
    Column("change"),
    Column("where"),
    Column("code", is_code=True),
    Column("access", keep=2),
    Column("array", keep=1),
    Column("count"),
    *(Column(name, right=True) for name in ("A", "B")),
    Column("difference", right=True, keep=3),
)
STYLES = {"worse": "red", "new": "yellow", "vanished": "yellow", "improved": "green", "changed": "cyan"}


def write(comparisons: Comparisons, stream: TextIO) -> None:
    """Prints the comparison on `stream`; the first line is the answer."""
    from rich.text import Text

    console, room = open_console(stream)
    console.print(Text(comparisons.verdict, style="bold"))
    for pair in comparisons.pairs:
        alone = len(comparisons.pairs) == 1
        if not alone:
            console.print(Text(f"\n{pair.verdict}" if pair.differs else pair.verdict, style="bold"))
        if pair.differs or alone:
            _write_pair(pair, console, room)


def _write_pair(pair: Comparison, console: Console, room: int) -> None:
    for launch in launches_of(pair):
        console.print(launch)
    console.print()
    files = files_of(pair)
    where = Column("where" if files is None else "line")
    if files is not None:
        console.print(f"Files: {files}")
        console.print()
    rows = []
    for line in pair.lines:
        style = STYLES.get(line.change.kind, "") if line.change else "dim"
        for number, (change, place, _, *rest) in enumerate(rows_of(line)):
            named = ("", "") if number else (place if files is None else lines_of(line), code_now(line))
            rows.append(Row((change, *named, *rest), style))
    console.print(fitted((COLUMNS[0], where, *COLUMNS[2:]), rows, room))
    console.print()
    columns = [Column(name, right=number > 0) for number, name in enumerate(TOTALS)]
    totals = list(total_rows(pair))
    differing = [Row(cells) for cells in totals if cells[-1]]
    if differing:
        console.print(fitted(columns, differing, room))
        console.print()
    same = len(totals) - len(differing)
    console.print(f"{count(same, 'other total')} of ncu's {'is' if same == 1 else 'are'} equal.")
