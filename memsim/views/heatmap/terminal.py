"""The bank heatmap in a terminal: a row for each shared access site, a cell for each bank.

A cell holds how many different words of the worst request meet in the bank, `+` where only other requests use
it; `!` after a row's ways marks a conflict. On a narrow terminal the rows' places and code stand below the
cells, and numbers of two digits take two lines of 16 banks. The share of requests that use a bank is shown by
the other formats only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from memsim.analysis import Analysis
from memsim.arch.units import BANKS
from memsim.views.canvas import colour_of_trouble
from memsim.views.heatmap import heat_rows as heat
from memsim.views.heatmap.heat_rows import HeatRow, heat_panels
from memsim.views.labels import access
from memsim.views.screen import Screen, cell, cut

if TYPE_CHECKING:
    from rich.text import Text

CELL, NARROW_CELL = 3, 2  # columns of text; what a number leaves of them stays without colour
LEFT = ("site", "where", "access")
RIGHT = ("ways", "wavefronts")
NARROWEST = 12


def write(analyses: Sequence[Analysis], stream: TextIO) -> None:
    """Prints a heatmap for each analysis, all with the same columns.

    Raises:
        MemsimError: none of the kernels touches shared memory.
    """
    from rich.text import Text

    screen = Screen(stream)
    panels = heat_panels(analyses)
    texts = [_left(row) for panel in panels for row in panel]
    widths = [max(map(len, column)) for column in zip(LEFT, *texts, strict=True)]
    beside = sum(widths) + 6 + 2 + sum(map(len, RIGHT)) + 12
    wide = beside + BANKS * NARROW_CELL <= screen.room
    cell_width = CELL if (beside if wide else widths[0] + 10) + BANKS * CELL <= screen.room else NARROW_CELL
    most = max((int(row.use.worst.max()) for panel in panels for row in panel if row.use), default=0)
    banks = BANKS
    if len(str(most)) == cell_width:  # the numbers would touch
        cell_width, banks = CELL, BANKS // 2
    for analysis, panel in zip(analyses, panels, strict=True):
        screen.say(analysis.verdict, "bold")
        screen.say()
        if panel:
            _draw(screen, panel, widths, wide, cell_width, banks)
        else:
            screen.say(heat.NOTHING)
            screen.say()
    legend = Text("")
    for step in range(6):
        legend += cell(str(2**step), colour_of_trouble(2**step), CELL)
    screen.say(legend + Text(f"  {heat.SCALE}"))
    screen.say(f"{heat.OTHERS} only other requests use the bank; ! a bank conflict")


def _draw(
    screen: Screen, panel: Sequence[HeatRow], widths: Sequence[int], wide: bool, cell_width: int, banks: int
) -> None:
    """One kernel's rows, `banks` of them in a line."""
    from rich.text import Text

    shown, beside = (len(LEFT), len(RIGHT)) if wide else (1, 1)
    ticks = Text("".join(f"{'' if bank % 4 else bank:>{cell_width}}" for bank in range(BANKS)))
    _print_lines(screen, LEFT[:shown], widths, ticks, RIGHT[:beside], banks * cell_width, bold=True)
    indent = " " * (widths[0] + 2)
    for row in panel:
        texts = _left(row)
        right = _right(row)[:beside]
        cells = _cells(row, cell_width)
        bold = bool(row.site.conflicts)
        _print_lines(screen, texts[:shown], widths, cells, right, banks * cell_width, bold)
        if wide:
            before = " " * (sum(widths) + 6)
            screen.say(before + cut(row.site.source, max(screen.room - len(before), NARROWEST)), "dim")
    screen.say()
    for row in () if wide else panel:
        number, where, what = _left(row)
        screen.say(f"{number.ljust(widths[0])}  {where}  {what}  {RIGHT[1]}: {row.wavefronts}")
        screen.say(indent + cut(row.site.source, max(screen.room - len(indent), NARROWEST)), "dim")
    if not wide:
        screen.say()


def _left(row: HeatRow) -> tuple[str, str, str]:
    return str(row.number), row.place, f"{access(row.site).removeprefix('shared ')} {row.site.array}"


def _right(row: HeatRow) -> tuple[str, str]:
    ways = f"{row.ways}{'!' if row.site.conflicts else ' '}"
    return ways, row.wavefronts


def _print_lines(
    screen: Screen,
    left: Sequence[str],
    widths: Sequence[int],
    cells: Text,
    right: Sequence[str],
    width: int,
    bold: bool,
) -> None:
    """One row: its texts left and right of the cells, of which `width` columns fit into a line."""
    from rich.text import Text

    style = "bold" if bold else ""
    before = "".join(f"{text.ljust(width)}  " for text, width in zip(left, widths))
    after = "".join(f"  {text.rjust(len(RIGHT[0]))}" for text in right)
    for start in range(0, len(cells), width):
        screen.say(Text(before, style=style) + cells[start : start + width] + Text(after, style=style))
        before, after = " " * len(before), ""


def _cells(row: HeatRow, width: int) -> Text:
    from rich.text import Text

    if row.use is None:
        return Text(row.answer.center(BANKS * width), style="italic")
    cells = Text("")
    for worst, ways in zip(row.use.worst.tolist(), row.use.ways.tolist(), strict=True):
        cells += cell(str(worst or (heat.OTHERS if ways else ".")), colour_of_trouble(worst), width)
    return cells
