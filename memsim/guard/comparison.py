"""Compares two analyses line by line and in total, differences first: kernels, revisions of one, or a saved
analysis and a fresh one.

Rows are identified by the code of their statement and their order, never by line number
(`memsim.guard.statement_rows`). They are matched in this order: same code and kind of access; same code with
another width or array; code that is a part of the other's; same kind of access in similar code; and the same
access of an array in other code between the same neighbours. An unmatched row is new or has vanished.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from fractions import Fraction
from functools import cached_property

import msgspec

from memsim.analysis import SCHEMA, Analysis, SiteCounts
from memsim.analysis.analysis import AnalyzedLaunch
from memsim.counts import COST
from memsim.errors import MemsimError, short_repr
from memsim.estimated_time import EstimatedTime, time_change
from memsim.guard.baseline import COUNTS, describe_launch, launch_of
from memsim.guard.outcome import CHANGED, IMPROVED, NEW, UNKNOWN, VANISHED, WORSE, QuantityChange
from memsim.guard.quantities import excess
from memsim.guard.statement_rows import is_within, regroup_rows, rows_by_statement, squeeze_code
from memsim.launch import Natural

# Lines of code with at least this similarity (difflib's ratio) count as one edited line.
ALIKE = 0.6


# A row is worse if one of these counts is higher, or its excess over the ideal, whatever the others do.
COSTS = ("instructions", "requests", "wavefronts", "conflicts", "ways", "sectors", "lines")
# Kinds of differences, the most important first.
ORDER = (WORSE, NEW, VANISHED, UNKNOWN, IMPROVED, CHANGED)


@dataclass(frozen=True, slots=True)
class Change:
    """kind: one of those in `memsim.guard.outcome`. figures: the counts that differ. reason: in words."""

    kind: str
    figures: tuple[QuantityChange, ...]
    reason: str = ""


@dataclass(frozen=True)
class ComparedAccess:
    """One access before and now; `before` None: it is new, `now` None: it has vanished."""

    before: SiteCounts | None
    now: SiteCounts | None

    @property
    def sites(self) -> list[SiteCounts]:
        """The access on the sides that have it, one or both."""
        return [site for site in (self.before, self.now) if site is not None]

    @property
    def rank(self) -> int:
        """The place of its change in `ORDER`; behind all of them if it is unchanged."""
        return ORDER.index(self.change.kind) if self.change else len(ORDER)

    @cached_property
    def change(self) -> Change | None:
        """None if it is unchanged, as far as is known."""
        before, now = self.before, self.now
        figures = tuple(self._differing_counts())
        if before is None or now is None:
            telling = [COST[site.space] for site in self.sites]
            told = tuple(figure for figure in figures if figure.quantity in telling)
            return Change(NEW if before is None else VANISHED, told)
        reason = "; ".join(_edits(before, now))
        if before.unresolved is not None and now.unresolved is not None:
            said = f"{reason}; it could not be analyzed then and cannot now"
            return Change(UNKNOWN, (), said) if reason else None
        if now.unresolved is not None:
            return Change(WORSE, figures, f"it can no longer be analyzed: {now.unresolved}")
        if before.unresolved is not None:
            return Change(IMPROVED, figures, f"it could not be analyzed: {before.unresolved}")
        costs = [figure for figure in figures if figure.quantity in COSTS]
        if any((figure.now or 0) > (figure.was or 0) for figure in costs):
            return Change(WORSE, figures, reason)
        was, is_now = excess(before), excess(now)
        if was is not None and is_now is not None and is_now > was:  # fewer lanes or bytes use as much
            return Change(WORSE, (*figures, QuantityChange("excess", was, is_now, was)), reason)
        if costs:
            return Change(IMPROVED, figures, reason)
        return Change(CHANGED, figures, reason) if figures or reason else None

    def _differing_counts(self) -> Iterator[QuantityChange]:
        """The counts that differ, with the old one as the limit; all counts of an unmatched access."""
        for name, field in COUNTS.items():
            was, now = (
                None if site is None or getattr(site, field) is None else Fraction(getattr(site, field))
                for site in (self.before, self.now)
            )
            if was != now:
                yield QuantityChange(name, was, now, was)


def _edits(before: SiteCounts, now: SiteCounts) -> Iterator[str]:
    """What changed about the access itself."""
    if before.width != now.width:
        yield f"it was {before.width} B per lane and is now {now.width} B"
    if before.array != now.array:
        yield f"its array was {before.array or 'unknown'}"
    if before.statement != now.statement and not _is_part(before, now):
        yield f"its code was: {before.source or 'unknown'}"


# From the strictest criterion to the loosest.
KEYS: tuple[Callable[[SiteCounts], Hashable], ...] = (
    lambda site: (squeeze_code(site.statement), site.op, site.space, site.width, site.array),
    lambda site: (squeeze_code(site.statement), site.op, site.space, site.array),
    lambda site: (squeeze_code(site.statement), site.op, site.space),
)


def align(before: Sequence[SiteCounts], now: Sequence[SiteCounts]) -> list[ComparedAccess]:
    """Pairs in the order of `now`, followed by vanished rows in the order of `before`.

    Rows of one side that together are one of the other are one row.
    """
    before, now = regroup_rows(before, now)
    partner: dict[int, int] = {}  # index in `now` -> index in `before`
    old, new = list(range(len(before))), list(range(len(now)))
    for key in KEYS:
        waiting: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        for i in old:
            waiting[key(before[i])].append(i)
        for j in new:
            if waiting[key(now[j])]:
                partner[j] = waiting[key(now[j])].popleft()
        old, new = _left(old, partner.values()), _left(new, partner)
    for may_be in (_same_code, _same_array, _same_kind):
        pairs_of_code = ((j, i) for j in new for i in old if may_be(before[i], now[j]))
        partner |= _closest(before, now, pairs_of_code, 0 if may_be is _same_code else ALIKE)
        old, new = _left(old, partner.values()), _left(new, partner)
    partner |= _closest(before, now, list(_at_one_place(before, now, partner, old, new)), 0)
    old = _left(old, partner.values())
    pairs = [ComparedAccess(before[partner[j]] if j in partner else None, now[j]) for j in range(len(now))]
    return pairs + [ComparedAccess(before[i], None) for i in old]


def _left(indexes: list[int], taken: Iterable[int]) -> list[int]:
    gone = set(taken)
    return [i for i in indexes if i not in gone]


def _same_kind(before: SiteCounts, now: SiteCounts) -> bool:
    return (before.op, before.space) == (now.op, now.space)


def _same_code(before: SiteCounts, now: SiteCounts) -> bool:
    return _same_array(before, now) and _is_part(before, now)


def _is_part(one: SiteCounts, other: SiteCounts) -> bool:
    """Whether the code of one of them is within the other's."""
    return is_within(one.statement, other.statement) or is_within(other.statement, one.statement)


def _same_array(before: SiteCounts, now: SiteCounts) -> bool:
    return _same_kind(before, now) and before.array == now.array


def _closest(
    before: Sequence[SiteCounts], now: Sequence[SiteCounts], pairs: Iterable[tuple[int, int]], least: float
) -> dict[int, int]:
    """Of pairs (index in `now`, in `before`) the most similar first, if they are similar enough."""
    scored = []
    for j, i in pairs:
        ratio = SequenceMatcher(None, before[i].statement, now[j].statement, autojunk=False).ratio()
        scored.append((-ratio, j, i))
    partner: dict[int, int] = {}
    for ratio, j, i in sorted(scored):
        if -ratio >= least and j not in partner and i not in partner.values():
            partner[j] = i
    return partner


def _at_one_place(
    before: Sequence[SiteCounts],
    now: Sequence[SiteCounts],
    partner: Mapping[int, int],
    old: list[int],
    new: list[int],
) -> Iterator[tuple[int, int]]:
    """Pairs of the same access of an array between the same matched neighbours."""
    for j in new:
        above = max((other for other in partner if other < j), default=None)
        below = min((other for other in partner if other > j), default=None)
        first = -1 if above is None else partner[above]
        last = len(before) if below is None else partner[below]
        yield from ((j, i) for i in old if first < i < last and _same_array(before[i], now[j]))


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
        return min((line.rank for line in self.lines), default=len(ORDER))

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
    lines = sorted(align(a.sites, b.sites), key=lambda line: line.rank)
    totals = [
        Total(metric, a.totals.get(metric), b.totals.get(metric)) for metric in {**a.totals, **b.totals}
    ]
    totals.sort(key=lambda total: total.a == total.b)
    return Comparison(a, b, tuple(lines), tuple(totals))


def side_of(name: str, analysis: Analysis) -> Side:
    """An analysis as a side."""
    return Side(name, rows_by_statement(analysis), analysis.totals, launch_of(analysis), analysis.estimate)


class Saved(msgspec.Struct):
    """The part of a saved analysis that is compared."""

    sites: tuple[SiteCounts, ...]
    totals: dict[str, Natural | None]
    launch: AnalyzedLaunch
    arch: str
    time: EstimatedTime | None = None


def side_of_document(name: str, document: object) -> Side:
    """The output of `memsim analyze --json` as a side.

    Raises:
        MemsimError: not an analysis, or one of another schema.
    """
    if not isinstance(document, dict) or "sites" not in document or "totals" not in document:
        raise MemsimError(f"{name} is not a saved analysis", hint="memsim analyze --json prints one")
    if document.get("schema") != SCHEMA:
        raise MemsimError(
            f"{name} has schema {short_repr(document.get('schema'))}; this memsim reads {SCHEMA}"
        )
    try:
        saved = msgspec.convert(document, Saved)
    except (msgspec.ValidationError, ValueError) as error:
        raise MemsimError(f"{name} is damaged: {error}") from None
    described = describe_launch(saved.launch, saved.launch.blocks_replayed, saved.arch)
    return Side(name, saved.sites, saved.totals, described, saved.time)
