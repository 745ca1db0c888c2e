"""Who hears of accesses while a launch runs, and what an access is a part of.

In: nothing. Out: `Site`, a place in the program that accesses memory, and `Listener`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from memsim.isa.memory import Copy
from memsim.isa.op import Op
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


class Listener(Protocol):
    """Who wants to know about accesses."""

    def start_chunk(self, engine: Any) -> None:
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

    def unknown(self, site: Site, poison: Poison, mask: Any, active: Any) -> None:
        """`site` ran, but its addresses are not known."""

    def aside(self, what: str, active: Any) -> None:
        """Threads `active` read or wrote memory by a way that is not counted; `what` is its name."""

    def executed(self, start: int, stop: int, mask: Any) -> None:
        """The threads in `mask` execute the instructions from number `start` up to `stop`."""

    def unsure(self, what: str) -> None:
        """`what` is the compiler's choice, or the chip's, and so the requests behind it."""
