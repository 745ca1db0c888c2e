"""The bank heatmap in a terminal: a row for each shared access site, two columns of text for each bank.

In: analyses and a stream. Out: text. A cell holds the words that the bank serves for a request; `!` behind
a row's ways marks a conflict. On a narrow terminal the rows' places and code stand below the cells.
Left out: the share of the requests that use a bank (the other formats have it).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from memsim.analysis import Analysis
from memsim.report import heat
from memsim.report.heat import HeatRow, heat_panels
from memsim.report.labels import access
from memsim.report.terminal.screen import cell, open_console, shorten

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

BANKS = 32
CELL = 2
LEFT = ("site", "where", "access")
RIGHT = ("ways", "wavefronts")
NARROWEST = 12


def write(analyses: Sequence[Analysis], stream: TextIO) -> None:
    """Prints a heatmap for each analysis, all with the same columns.

    Raises:
        MemsimError: none of the kernels touches shared memory.
    """
    from rich.text import Text

    console, room = open_console(stream)
    panels = heat_panels(analyses)
    texts = [_left(row) for panel in panels for row in panel]
    widths = [max(map(len, column)) for column in zip(LEFT, *texts, strict=True)]
    wide = sum(widths) + 6 + BANKS * CELL + 2 + sum(map(len, RIGHT)) + 12 <= room
    for analysis, panel in zip(analyses, panels, strict=True):
        console.print(Text(analysis.verdict, style="bold"))
        console.print()
        if panel:
            _draw(console, panel, widths, room, wide)
        else:
            console.print(f"{heat.NOTHING}\n")
    legend = Text("")
    for step in range(6):
        legend += cell(str(2**step), 2**step, 4)
    console.print(legend + Text(f"  {heat.SCALE}"))
    console.print("ways: the most words that meet in one bank at once; ! marks a bank conflict, 1 is clean")


def _draw(console: Console, panel: Sequence[HeatRow], widths: Sequence[int], room: int, wide: bool) -> None:
    from rich.text import Text

    shown, beside = (len(LEFT), len(RIGHT)) if wide else (1, 1)
    ticks = "".join(f"{'' if bank % 4 else bank:>{CELL}}" for bank in range(BANKS))
    console.print(_line(LEFT[:shown], widths, Text(ticks), RIGHT[:beside], bold=True))
    indent = " " * (widths[0] + 2)
    for row in panel:
        texts = _left(row)
        right = _right(row)[:beside]
        console.print(_line(texts[:shown], widths, _cells(row), right, bool(row.site.conflicts)))
        if wide:
            before = " " * (sum(widths) + 6)
            console.print(
                Text(before + shorten(row.site.source, max(room - len(before), NARROWEST)), style="dim")
            )
    console.print()
    for row in () if wide else panel:
        number, where, what = _left(row)
        console.print(f"{number.ljust(widths[0])}  {where}  {what}  {RIGHT[1]}: {row.wavefronts}")
        console.print(
            Text(indent + shorten(row.site.source, max(room - len(indent), NARROWEST)), style="dim")
        )
    if not wide:
        console.print()


def _left(row: HeatRow) -> tuple[str, str, str]:
    return str(row.number), row.place, f"{access(row.site).removeprefix('shared ')} {row.site.array}"


def _right(row: HeatRow) -> tuple[str, str]:
    ways = f"{row.ways}{'!' if row.site.conflicts else ' '}"
    return ways, row.wavefronts


def _line(left: Sequence[str], widths: Sequence[int], cells: Text, right: Sequence[str], bold: bool) -> Text:
    from rich.text import Text

    style = "bold" if bold else ""
    before = "".join(f"{text.ljust(width)}  " for text, width in zip(left, widths))
    after = "".join(f"  {text.rjust(len(RIGHT[0]))}" for text in right)
    return Text(before, style=style) + cells + Text(after, style=style)


def _cells(row: HeatRow) -> Text:
    from rich.text import Text

    if row.use is None:
        return Text(row.answer.center(BANKS * CELL), style="italic")
    cells = Text("")
    for words in row.use.words.tolist():
        cells += cell(f"{words:.0f}" if words else ".", words, CELL)
    return cells
