"""Totals of rows that have counts and nothing else, as an analysis sums them up."""

from __future__ import annotations

from collections.abc import Mapping

from memsim.analysis.totals import sums_of_rows
from memsim.counts import Count, SiteCounts

Sums = Mapping[tuple[str, str], Mapping[str, int]]


def row(space: str, access: str, counts: Mapping[str, int]) -> SiteCounts:
    """A row with these counts."""
    numbers = {name: int(count) for name, count in counts.items()}
    return SiteCounts("k.cu", 1, 0, "", access, space, 4, "", 1, **numbers)  # type: ignore[arg-type]


def totals(sums: Sums) -> dict[str, Count]:
    """Metric -> total of a row for each access (space, name)."""
    return sums_of_rows([row(*access, counts) for access, counts in sums.items()])
