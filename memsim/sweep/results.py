"""Results of a sweep: the counts of each variant, and the Pareto frontier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from memsim.analysis import Analysis

#: Labels whose values change the amount of work.
WORK = ("size", "grid", "blocks", "arg ")


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of one variant, summed over its accesses; `max_ways` is the worst. None: unknown or not
    applicable.

    shared_bytes: per block. error: why there are no counts, "" if there are.
    """

    wavefronts: int | None = None
    conflicts: int | None = None
    ideal_wavefronts: int | None = None
    max_ways: int | None = None
    sectors: int | None = None
    ideal_sectors: int | None = None
    shared_bytes: int | None = None
    error: str = ""


NAMES = tuple(field.name for field in fields(Counts))
COUNTS = NAMES[:-1]
OF_ACCESSES = COUNTS[:-1]


@dataclass(frozen=True, slots=True)
class VariantResult:
    """A variant's values and counts. key: as in `Variant`."""

    values: Mapping[str, str]
    counts: Counts
    key: str


def counts_of(analysis: Analysis) -> Counts:
    """The counts of an analysis."""
    trace, sites = analysis.trace, analysis.sites
    lost = [site.unresolved for site in sites if site.unresolved is not None]
    ends = [first + size for _, space, first, size in trace.arrays if space == "shared"]
    needed = max([trace.launch.shared_bytes, *ends])
    if lost:
        return Counts(shared_bytes=needed, error=f"not all could be analyzed: {lost[0]}")
    return Counts(**_together(sites, OF_ACCESSES), shared_bytes=needed)


def together(parts: Sequence[Counts]) -> Counts:
    """The counts of a launch, from those of its parts."""
    failed = next((part for part in parts if part.error), None)
    if failed is not None:
        return failed
    return Counts(**_together(parts, COUNTS))


def _together(parts: Iterable[Any], names: Iterable[str]) -> dict[str, Any]:
    """The sum of each count over what has it; of ways and of bytes of a block the most."""
    known = {name: [n for part in parts if (n := getattr(part, name)) is not None] for name in names}
    return {
        name: (max if name in ("max_ways", "shared_bytes") else sum)(counts) if counts else None
        for name, counts in known.items()
    }


def cost_name(results: Sequence[VariantResult]) -> str:
    """What results are compared by: shared wavefronts, or sectors if there are no shared accesses."""
    return "wavefronts" if any(result.counts.wavefronts for result in results) else "sectors"


def frontier(results: Sequence[VariantResult]) -> list[int]:
    """The Pareto-optimal results among those of the same work: indices, group by group, by bytes.

    No other costs less with as few bytes of shared memory, or as little with fewer.
    """
    name = cost_name(results)
    return [i for group in groups(results) for i in _frontier(results, group, name)]


def groups(results: Sequence[VariantResult]) -> list[list[int]]:
    """Results of the same work (size, grid, arguments), which are comparable."""
    found: dict[tuple[str, ...], list[int]] = {}
    for i, result in enumerate(results):
        key = tuple(value for label, value in result.values.items() if label.startswith(WORK))
        found.setdefault(key, []).append(i)
    return list(found.values())


def _frontier(results: Sequence[VariantResult], group: Sequence[int], name: str) -> list[int]:
    known = [
        (results[i].counts.shared_bytes or 0, cost, i)
        for i in group
        if (cost := getattr(results[i].counts, name)) is not None
    ]
    found: list[int] = []
    best: tuple[int, int] | None = None  # (cost, bytes) of the last point
    for needed, cost, i in sorted(known):
        if best is None or cost < best[0] or (cost, needed) == best:
            found.append(i)
            best = cost, needed
    return found
