"""Tables of accesses: one for each memory space, costliest first, and one of a change.

The page and a notebook show them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memsim.analysis import Analysis, SiteCounts
from memsim.counts import COST, FIELDS
from memsim.guard.comparison import compare, side_of
from memsim.views.analyze.costs import NAMES, cost, cost_ratio, heading_of_space, waste_of
from memsim.views.compare_text import changed_rows
from memsim.views.labels import each, file_names, share
from memsim.views.report.source_view import mark

#: Counts of `SiteCounts`, and what the page calls them.
WORDS = {
    "instructions": "instructions",
    "requests": "requests",
    "wavefronts": "wavefronts",
    "ideal_wavefronts": "ideal wavefronts",
    "conflicts": "bank conflicts",
    "max_ways": "most ways",
    "sectors": "sectors",
    "ideal_sectors": "ideal sectors",
    "lines": "128-byte lines",
}
#: Counts that a narrow page leaves out.
LESS = ("ideal_wavefronts", "max_ways", "ideal_sectors", "lines", "requests", "instructions")


@dataclass(frozen=True, slots=True)
class AccessRow:
    """An access. number: its row of the analysis; where: its line, with its file where there are several.

    mark: what is wrong in words; heat: how many times as much it costs as without that. share: of what all
    accesses of the table cost, in words; part: the same, 0 to 1, waste: what of it conflicts or needless
    sectors take, above: wavefronts above the ideal without a conflict. each: the cost of a request.
    """

    number: int
    site: SiteCounts
    where: str
    mark: str
    heat: float
    share: str
    part: float
    waste: float
    above: float
    each: str


@dataclass(frozen=True, slots=True)
class AccessTable:
    """All accesses to a memory space. cost: the field that says what they cost, by which they are sorted."""

    space: str
    heading: str
    cost: str
    fields: tuple[str, ...]
    rows: tuple[AccessRow, ...]


def access_tables(analysis: Analysis) -> list[AccessTable]:
    """A table for each memory space that is accessed."""
    files = file_names(site.file for site in analysis.sites)
    only = next(iter(files.values())) if len(files) == 1 else ""
    tables = []
    for space in NAMES:
        numbers = [number for number, site in enumerate(analysis.sites) if site.space == space]
        sites = [analysis.sites[number] for number in numbers]
        total = sum(map(cost, sites))
        rows = [_row(number, site, files if not only else {}, total) for number, site in zip(numbers, sites)]
        rows.sort(key=lambda row: cost(row.site), reverse=True)
        if rows:
            tables.append(
                AccessTable(space, heading_of_space(sites, only), COST[space], FIELDS[space], tuple(rows))
            )
    return tables


def _row(number: int, site: SiteCounts, files: dict[str, str], total: int) -> AccessRow:
    where = f"{files[site.file]}:{site.line}" if files else str(site.line)
    known = site.unresolved is None
    return AccessRow(
        number,
        site,
        where,
        mark(site),
        cost_ratio(site) or 0.0,
        share(cost(site), total) if known else "?",
        cost(site) / total if total else 0.0,
        waste_of(site) / total if total else 0.0,
        site.excess_wavefronts / total if total else 0.0,
        each(cost(site), site.requests, "-") if known else "?",
    )


@dataclass(frozen=True, slots=True)
class TotalChange:
    """One quantity of both launches."""

    what: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """Two launches. rows: (change, where, code, access, array, counts) of each access that differs."""

    before: Analysis
    after: Analysis
    verdict: str
    sums: tuple[TotalChange, ...]
    rows: tuple[tuple[str, ...], ...]
    same: int


def before_after(before: Analysis, after: Analysis) -> BeforeAfter:
    """What became better, and what worse."""
    found = compare(side_of(before.trace.kernel, before), side_of(after.trace.kernel, after))
    rows = tuple(map(tuple, changed_rows(found, short=True)))
    same = len(found.lines) - len(rows)
    return BeforeAfter(before, after, found.verdict, tuple(_sums(before, after)), rows, same)


def _sums(before: Analysis, after: Analysis) -> Iterator[TotalChange]:
    """Costs and waste of each memory space, and the bounds where both are known."""
    for space, name in NAMES.items():
        sides = [[site for site in side.sites if site.space == space] for side in (before, after)]
        if not any(sides):
            continue
        costs = [sum(map(cost, sites)) for sites in sides]
        yield TotalChange(f"{name}: {COST[space]}", *costs)
        waste = [sum(map(waste_of, sites)) for sites in sides]
        if any(waste):
            reason = "of them by bank conflicts" if space == "shared" else "of them not needed"
            yield TotalChange(f"{name}: {reason}", *waste)
    times = [side.estimate.elapsed for side in (before, after) if side.estimate is not None]
    known = [time for time in times if time is not None]
    if len(known) == 2:
        yield TotalChange("Cycles with the launch, about (an estimate)", *known)
    if before.bound.has_instructions and after.bound.has_instructions:
        yield TotalChange("Cycles at least", before.bound.cycles, after.bound.cycles)
