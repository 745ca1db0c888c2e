"""The interface of listeners to a launch, and the sites of its accesses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Protocol

import numpy as np

from memsim.access import Chunk, Site, SiteAccess, Stretches
from memsim.isa.program import Op
from memsim.state.parts import Mask
from memsim.state.poison import Poison
from memsim.state.predicates import ScatteredLanes


class Sites:
    """The access sites of a program, created on first use."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, str, str], Site] = {}
        self._count: Counter[int] = Counter()

    def site(self, op: Op, access: str, space: str, width: int) -> Site:
        """The access site of an instruction in a state space; of one that fetches from textures of several
        texel sizes, one for each.
        """
        key = (op.index, f"{access} {width}" if space == "texture" else access, space)
        if key not in self.known:
            self.known[key] = Site(op.index * 8 + self._count[op.index], op, access, space, width)
            self._count[op.index] += 1
        return self.known[key]

    def of(self, op: Op) -> list[Site]:
        """The known sites of an instruction."""
        return [site for (index, _, _), site in self.known.items() if index == op.index]


#: Tells a listener that the threads which made an access make it again, in the same chunk. False: it has to
#: be told anew.
Again = Callable[[], bool]


class Listener(Protocol):
    """Receives the accesses of a launch."""

    def start_chunk(self, chunk: Chunk) -> None:
        """A new chunk of blocks starts."""

    def access(self, made: SiteAccess) -> Again | None:
        """A site was executed."""

    def scattered(
        self, site: Site, address: np.ndarray, lanes: ScatteredLanes, warps: int, arrays: frozenset[str]
    ) -> None:
        """`site` was executed by `warps` warps; `lanes` accessed `address` (bytes) [n]."""

    def stretches(self, site: Site, arrays: frozenset[str], made: Stretches) -> None:
        """Warps copy stretches of bytes."""

    def issued(self, site: Site, lanes: int) -> None:
        """So many lanes executed a copy by TMA."""

    def unknown(self, site: Site, poison: Poison, mask: Mask, active: Mask) -> None:
        """`site` was executed, but its addresses are unknown."""

    def uncounted(self, what: str, active: Mask) -> None:
        """Threads `active` made an access whose cost is unknown; `what` is its name in the singular."""

    def noted(self, what: str, active: Mask) -> None:
        """Threads `active` made requests that waste nothing and that no counter of ours has."""

    def executed(self, start: int, stop: int, mask: Mask) -> None:
        """The threads in `mask` execute the instructions from number `start` up to `stop`."""

    def passed_by(self, where: str, writes: int, mask: Mask) -> None:
        """A branch at `where` decides no access; which lanes in `mask` take it is unknown or was not worked
        out, and of the instructions behind it only some are counted. writes: slots that these may write.
        """

    def uncertain(self, what: str) -> None:
        """Requests may depend on a choice of the compiler or the chip, described by `what`."""
