"""What accesses cost and waste, in words and in order, and what is known of what is not certain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from memsim.analysis import Analysis, Range, SiteCounts
from memsim.counts import COST
from memsim.errors import MemsimError
from memsim.views.labels import count, file_names, number, share

NAMES = {
    "shared": "Shared memory",
    "global": "Global memory",
    "local": "Local memory",
    "constant": "Constants at an index",
    "texture": "Textures",
}


def cost(site: SiteCounts) -> int:
    """Wavefronts of shared memory, requests of constants, sectors of others; 0 where they are not known."""
    return getattr(site, COST[site.space]) or 0


def waste_of(site: SiteCounts) -> int:
    """Of its cost the part that bank conflicts or needless sectors take."""
    return site.wavefronts_of_conflicts if site.space == "shared" else site.needless_sectors


def heading_of_space(sites: Sequence[SiteCounts], file: str) -> str:
    """What all accesses to one memory space cost together. file: the one that all are of, or ""."""
    counted = [site for site in sites if site.unresolved is None]
    requests = sum(site.requests or 0 for site in counted)
    total = sum(map(cost, counted))
    if sites[0].space == "shared":
        unit, waste = "wavefronts", sum(site.conflicts or 0 for site in counted)
        answer = f"{waste:,} ({share(waste, total)}) are bank conflicts" if waste else "no bank conflicts"
    else:
        unit, waste = "sectors", sum(site.needless_sectors for site in counted)
        answer = f"{waste:,} ({share(waste, total)}) are not needed" if waste else "all are needed"
    name = NAMES[sites[0].space]
    if sites[0].is_spill:
        name, kinds = "Spilled registers", Counter({"load": 0, "store": 0})
        for site in counted:
            kinds[site.op] += site.instructions
        answer = " and ".join(count(made, kind) for kind, made in kinds.items())
    place = f"{name} ({file})" if file else name
    if not counted:
        return f"{place}: no access could be counted"
    if sites[0].space == "constant":
        loads = count(sum(site.instructions for site in counted), "load")
        told = f"{place}: {count(requests, 'request')} of {loads}, one for each different address"
    else:
        told = f"{place}: {total:,} {unit} in {count(requests, 'request')}; {answer}"
    missing = len(sites) - len(counted)
    return f"{told} ({missing} of {len(sites)} accesses not counted)" if missing else told


#: Totals that are told one by one; of more only their number.
FEW = 3


def limits_of_totals(analysis: Analysis) -> Iterator[str]:
    """A line for each, or for many of one reason; none for a reason that is told elsewhere."""
    order = "; ".join(analysis.trace.uncertain)
    told = {order, *(site.unresolved for site in analysis.sites)}
    by_reason: dict[str, list[tuple[str, Range]]] = {}
    for metric, limits in analysis.undecided.items():
        why = limits.why.removesuffix(f"; {order}") if order else limits.why
        by_reason.setdefault(why, []).append((metric, limits))
    for why, totals in by_reason.items():
        if why in told:
            continue
        if len(totals) > FEW:
            yield f"Not certain: {len(totals)} of ncu's metrics, whose limits --metrics shows: {why}"
        else:
            yield from (f"Not certain: {metric}: {_said(limits)}: {why}" for metric, limits in totals)


def count_or_limits(site: SiteCounts, name: str, unknown: str) -> str:
    """A count of a row as a cell of a table: `96`, `32 to 1,024`, or `unknown`."""
    count, limits = getattr(site, name), site.ranges.get(name)
    if count is not None or limits is None:
        return number(count, unknown)
    if limits.least == limits.most:
        return number(limits.least, unknown)
    return f"{limits.least:,} to {number(limits.most, 'any')}"


def _said(limits: Range) -> str:
    return str(limits) if limits.estimate is None else f"{limits} ({limits.estimate:,} as counted here)"


def cost_ratio(site: SiteCounts) -> float | None:
    """How many times as much a row costs as it would without waste, 1.0 for none; None if that is not known.

    Shared memory: wavefronts over those that are not conflicts. Global memory: sectors over ideal sectors.
    """
    if site.wavefronts:
        return site.wavefronts / (site.wavefronts - site.wavefronts_of_conflicts)
    if site.sectors and site.ideal_sectors:
        return site.sectors / site.ideal_sectors
    return None


def by_waste(analysis: Analysis) -> list[int]:
    """The rows whose requests cost something that lanes decide, those to look at first in front.

    `SiteCounts.badness` says which those are.
    """
    costly = [
        number
        for number, site in enumerate(analysis.sites)
        if (site.wavefronts or site.sectors) and site.operation.is_of_lanes
    ]
    return _worst_first(analysis, costly)


def _worst_first(analysis: Analysis, rows: Iterable[int]) -> list[int]:
    return sorted(rows, key=lambda number: analysis.sites[number].badness, reverse=True)


def worst_site(analysis: Analysis) -> int:
    """The row to look at first, the first of `by_waste`.

    Raises:
        MemsimError: no row has a request that could be analyzed.
    """
    rows = by_waste(analysis)
    if not rows:
        raise MemsimError(f"{analysis.trace.kernel} has no access that could be analyzed")
    return rows[0]


def choose_sites(analysis: Analysis, line: str | None, site: int | None) -> list[int]:
    """The row to explain, of that line or number, or the worst; then the others on the line.

    Raises:
        MemsimError: as `worst_site` and `sites_on_line`.
    """
    if line is not None:
        return sites_on_line(analysis, line)
    return [worst_site(analysis) if site is None else site]


def sites_on_line(analysis: Analysis, place: str) -> list[int]:
    """The rows on a line, the worst first. `place` is `42`, or `FILE:42` where several files have the line.

    Raises:
        MemsimError: not a line, or no access on it; then the error names lines that have one.
    """
    file, _, line = place.rpartition(":")
    if not line.isdecimal():
        raise MemsimError(f"{place!r} is not a line", hint="write 42, or FILE:42")
    on_line = [
        number
        for number, site in enumerate(analysis.sites)
        if site.line == int(line) and file in ("", site.file, PurePath(site.file).name)
    ]
    if not on_line:
        names = file_names(site.file for site in analysis.sites)
        lines = ", ".join(dict.fromkeys(f"{names[site.file]}:{site.line}" for site in analysis.sites))
        raise MemsimError(
            f"there is no access to shared or global memory on line {place} of {analysis.trace.kernel}",
            hint=f"there are some on {lines}" if lines else None,
        )
    return _worst_first(analysis, on_line)
