"""What the reports of all probes have in common: a line that answers, a table, and what differs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from memsim.views.screen import open_console
from memsim.views.tables import Column, Row, fitted


def answer(gpu: str, what: str, compared: int, fails: Sequence[str]) -> str:
    """`NVIDIA H200: the rules hold for 43 of 44 instructions, not for LDS`.

    what: the sentence, with places for two counts.
    """
    held = what.format(compared - len(fails), compared)
    return f"{gpu}: {held}" + (f", not for {', '.join(fails)}" if fails else "")


def finding(cells: Sequence[str], holds: bool) -> Row:
    """A row of the table, red if the rule does not hold; the last column says so."""
    return Row((*cells, "holds" if holds else "differs"), "" if holds else "red")


def show(
    stream: TextIO, headline: str, columns: Sequence[Column], rows: Sequence[Row], notes: Iterable[str]
) -> None:
    """Write the line that answers, the table, and below it a line for each note."""
    from rich.text import Text

    console, room = open_console(stream)
    console.print(Text(headline, style="bold"))
    console.print()
    console.print(fitted(columns, rows, room))
    console.print()
    for note in notes:
        console.print(note)
