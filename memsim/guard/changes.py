"""The difference between a row before and now: the kind of change, the counts that differ, and a reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from memsim.analysis import SiteCounts
from memsim.guard.align import SitePair
from memsim.guard.baseline import COUNTS
from memsim.guard.outcome import CHANGED, IMPROVED, NEW, UNKNOWN, VANISHED, WORSE, QuantityChange
from memsim.guard.quantities import excess
from memsim.guard.statement_rows import is_within

# A row is worse if one of these counts is higher, or its excess over the ideal, whatever the others do.
COSTS = ("instructions", "requests", "wavefronts", "conflicts", "ways", "sectors", "lines")
# The count that is shown for a new or vanished access, by space.
TELLING = {"shared": "wavefronts", "constant": "requests"}


@dataclass(frozen=True, slots=True)
class Change:
    """kind: one of those in `memsim.guard.outcome`. figures: the counts that differ. reason: in words."""

    kind: str
    figures: tuple[QuantityChange, ...]
    reason: str = ""


def change_of(pair: SitePair) -> Change | None:
    """The change of the access; None if it is unchanged, as far as is known."""
    before, now = pair.before, pair.now
    figures = tuple(differing_counts(pair))
    if before is None or now is None:
        alone = now or before
        telling = TELLING.get(alone.space, "sectors") if alone is not None else ""
        told = tuple(figure for figure in figures if figure.quantity == telling)
        return Change(NEW if before is None else VANISHED, told)
    if before.unresolved is not None and now.unresolved is not None:
        edits = "; ".join(_edits(pair))
        return (
            Change(UNKNOWN, (), f"{edits}; it could not be analyzed then and cannot now") if edits else None
        )
    if now.unresolved is not None:
        return Change(WORSE, figures, f"it can no longer be analyzed: {now.unresolved}")
    if before.unresolved is not None:
        return Change(IMPROVED, figures, f"it could not be analyzed: {before.unresolved}")
    reason = "; ".join(_edits(pair))
    costs = [figure for figure in figures if figure.quantity in COSTS]
    if any((figure.now or 0) > (figure.was or 0) for figure in costs):
        return Change(WORSE, figures, reason)
    waste = _more_waste(before, now)
    if waste is not None:
        return Change(WORSE, (*figures, waste), reason)
    if costs:
        return Change(IMPROVED, figures, reason)
    return Change(CHANGED, figures, reason) if figures or reason else None


def differing_counts(pair: SitePair) -> Iterator[QuantityChange]:
    """The counts that differ, with the old one as the limit; all counts of an unmatched access."""
    for name, field in COUNTS.items():
        was, now = (
            None if site is None or getattr(site, field) is None else Fraction(getattr(site, field))
            for site in (pair.before, pair.now)
        )
        if was != now:
            yield QuantityChange(name, was, now, was)


def _more_waste(before: SiteCounts, now: SiteCounts) -> QuantityChange | None:
    """The excess over the ideal if it has grown, even if no count has: then fewer lanes or bytes use as
    much.
    """
    was, is_now = excess(before), excess(now)
    if was is None or is_now is None or is_now <= was:
        return None
    return QuantityChange("excess", was, is_now, was)


def _edits(pair: SitePair) -> Iterator[str]:
    """What changed about the access itself."""
    before, now = pair.before, pair.now
    if before is None or now is None:
        return
    if before.width != now.width:
        yield f"it was {before.width} B per lane and is now {now.width} B"
    if before.array != now.array:
        yield f"its array was {before.array or 'unknown'}"
    parts = is_within(before.statement, now.statement) or is_within(now.statement, before.statement)
    if before.statement != now.statement and not parts:
        yield f"its code was: {before.source or 'unknown'}"
