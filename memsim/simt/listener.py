"""Who hears of accesses while a launch runs, and what an access is a part of.

In: nothing. Out: `Site`, a place in the program that accesses memory, and `Listener`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from memsim.isa.access import Copy
from memsim.isa.op import Op
from memsim.simt.active_lanes import Lanes
from memsim.state.registers import Poison
from memsim.state.sums import Int


@dataclass(frozen=True)
class Site:
    """A place in the program that accesses shared or global memory."""

    index: int
    instruction: Op
    op: str
    space: str
    width: int


class Sites:
    """The access sites of a program, each made on first sight."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, str, str], Site] = {}

    def site(self, op: Op, kind: str, space: str, width: int) -> Site:
        """The access site of an instruction in a state space."""
        key = (op.index, kind, space)
        if key not in self.known:
            number = sum(one[0] == op.index for one in self.known)
            self.known[key] = Site(op.index * 8 + number, op, kind, space, width)
        return self.known[key]

    def of(self, op: Op) -> list[Site]:
        """The sites that an instruction is known to have."""
        return [site for (index, _, _), site in self.known.items() if index == op.index]


class Listener(Protocol):
    """Who wants to know about accesses."""

    def start_chunk(self, engine: Lanes) -> None:
        """A new chunk of blocks begins."""

    def access(
        self,
        site: Site,
        address: Int,
        mask: Any,
        active: Any,
        arrays: frozenset[str],
        other: Copy | None = None,
    ) -> None:
        """`site` ran for the threads in `mask`; those in `active` accessed `address` (bytes).

        Shared addresses count from the kernel's first byte of shared memory. `other`: a copy's other end.
        """

    def stretches(
        self,
        site: Site,
        arrays: frozenset[str],
        start: np.ndarray,
        length: np.ndarray,
        block: np.ndarray,
        warp: np.ndarray,
    ) -> None:
        """Warps [m] of blocks [m] of the chunk have `length` bytes from `start` on copied [m]."""

    def unknown(self, site: Site, poison: Poison, mask: Any, active: Any) -> None:
        """`site` ran, but its addresses are not known."""

    def aside(self, what: str, active: Any) -> None:
        """Threads `active` read or wrote memory by a way that is not counted; `what` is its name."""

    def executed(self, start: int, stop: int, mask: Any) -> None:
        """The threads in `mask` execute the instructions from number `start` up to `stop`."""

    def unsure(self, what: str) -> None:
        """`what` is the compiler's choice, or the chip's, and so the requests behind it."""
