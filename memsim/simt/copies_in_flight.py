"""Copies that bypass the L1 cache (`cp.async.cg`) and may not have arrived yet.

If a later copy overwrites the destination of one in flight, the chip need not fetch the data of the first: an
H200 counted half of the sectors where each copy was overwritten at once, an eighth where eight warps copied
to the same place, and another number in each run where a ring of buffers is one too short. Source:
docs/model.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from memsim.arch.units import WARP
from memsim.order.order_listener import OrderListener, Threads
from memsim.state.launch_memory import Memory
from memsim.state.parts import Mask, Part
from memsim.state.predicates import to_bools
from memsim.state.registers import Sum, bounds, to_array
from memsim.state.sums import Int


@dataclass(slots=True)
class _Pipeline:
    """Copies of warps that run together: committed groups, and of copies that were not waited for the group,
    by the bounds of the destination.
    """

    groups: int = 0
    pending: dict[tuple[int, int], int] = field(default_factory=dict)


class CopiesInFlight(OrderListener):
    """The copies of a chunk of blocks since their last waits."""

    def start_chunk(self, threads: Threads, memory: Memory) -> None:
        self._lanes = threads
        self._pipelines: dict[int, _Pipeline] = {}
        self._meeting: dict[tuple[int, ...], bool] = {}

    def copy(self, destination: Int, mask: Mask, active: Mask) -> bool:
        """Issue a copy by the lanes `active`; whether another one to the same place may be in flight.

        Of earlier copies only those of groups that were committed count: PTX has no instruction that waits.
        """
        if active is not False and self._warps_meet(destination, active):
            return True
        pipeline = self._pipeline(mask)
        key = bounds(destination)
        before = pipeline.pending.get(key, pipeline.groups)
        pipeline.pending[key] = pipeline.groups
        return before < pipeline.groups

    def commit(self, mask: Mask) -> None:
        self._pipeline(mask).groups += 1

    def wait(self, mask: Mask, left: int) -> None:
        """Of other warps any may have waited, too."""
        mine = self._pipeline(mask)
        self._pipelines = {_key(mask): mine}
        arrived = mine.groups - left
        mine.pending = {key: group for key, group in mine.pending.items() if group >= arrived}

    def _warps_meet(self, destination: Int, active: Mask) -> bool:
        """Do lanes of different warps of a block copy to the same place?"""
        parts = destination.parts if isinstance(destination, Sum) else ()
        key = (*(part.uid for part in parts), _key(active))
        if key not in self._meeting:
            lanes, place = self._lanes, to_array(destination)
            alike = len(place) == 1 and len(to_bools(active)) == 1  # in all blocks, so one is looked at
            rows, threads = np.nonzero(lanes.full(active)[: 1 if alike else None])
            places = np.broadcast_to(place, lanes.shape)[rows, threads] + (rows << 32)
            warps = lanes.threads // WARP
            of_warps = np.sort(places * warps + threads // WARP)  # np.unique takes forty times as long
            before, after = of_warps[:-1], of_warps[1:]
            self._meeting[key] = bool(((before != after) & (before // warps == after // warps)).any())
        return self._meeting[key]

    def _pipeline(self, mask: Mask) -> _Pipeline:
        return self._pipelines.setdefault(_key(mask), _Pipeline())


def _key(mask: Mask) -> int:
    return int(mask.uid) if isinstance(mask, Part) else -1
