"""Which of several changes comes first, and which is worth an edit: the only rule for both.

The estimated time decides where it can, and the lower bound where two estimates differ by less than their
error. A kernel that was changed is judged against the kernel as it is by the same rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

from memsim.analysis import Analysis

#: By how much the estimated change of a time may be off: published steps of optimisation are off by less in
#: nine of ten cases (docs/time-accuracy.md, "Is it faster?"). Smaller differences decide nothing.
MARGIN = 0.09


class Verdict(Enum):
    """What a change does to a launch's time, in words."""

    WORTH = "worth an edit"
    NOT_WORTH = "not worth an edit"
    SLOWER = "estimated slower"


def verdict(before: Analysis, after: Analysis) -> Verdict:
    """Of a change: what its estimated time says, or where that is within `MARGIN`, the bound.

    Where neither is known, nothing speaks against the change. Half the sectors are worth an edit where no
    time is estimated, as the bound takes sectors that are written in part for less than they cost.
    """
    times = _elapsed(before), _elapsed(after)
    if times[0] and times[1]:
        change = times[1] / times[0] - 1
        if abs(change) > MARGIN:
            return Verdict.SLOWER if change > 0 else Verdict.WORTH
        if change > 0:
            return Verdict.NOT_WORTH
    elif before.bound.lacks or 2 * total(after, "sectors") <= total(before, "sectors"):
        return Verdict.WORTH
    if before.bound.lacks:
        return Verdict.NOT_WORTH
    return Verdict.WORTH if after.bound.cycles < before.bound.cycles else Verdict.NOT_WORTH


def quickest_first(analyses: Iterable[Analysis]) -> Callable[[Analysis], tuple[int, int]]:
    """Sort key of these: estimated time if all have one, in steps of `MARGIN`; then the lower bound."""
    times = [_elapsed(one) for one in analyses]
    known = [time for time in times if time is not None]
    shortest = min(known) if known and len(known) == len(times) else 0

    def key(analysis: Analysis) -> tuple[int, int]:
        time = _elapsed(analysis) if shortest else None
        return (0 if time is None else int((time / shortest - 1) / MARGIN)), analysis.bound.cycles

    return key


def best(before: Analysis, changed: Iterable[Analysis]) -> Analysis | None:
    """The change that comes first; of equal ones the first that is given.

    Of those that are not estimated slower, and that do not move twice the sectors of another: the bound takes
    what sectors cost for less than it is, as parts of sectors that are written are read first. Where none is
    worth an edit, of equally quick ones what wastes least: a larger launch may be worth it.
    """
    every = list(changed)
    ways = [one for one in every if verdict(before, one) is not Verdict.SLOWER] or every
    least = min((total(one, "sectors") for one in ways), default=0)
    few = [one for one in ways if total(one, "sectors") < 2 * max(least, 1)]
    quickest, pays = quickest_first(every), any(verdict(before, one) is Verdict.WORTH for one in ways)

    def key(analysis: Analysis) -> tuple[int, int, int]:
        steps, cycles = quickest(analysis)
        sites = () if pays else analysis.sites
        wasted = sum((one.needless_sectors or 0) + (one.wavefronts_of_conflicts or 0) for one in sites)
        return steps, wasted, cycles

    return min(few or ways, key=key, default=None)


def _elapsed(analysis: Analysis) -> int | None:
    return None if analysis.estimate is None else analysis.estimate.elapsed


def total(analysis: Analysis, quantity: str) -> int:
    """The sum of a count over all rows that have it."""
    return sum(getattr(site, quantity) or 0 for site in analysis.sites)
