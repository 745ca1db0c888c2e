"""A launch before and after a change, as the page shows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memsim.analysis import Analysis
from memsim.guard.comparison import compare, side_of
from memsim.views.analyze.costs import COST, NAMES, cost, wasted
from memsim.views.compare.compared_rows import changed_rows


@dataclass(frozen=True, slots=True)
class TotalChange:
    """One quantity of both launches; neither better nor worse where it is equal."""

    what: str
    before: int
    after: int

    @property
    def better(self) -> bool:
        return self.after < self.before

    @property
    def worse(self) -> bool:
        return self.after > self.before


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
        waste = [sum(map(wasted, sites)) for sites in sides]
        if any(waste):
            reason = "of them by bank conflicts" if space == "shared" else "of them not needed"
            yield TotalChange(f"{name}: {reason}", *waste)
    if before.bound.has_instructions and after.bound.has_instructions:
        yield TotalChange("Cycles at least", before.bound.cycles, after.bound.cycles)
