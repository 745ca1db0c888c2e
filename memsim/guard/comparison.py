"""Compares two analyses line by line and in total, differences first: kernels, revisions of one, or a saved
analysis and a fresh one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from memsim.analysis import SCHEMA, Analysis, SiteCounts
from memsim.errors import MemsimError, shown
from memsim.estimated_time import EstimatedTime, time_change
from memsim.guard.baseline import describe_launch, launch_of
from memsim.guard.changes import Change, SitePair, align, change_of
from memsim.guard.outcome import CHANGED, IMPROVED, NEW, UNKNOWN, VANISHED, WORSE
from memsim.guard.statement_rows import rows_by_statement
from memsim.launch import Launch, Natural, Positive

# Kinds of differences, the most important first.
ORDER = (WORSE, NEW, VANISHED, UNKNOWN, IMPROVED, CHANGED)


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: a kernel's rows and its totals by ncu metric. launch: in a line. time: if it
    was estimated.
    """

    name: str
    sites: tuple[SiteCounts, ...]
    totals: Mapping[str, int | None]
    launch: str
    time: EstimatedTime | None = None


@dataclass(frozen=True, slots=True)
class ComparedAccess:
    """One access on both sides; change None: equal counts."""

    pair: SitePair
    change: Change | None


@dataclass(frozen=True, slots=True)
class Total:
    """One ncu metric on both sides; None: not known."""

    metric: str
    a: int | None
    b: int | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Lines and totals of two sides, those that differ first."""

    a: Side
    b: Side
    lines: tuple[ComparedAccess, ...]
    totals: tuple[Total, ...]

    @property
    def differs(self) -> bool:
        """Whether any count, or the code of any access, is different."""
        return any(line.change for line in self.lines) or any(t.a != t.b for t in self.totals)

    @property
    def time(self) -> str:
        """How the estimated times differ, in a line; "" unless both are known."""
        return time_change(self.a.time, self.b.time)

    @property
    def first(self) -> int:
        """The place in `ORDER` of its most important difference."""
        return min((ORDER.index(line.change.kind) for line in self.lines if line.change), default=len(ORDER))

    @property
    def verdict(self) -> str:
        """The answer in one line."""
        kinds = [line.change.kind for line in self.lines if line.change]
        names = self.a.name if self.a.name == self.b.name else f"{self.a.name} -> {self.b.name}"
        if not self.differs:
            return f"{names}: no difference in {len(self.lines)} accesses"
        counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in ORDER if kind in kinds)
        return f"{names}: {counted or 'totals differ'}, of {len(self.lines)} accesses"


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Several kernels, those that differ first, what became worse before the rest.

    only_a, only_b: names of those on one side only. failed: names of those that could not be analyzed on one
    side or both.
    """

    pairs: tuple[Comparison, ...]
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """The answer in one line."""
        if len(self.pairs) == 1 and not (self.only_a or self.only_b or self.failed):
            return self.pairs[0].verdict
        different = sum(pair.differs for pair in self.pairs)
        parts = [f"{different} of {len(self.pairs)} kernels changed"]
        if self.only_a:
            parts.append(f"only in the first: {', '.join(self.only_a)}")
        if self.only_b:
            parts.append(f"only in the second: {', '.join(self.only_b)}")
        if self.failed:
            parts.append(f"NOT COMPARED: {', '.join(self.failed)}")
        return "; ".join(parts)


def compare_all(a: Mapping[str, Side], b: Mapping[str, Side], failed: Iterable[str] = ()) -> Comparisons:
    """Compare kernels of the same name; `a` is before, `b` is now, `failed` have no analysis on a side."""
    without = dict.fromkeys(failed)
    pairs = [compare(a[name], b[name]) for name in a if name in b]
    return Comparisons(
        pairs=tuple(sorted(pairs, key=lambda pair: (not pair.differs, pair.first))),
        only_a=tuple(name for name in a if name not in b and name not in without),
        only_b=tuple(name for name in b if name not in a and name not in without),
        failed=tuple(without),
    )


def compare(a: Side, b: Side) -> Comparison:
    """`a` is before, `b` is now."""
    lines = [ComparedAccess(pair, change_of(pair)) for pair in align(a.sites, b.sites)]
    lines.sort(key=lambda line: ORDER.index(line.change.kind) if line.change else len(ORDER))
    totals = [
        Total(metric, a.totals.get(metric), b.totals.get(metric)) for metric in {**a.totals, **b.totals}
    ]
    totals.sort(key=lambda total: total.a == total.b)
    return Comparison(a, b, tuple(lines), tuple(totals))


def side_of(name: str, analysis: Analysis) -> Side:
    """An analysis as a side."""
    return Side(name, rows_by_statement(analysis), analysis.totals, launch_of(analysis), analysis.estimate)


class SavedLaunch(msgspec.Struct):
    """The launch in a saved analysis."""

    grid: tuple[Positive, Positive, Positive]
    block: tuple[Positive, Positive, Positive]
    shared_bytes: Natural
    blocks_replayed: Positive


class Saved(msgspec.Struct):
    """The part of a saved analysis that is compared."""

    sites: tuple[SiteCounts, ...]
    totals: dict[str, Natural | None]
    launch: SavedLaunch
    arch: str
    time: EstimatedTime | None = None


def side_of_document(name: str, document: Any) -> Side:
    """The output of `memsim analyze --json` as a side.

    Raises:
        MemsimError: not an analysis, or one of another schema.
    """
    if not isinstance(document, dict) or "sites" not in document or "totals" not in document:
        raise MemsimError(f"{name} is not a saved analysis", hint="memsim analyze --json prints one")
    if document.get("schema") != SCHEMA:
        raise MemsimError(f"{name} has schema {shown(document.get('schema'))}; this memsim reads {SCHEMA}")
    try:
        saved = msgspec.convert(document, Saved)
    except (msgspec.ValidationError, ValueError) as error:
        raise MemsimError(f"{name} is damaged: {error}") from None
    launch = Launch(saved.launch.grid, saved.launch.block, saved.launch.shared_bytes)
    described = describe_launch(launch, saved.launch.blocks_replayed, saved.arch)
    return Side(name, saved.sites, saved.totals, described, saved.time)
