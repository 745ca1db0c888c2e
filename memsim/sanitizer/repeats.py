"""Accesses to shared memory that come again and again while nothing orders any."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from memsim.order.warp_clocks import WarpClocks
from memsim.sanitizer.examples import Found, Pair, Unwritten


class Repeats:
    """Those that have been made twice, with no other one since, find what they found the last time."""

    def __init__(self, clocks: WarpClocks, found: Found) -> None:
        self._clocks, self._found = clocks, found
        self._times: dict[Hashable, int] = {}
        self._counts: dict[Hashable, list[tuple[Pair | Unwritten, int]]] = {}
        self._when = -1, b"", b""

    def end(self) -> None:
        """Something else is accessed."""
        self._times.clear()

    def make(self, access: Hashable, act: Callable[[], None]) -> None:
        """Make an access, or count what it found once more."""
        clocks = self._clocks
        when = clocks.learned, clocks.ages.tobytes(), clocks.bases.tobytes()
        if when != self._when or access not in self._times:
            self._when, self._times = when, dict.fromkeys(self._times, 0) if when == self._when else {}
        times = self._times[access] = self._times.get(access, 0) + 1
        if times > 2:
            for pair, count in self._counts[access]:
                self._found[pair].count += count
            return
        before = {pair: one.count for pair, one in self._found.items()}
        act()
        more = ((pair, one.count - before.get(pair, 0)) for pair, one in self._found.items())
        self._counts[access] = [(pair, count) for pair, count in more if count]
