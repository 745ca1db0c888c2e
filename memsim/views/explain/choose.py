"""Which row of an analysis to explain: the one on a given line, or the worst."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from memsim.analysis import Analysis, SiteCounts
from memsim.errors import MemsimError
from memsim.views.labels import file_names


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
