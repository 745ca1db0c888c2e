"""What became of an access: the difference between a row before and a row now.

In: a `SitePair`. Out: the kind of change, the counts that differ, and a word about it.
Left out on purpose: whether a change matters to a budget (`memsim.guard.evaluate`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from memsim.guard.align import SitePair
from memsim.guard.baseline import COUNTS
from memsim.guard.outcome import CHANGED, IMPROVED, NEW, VANISHED, WORSE, QuantityChange

# A row is worse if one of these counts is higher, whatever the others do.
COSTS = ("instructions", "requests", "wavefronts", "conflicts", "ways", "sectors", "lines")
# What an access costs that stands alone: of each space one count.
TELLING = {"shared": "wavefronts", "constant": "requests"}


@dataclass(frozen=True, slots=True)
class Change:
    """kind: one of `memsim.guard.outcome`'s. figures: the counts that differ. reason: a word about it."""

    kind: str
    figures: tuple[QuantityChange, ...]
    reason: str = ""


def change_of(pair: SitePair) -> Change | None:
    """What became of the access; None if it is as it was, or if it could not be analyzed and cannot now."""
    before, now = pair.before, pair.now
    figures = tuple(differing_counts(pair))
    if before is None or now is None:
        alone = now or before
        telling = TELLING.get(alone.space, "sectors") if alone is not None else ""
        told = tuple(figure for figure in figures if figure.quantity == telling)
        return Change(NEW if before is None else VANISHED, told)
    if before.unresolved is not None and now.unresolved is not None:
        return None
    if now.unresolved is not None:
        return Change(WORSE, figures, f"it cannot be analyzed any more: {now.unresolved}")
    if before.unresolved is not None:
        return Change(IMPROVED, figures, f"it could not be analyzed: {before.unresolved}")
    reason = "; ".join(_edits(pair))
    costs = [figure for figure in figures if figure.quantity in COSTS]
    if any((figure.now or 0) > (figure.was or 0) for figure in costs):
        return Change(WORSE, figures, reason)
    if costs:
        return Change(IMPROVED, figures, reason)
    return Change(CHANGED, figures, reason) if figures or reason else None


def differing_counts(pair: SitePair) -> Iterator[QuantityChange]:
    """The counts that differ, the old one as the limit; all that there are of an access that stands alone."""
    for name, field in COUNTS.items():
        was, now = (
            None if site is None or getattr(site, field) is None else Fraction(getattr(site, field))
            for site in (pair.before, pair.now)
        )
        if was != now:
            yield QuantityChange(name, was, now, was)


def _edits(pair: SitePair) -> Iterator[str]:
    """What is different about the access itself."""
    before, now = pair.before, pair.now
    if before is None or now is None:
        return
    if before.width != now.width:
        yield f"it was {before.width} B a lane, and is {now.width} B"
    if before.array != now.array:
        yield f"its array was {before.array or 'not known'}"
    if " ".join(before.source.split()) != " ".join(now.source.split()):
        yield f"its code was: {before.source or 'not known'}"
