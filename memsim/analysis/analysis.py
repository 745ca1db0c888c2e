"""The analysis of a launch: plain records, which every view shows and `memsim analyze --json` prints. Users
get a `ShownAnalysis`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Annotated

import numpy as np
from msgspec import UNSET, Meta, UnsetType

from memsim.analysis.sites import counts_of_rows, rows_of_trace
from memsim.analysis.totals import totals_of
from memsim.analysis.verdict import Phrase, phrases_in, verdict_of
from memsim.arch import Arch, arch_of_code, get_arch
from memsim.bound import Bound, BoundFigures, bound_of
from memsim.counts import InstructionCounts, Range, SiteCounts, total
from memsim.document import (
    LEFT_OUT,
    Chip,
    Count,
    Dim3,
    Document,
    DocumentPart,
    JsonObject,
    Line,
    Texts,
    plain,
)
from memsim.errors import MemsimError
from memsim.estimated_time import EstimatedTime
from memsim.launch import Natural, Positive
from memsim.trace.trace import Trace
from memsim.trace.trace_data import Origin

if TYPE_CHECKING:
    from pandas import DataFrame


class AnalyzedLaunch(DocumentPart, frozen=True, kw_only=True):
    """The shape of a launch, and how much of it was replayed."""

    grid: Dim3
    block: Dim3
    shared_bytes: Annotated[Natural, Meta(description="dynamic shared memory per block")]
    blocks: Annotated[Positive, Meta(description="blocks in the grid")]
    blocks_replayed: Annotated[Natural, Meta(description="blocks that the counts are for")]


class InstructionPart(DocumentPart, frozen=True, kw_only=True):
    """A machine instruction of a row."""

    address: Annotated[Natural, Meta(description="its first byte, from the kernel's")]
    text: str
    instructions: Natural
    requests: Count
    wavefronts: Count
    conflicts: Count
    ideal_wavefronts: Count
    max_ways: Count
    sectors: Count
    lines: Count
    unresolved: str | None


@dataclass(frozen=True, slots=True)
class SiteRow(SiteCounts):
    __doc__ = SiteCounts.__doc__

    sass: Annotated[
        tuple[InstructionPart, ...] | UnsetType,
        Meta(description="with --sass: the machine instructions of the row", extra_json_schema=LEFT_OUT),
    ] = UNSET


class AnalysisDocument(Document, frozen=True, kw_only=True):
    """What the accesses of a launch cost."""

    kernel: str
    arch: Chip
    code: Annotated[Origin | None, Meta(description="what was read; null: not known")]
    launch: AnalyzedLaunch
    verdict: Line
    phrases: Annotated[tuple[Phrase, ...], Meta(description="of the verdict, and what each means")]
    bound: BoundFigures
    sites: Annotated[
        tuple[SiteRow, ...],
        Meta(description="one for each source line and kind of access; null: does not apply, or not known"),
    ]
    totals: Annotated[
        dict[str, Count], Meta(description="ncu metric name: predicted value; null: see undecided")
    ]
    undecided: Annotated[dict[str, Range], Meta(description="what is known of each total that is null")]
    uncounted: Annotated[
        dict[str, Positive],
        Meta(description="requests whose cost is unknown: name in the singular -> how many"),
    ]
    notes: Annotated[Texts, Meta(description="what else was seen")]
    uncertain: Annotated[Texts, Meta(description="why some counts are not certain")]
    races: Annotated[Texts, Meta(description="that the first accesses show; memsim sanitize finds all")]
    time: Annotated[EstimatedTime | None, Meta(description="an estimate; null: none was asked for")]


SCHEMA = 1


@dataclass(frozen=True)
class Analysis:
    """The cost of one launch, predicted from its addresses.

    trace: what it was computed from. arch: the chip whose rules were used. sites: rows by file, line and
    first instruction. totals: ncu metric name -> predicted value, None if it is not certain. verdict:
    the answer in one line. undecided: ncu metric name -> what is known of each total that is None. estimate:
    how long the launch takes, if that was asked for.
    """

    trace: Trace
    arch: Arch
    sites: tuple[SiteCounts, ...]
    totals: dict[str, int | None]
    verdict: str
    undecided: Mapping[str, Range] = dataclasses.field(default_factory=dict)
    estimate: EstimatedTime | None = None

    @property
    def excess_wavefronts(self) -> int:
        """Shared wavefronts that are not conflicts but that another arrangement of lanes could save."""
        return sum(site.excess_wavefronts for site in self.sites)

    @property
    def wavefronts(self) -> int | None:
        """Wavefronts of all accesses to shared memory; None if that is not certain."""
        return self._sum("wavefronts", "shared")

    @property
    def ideal_wavefronts(self) -> int | None:
        """The fewest that these accesses could take, each at its best; None if that is not certain."""
        return self._sum("ideal_wavefronts", "shared")

    @property
    def conflicts(self) -> int | None:
        """Bank conflicts of all accesses to shared memory; None if that is not certain."""
        return self._sum("conflicts", "shared")

    @property
    def sectors(self) -> int | None:
        """Sectors, of 32 bytes, of all accesses to global memory; None if that is not certain."""
        return self._sum("sectors", "global")

    @property
    def ideal_sectors(self) -> int | None:
        """The sectors that would hold the bytes that these accesses need; None if that is not certain."""
        return self._sum("ideal_sectors", "global")

    @property
    def needless_sectors(self) -> int | None:
        """The sectors above these; None if that is not certain."""
        sectors, ideal = self.sectors, self.ideal_sectors
        return None if sectors is None or ideal is None else sectors - ideal

    def _sum(self, field: str, space: str) -> int | None:
        count = total([site.count(field) for site in self.sites if site.space == space])
        return None if isinstance(count, Range) or self.trace.uncertain or self.trace.uncounted else count

    @cached_property
    def bound(self) -> Bound:
        """The lower bound of the launch's cycles, and what bounds it (docs/bounds.md)."""
        return bound_of(self.trace, self.sites, self.totals, self.arch)

    @cached_property
    def requests_of_sites(self) -> tuple[np.ndarray, ...]:
        """For each row of `sites`, its rows of the trace: int64 indices."""
        return tuple(requests for _, requests in rows_of_trace(self.trace))

    @cached_property
    def instructions(self) -> tuple[tuple[InstructionCounts, ...], ...]:
        """For each row of `sites`, its machine instructions by address."""
        trace, rows = self.trace, rows_of_trace(self.trace)
        alone = [
            ([number], requests[trace.site[requests] == number])
            for members, requests in rows
            for number in members
        ]
        counts = {
            number: InstructionCounts(trace.sites[number].address, trace.sites[number].instruction, counted)
            for ([number], _), counted in zip(alone, counts_of_rows(trace, alone, self.arch), strict=True)
        }
        by_address = [
            sorted((counts[i] for i in members), key=lambda one: one.address) for members, _ in rows
        ]
        return tuple(tuple(one for one in found if one.address >= 0) for found in by_address)

    def to_pandas(self) -> DataFrame:
        """The rows as a `pandas.DataFrame`, a column for each field of `SiteCounts`; NA: does not apply.

        Behind them, by row: `wavefronts_per_request`, `sectors_per_request`, `excess` (wavefronts or sectors
        above the ideal) and `share` (of the launch's wavefronts, of its sectors; 0 to 1).

        Raises:
            MemsimError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise MemsimError("pandas is not installed", hint="pip install pandas") from None
        columns = {
            field.name: [getattr(site, field.name) for site in self.sites]
            for field in dataclasses.fields(SiteCounts)
        }
        counts = [
            name for name, kind in SiteCounts.__annotations__.items() if kind.startswith(("int", "Natural"))
        ]
        table = pandas.DataFrame(columns).astype(dict.fromkeys(counts, "Int64"))
        excess, share = [], []
        for unit in ("wavefronts", "sectors"):
            table[f"{unit}_per_request"] = table[unit].astype("Float64") / table["requests"]
            excess.append(table[unit] - table[f"ideal_{unit}"])
            share.append(table[unit].astype("Float64") / table.groupby("space")[unit].transform("sum"))
        return table.assign(excess=excess[0].fillna(excess[1]), share=share[0].fillna(share[1]))

    def __repr__(self) -> str:
        return f"<Analysis {self.verdict}>"

    def to_dict(self, *, sass: bool = False) -> JsonObject:
        """The records as plain dicts, lists and numbers, as printed by `--json`.

        sass: with the machine instructions of each of `sites`.
        """
        trace, launch = self.trace, self.trace.launch
        document = AnalysisDocument.of(
            trace,
            arch=self.arch.name,
            code=trace.origin,
            launch=AnalyzedLaunch.of(launch, blocks_replayed=trace.blocks_replayed),
            verdict=self.verdict,
            phrases=tuple(dict.fromkeys(phrase for _, phrase in phrases_in(self.verdict, trace.kernel))),
            bound=self.bound.figures,
            sites=tuple(map(_site_row, self.sites, self.instructions if sass else repeat(None))),
            totals=self.totals,
            undecided=dict(self.undecided),
            uncounted=dict(trace.uncounted),
            races=tuple(race.text for race in trace.races),
            time=self.estimate,
        )
        return plain(document)


def _site_row(site: SiteCounts, instructions: Sequence[InstructionCounts] | None) -> SiteRow:
    """A row as documents have it, with its instructions if they are wanted."""
    counts = {field.name: getattr(site, field.name) for field in dataclasses.fields(SiteCounts)}
    if instructions is None:
        return SiteRow(**counts)
    made = (InstructionPart.of(one.counts, address=one.address, text=one.text) for one in instructions)
    return SiteRow(**counts, sass=tuple(made))


def analyze_trace(trace: Trace, arch: Arch | str | None = None) -> Analysis:
    """Count the cost of a trace's accesses on `arch`, a chip or its name; default: the chip that it was made
    for.

    An access of a kind that was not measured on `arch` keeps its row and is `unresolved`.

    Raises:
        MemsimError: nothing was measured on `arch`, or an address is not aligned to its width.
    """
    made_for = "" if trace.origin is None else trace.origin.arch
    chip = arch_of_code(made_for) if arch is None else get_arch(arch)
    sites = counts_of_rows(trace, rows_of_trace(trace), chip)
    totals, ranges = totals_of(trace, sites, chip)
    return Analysis(trace, chip, sites, totals, verdict_of(trace, sites, chip), ranges)
