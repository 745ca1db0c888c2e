"""Tells whether the accesses of a few blocks are regular, before many of them run at once."""

from __future__ import annotations

from typing import Any

from memsim.isa.access import Copy
from memsim.simt.listener import Site
from memsim.state.parts import Part
from memsim.state.registers import Sum
from memsim.state.sums import Int


class RegularAccesses:
    """A listener for the blocks.

    are_regular: every address was a sum of a block's part and a thread's part, and which lanes executed an
    instruction or accessed memory depended on the block or on the thread, but not on both.
    """

    def __init__(self) -> None:
        self.are_regular = True

    def access(
        self,
        site: Site,
        address: Int,
        mask: Any,
        active: Any,
        arrays: frozenset[str],
        other: Copy | None = None,
    ) -> None:
        """Look at the address and the lanes."""
        sides = [(address, active)] if other is None else [(address, active), (other.address, other.active)]
        for place, lanes in sides:
            if (isinstance(place, Sum) and place.f is not None) or _is_of_each_thread(lanes):
                self.are_regular = False

    def executed(self, start: int, stop: int, mask: Any) -> None:
        """Look at the lanes that execute something."""
        if _is_of_each_thread(mask):
            self.are_regular = False

    def irregular(self, *event: Any) -> None:
        """Accesses of single lanes, and copies that are known warp by warp."""
        self.are_regular = False

    def ignore(self, *event: Any) -> None:
        """Nothing to see."""

    scattered = stretches = irregular
    start_chunk = issued = unknown = uncounted = uncertain = passed_by = ignore


def _is_of_each_thread(lanes: Any) -> bool:
    return isinstance(lanes, Part) and min(lanes.shape) > 1
