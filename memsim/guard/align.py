"""Which row of one analysis is which row of another.

In: the rows before and now, each in their order. Out: pairs, one side None where an access is new or has
vanished. Rows are told apart by the code of their line and their order, never by the line's number:
first the same code and kind of access, then the same code in another width or array, and last the same
kind of access in code that is alike.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from memsim.analysis import SiteCounts

# Two lines of code are one line that was edited if so much of them is the same (difflib's ratio).
ALIKE = 0.6


@dataclass(frozen=True, slots=True)
class Pair:
    """One access before and now; `before` None: it is new, `now` None: it has vanished."""

    before: SiteCounts | None
    now: SiteCounts | None


def _code(site: SiteCounts) -> str:
    """The line without its spacing."""
    return " ".join(site.source.split())


# From the closest likeness to the loosest.
KEYS: tuple[Callable[[SiteCounts], Hashable], ...] = (
    lambda site: (_code(site), site.op, site.space, site.width, site.array),
    lambda site: (_code(site), site.op, site.space, site.array),
    lambda site: (_code(site), site.op, site.space),
)


def align(before: Sequence[SiteCounts], now: Sequence[SiteCounts]) -> list[Pair]:
    """Pairs in the order of `now`; what has vanished stands last, in the order of `before`."""
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
    partner |= _alike(before, now, old, new)
    old = _left(old, partner.values())
    pairs = [Pair(before[partner[j]] if j in partner else None, now[j]) for j in range(len(now))]
    return pairs + [Pair(before[i], None) for i in old]


def _left(indexes: list[int], taken: Iterable[int]) -> list[int]:
    gone = set(taken)
    return [i for i in indexes if i not in gone]


def _alike(
    before: Sequence[SiteCounts], now: Sequence[SiteCounts], old: list[int], new: list[int]
) -> dict[int, int]:
    """Edited lines: the most alike first, of the same operation, space and array."""
    scored = []
    for j in new:
        for i in old:
            a, b = before[i], now[j]
            if (a.op, a.space, a.array) == (b.op, b.space, b.array):
                ratio = SequenceMatcher(None, _code(a), _code(b), autojunk=False).ratio()
                scored.append((-ratio, j, i))
    partner: dict[int, int] = {}
    for ratio, j, i in sorted(scored):
        if -ratio >= ALIKE and j not in partner and i not in partner.values():
            partner[j] = i
    return partner
