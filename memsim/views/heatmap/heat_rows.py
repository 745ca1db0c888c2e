"""The bank heatmap: its rows in the order of the accesses, the same for every format; as JSON; and in a
terminal, a row for each shared access site, a cell for each bank.

There a cell holds how many different words of the worst request meet in the bank, `+` where only other
requests use it; `!` after a row's ways marks a conflict. On a narrow terminal the rows' places and code stand
below the cells, and numbers of two digits take two lines of 16 banks. The share of requests that use a bank
is shown by the other formats only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TextIO, TypeAlias

from msgspec import Meta

from memsim.analysis import Analysis, SiteCounts
from memsim.arch.units import BANKS
from memsim.document import Count, Document, DocumentPart, Line
from memsim.errors import MemsimError
from memsim.launch import Natural
from memsim.pictures.bank_use import BankUse, bank_use
from memsim.views.canvas import colour_of_trouble
from memsim.views.labels import access, each, file_names
from memsim.views.screen import Screen, cell, cut_to_width

if TYPE_CHECKING:
    from rich.text import Text

Banks: TypeAlias = tuple[Natural, ...]
SCALE = "words of the worst request in one bank; 1: clean"
SHARE = "bar below: share of all requests that use the bank"
#: What the terminal shows of a bank that the worst request leaves alone.
OTHERS = "+"
WAYS = "ways"
WAVEFRONTS = "wavefronts per request"
NOTHING = "This kernel does not access shared memory."
PARTS = ("ideal", "above ideal, no conflict", "bank conflicts")


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A shared access site. number: index in `analysis.sites`. use: None where no wavefronts are known."""

    number: int
    site: SiteCounts
    place: str
    use: BankUse | None

    @property
    def what(self) -> str:
        """`store 4 B`."""
        return access(self.site).removeprefix("shared ")

    @property
    def title(self) -> str:
        """`site 2 · kernel_v4.cu:43 · store 4 B · s_a`."""
        return " · ".join(filter(None, (f"site {self.number}", self.place, self.what, self.site.array)))

    @property
    def short_title(self) -> str:
        """`line 43 · store 4 B · s_a`, for where the file is known."""
        return " · ".join(filter(None, (f"line {self.site.line}", self.what, self.site.array)))

    @property
    def parts(self) -> tuple[float, float, float]:
        """Wavefronts a request: ideal, above the ideal without conflict, conflicts. They add up to all."""
        site = self.site
        if not site.requests or site.wavefronts is None:
            return 0.0, 0.0, 0.0
        ideal, above = site.ideal_wavefronts or 0, site.excess_wavefronts
        return ideal / site.requests, above / site.requests, site.wavefronts_of_conflicts / site.requests

    @property
    def answer(self) -> str:
        """`clean`, `2-way conflict`, or why there is no answer."""
        if self.use is None:
            missing = "wavefronts not counted" if self.site.requests else "no request"
            return "not analyzed" if self.site.unresolved else missing
        return f"{self.site.max_ways}-way conflict" if self.site.conflicts else "clean"

    @property
    def ways(self) -> str:
        """`2`; `?` where it is not known."""
        return "?" if self.site.max_ways is None else str(self.site.max_ways)

    @property
    def wavefronts(self) -> str:
        """`4 (ideal 2)`: wavefronts a request."""
        requests = self.site.requests
        spent, ideal = (each(n, requests, "?") for n in (self.site.wavefronts, self.site.ideal_wavefronts))
        return spent if spent == ideal else f"{spent} (ideal {ideal})"


@dataclass(frozen=True, slots=True)
class Scales:
    """How far the bars of all panels of a picture reach: ways, and wavefronts a request."""

    ways: int
    wavefronts: float


def scales(panels: Iterable[Sequence[HeatRow]]) -> Scales:
    """The scales on which all panels fit."""
    rows = [row for panel in panels for row in panel]
    ways = max((row.site.max_ways or 0 for row in rows), default=0)
    return Scales(max(1, ways), max(1.0, max((sum(row.parts) for row in rows), default=0.0)))


def heat_rows(analysis: Analysis) -> list[HeatRow]:
    """A row for each site that touches shared memory; there may be none."""
    use = bank_use(analysis)
    files = file_names(site.file for site in analysis.sites)
    return [
        HeatRow(number, site, f"{files[site.file]}:{site.line}", use.get(number))
        for number, site in enumerate(analysis.sites)
        if site.space == "shared"
    ]


class HeatmapRow(DocumentPart, frozen=True, kw_only=True):
    """How an access to shared memory uses the banks."""

    site: Annotated[Natural, Meta(description="its number in the analysis")]
    place: str
    access: str
    array: str
    answer: Line
    ways: Count
    requests: Count
    wavefronts: Count
    ideal_wavefronts: Count
    worst: Annotated[
        Banks | None, Meta(description="words of the worst request in each bank; 1: no conflict")
    ]
    most: Annotated[Banks | None, Meta(description="the same, in each bank the most of all requests")]
    busy: Annotated[tuple[float, ...] | None, Meta(description="share of the requests that use each bank")]


class HeatmapPanel(DocumentPart, frozen=True, kw_only=True):
    """A launch."""

    kernel: str
    rows: tuple[HeatmapRow, ...]


class HeatmapDocument(Document, frozen=True, kw_only=True):
    """How launches use the 32 banks of shared memory."""

    panels: Annotated[tuple[HeatmapPanel, ...], Meta(description="TARGET, and what it is compared with")]


def heatmap_document(analyses: Sequence[Analysis]) -> HeatmapDocument:
    """The rows of each analysis as plain values."""
    panels = (
        HeatmapPanel(kernel=analysis.trace.kernel, rows=tuple(map(_heatmap_row, heat_rows(analysis))))
        for analysis in analyses
    )
    return HeatmapDocument(panels=tuple(panels))


def _heatmap_row(row: HeatRow) -> HeatmapRow:
    site, use = row.site, row.use
    return HeatmapRow.of(
        site,
        site=row.number,
        place=row.place,
        access=access(site),
        answer=row.answer,
        ways=site.max_ways,
        worst=None if use is None else tuple(use.worst.tolist()),
        most=None if use is None else tuple(use.ways.tolist()),
        busy=None if use is None else tuple(use.busy.tolist()),
    )


def heat_panels(analyses: Sequence[Analysis]) -> list[list[HeatRow]]:
    """The rows of each analysis of a picture.

    Raises:
        MemsimError: none has any.
    """
    panels = [heat_rows(analysis) for analysis in analyses]
    if not any(panels):
        names = list(dict.fromkeys(analysis.trace.kernel for analysis in analyses))
        verb = "do not access" if len(names) > 1 else "does not access"
        raise MemsimError(
            f"{' and '.join(names)} {verb} shared memory, so there are no banks to show",
            hint="memsim explain shows accesses to global memory",
        )
    return panels


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
            screen.say(NOTHING)
            screen.say()
    legend = Text("")
    for step in range(6):
        legend += cell(str(2**step), colour_of_trouble(2**step), CELL)
    screen.say(legend + Text(f"  {SCALE}"))
    screen.say(f"{OTHERS} only other requests use the bank; ! a bank conflict")


def _draw(
    screen: Screen, panel: Sequence[HeatRow], widths: Sequence[int], wide: bool, cell_width: int, banks: int
) -> None:
    """One kernel's rows, `banks` of them in a line."""
    from rich.text import Text

    shown, beside = (len(LEFT), len(RIGHT)) if wide else (1, 1)
    ticks = Text("".join(f"{'' if bank % 4 else bank:>{cell_width}}" for bank in range(BANKS)))
    _print_lines(screen, LEFT[:shown], widths, ticks, RIGHT[:beside], banks * cell_width, bold=True)
    for row in panel:
        right = (f"{row.ways}{'!' if row.site.conflicts else ' '}", row.wavefronts)[:beside]
        left, cells, bold = _left(row)[:shown], _cells(row, cell_width), bool(row.site.conflicts)
        _print_lines(screen, left, widths, cells, right, banks * cell_width, bold)
        if wide:
            _print_code(screen, row, sum(widths) + 6)
    screen.say()
    if wide:
        return
    for row in panel:
        number, where, what = _left(row)
        screen.say(f"{number.ljust(widths[0])}  {where}  {what}  {RIGHT[1]}: {row.wavefronts}")
        _print_code(screen, row, widths[0] + 2)
    screen.say()


def _print_code(screen: Screen, row: HeatRow, indent: int) -> None:
    code = cut_to_width(row.site.source, max(screen.room - indent, NARROWEST))
    screen.say(" " * indent + code, "dim")


def _left(row: HeatRow) -> tuple[str, str, str]:
    return str(row.number), row.place, f"{row.what} {row.site.array}"


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
        cells += cell(str(worst or (OTHERS if ways else ".")), colour_of_trouble(worst), width)
    return cells
