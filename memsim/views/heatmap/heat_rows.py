"""The rows of a bank heatmap in the order of the accesses, the same for every format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from msgspec import Meta

from memsim.analysis import Analysis, SiteCounts
from memsim.document import Count, Document, DocumentPart, Line, plain
from memsim.errors import MemsimError
from memsim.launch import Natural
from memsim.pictures.bank_use import BankUse, bank_use
from memsim.views.labels import access, each, file_names

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
    def title(self) -> str:
        """`site 2 · kernel_v4.cu:43 · store 4 B · s_a`."""
        what = access(self.site).removeprefix("shared ")
        return " · ".join(part for part in (f"site {self.number}", self.place, what, self.site.array) if part)

    @property
    def short_title(self) -> str:
        """`line 43 · store 4 B · s_a`, for where the file is known."""
        what = access(self.site).removeprefix("shared ")
        return " · ".join(part for part in (f"line {self.site.line}", what, self.site.array) if part)

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


def heatmap_document(analyses: Sequence[Analysis]) -> dict[str, Any]:
    """The rows of each analysis as plain values."""
    panels = (
        HeatmapPanel(kernel=analysis.trace.kernel, rows=tuple(map(_heatmap_row, heat_rows(analysis))))
        for analysis in analyses
    )
    return plain(HeatmapDocument(panels=tuple(panels)))


def _heatmap_row(row: HeatRow) -> HeatmapRow:
    site, use = row.site, row.use
    return HeatmapRow(
        site=row.number,
        place=row.place,
        access=access(site),
        array=site.array,
        answer=row.answer,
        ways=site.max_ways,
        requests=site.requests,
        wavefronts=site.wavefronts,
        ideal_wavefronts=site.ideal_wavefronts,
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
