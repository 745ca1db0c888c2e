"""Two analyses side by side in a terminal, the differences first. A is before, B is now."""

from __future__ import annotations

from typing import TextIO

from memsim.guard.comparison import Comparison, Comparisons
from memsim.views.compare.compared_rows import (
    TOTALS,
    code_now,
    files_of,
    launches_of,
    lines_of,
    names_of,
    rows_of,
    total_rows,
)
from memsim.views.labels import count
from memsim.views.screen import Column, Row, Screen

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
STYLES = {
    "worse": "red",
    "new": "yellow",
    "vanished": "yellow",
    "improved": "green",
    "changed": "cyan",
    "unknown": "yellow",
}


def write(comparisons: Comparisons, stream: TextIO) -> None:
    """Prints the comparison on `stream`; the first line is the answer."""
    screen = Screen(stream)
    screen.say(comparisons.verdict, "bold")
    alone = len(comparisons.pairs) == 1
    for pair in comparisons.pairs:
        if not alone:
            if pair.differs:
                screen.say()
            screen.say(pair.verdict, "bold")
        if pair.differs or alone:
            _write_pair(pair, screen)


def _write_pair(pair: Comparison, screen: Screen) -> None:
    for launch in launches_of(pair):
        screen.say(launch)
    screen.say()
    files = files_of(pair)
    where = Column("where" if files is None else "line")
    if files is not None:
        screen.say(f"Files: {files}")
        screen.say()
    rows, names = [], names_of(pair)
    for line in pair.lines:
        style = STYLES.get(line.change.kind, "") if line.change else "dim"
        for number, (change, place, _, *rest) in enumerate(rows_of(line, names)):
            named = ("", "") if number else (place if files is None else lines_of(line), code_now(line))
            rows.append(Row((change, *named, *rest), style))
    screen.table((COLUMNS[0], where, *COLUMNS[2:]), rows)
    screen.say()
    columns = [Column(name, right=number > 0) for number, name in enumerate(TOTALS)]
    totals = list(total_rows(pair))
    differing = [Row(cells) for cells in totals if cells[-1]]
    if differing:
        screen.table(columns, differing)
        screen.say()
    same = len(totals) - len(differing)
    screen.say(f"{count(same, 'other total')} of ncu's {'is' if same == 1 else 'are'} equal.")
