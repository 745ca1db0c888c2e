"""What synchronizations tell `SharedOrder`: who waited for whom, and for which copies.

Warps count as a whole: what one lane tells or waits for, its warp does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.arch.units import WARP
from memsim.order.warp_clocks import COPIES, WarpClocks
from memsim.simt.active_lanes import Lanes
from memsim.state.launch_memory import Memory
from memsim.state.predicates import to_bools

#: Holder of what warps tell at the cluster's barrier.
CLUSTER = "cluster"


class SharedSync:
    """The synchronizations of a chunk of blocks; without effect if nobody asks for the order."""

    def __init__(self, lanes: Lanes, memory: Memory) -> None:
        self._lanes = lanes
        self._memory = memory

    @property
    def _clocks(self) -> WarpClocks | None:
        order = self._memory.order
        return None if order is None else order.partly()

    def _warps(self, mask: Any) -> tuple[np.ndarray, np.ndarray]:
        """(blocks, warps) with a lane in a mask."""
        lanes = self._lanes
        shape = len(lanes.blocks), lanes.threads // WARP
        rows, warps = np.nonzero(np.broadcast_to(lanes.warps_of(mask), shape))
        return rows, warps

    def whole_blocks(self, mask: Any = True) -> None:
        """All warps of blocks with a lane in the mask have waited for each other."""
        if self._memory.order is not None and mask is not False:
            here, alive = (np.any(to_bools(one), axis=1) for one in (mask, self._lanes.alive))
            self._memory.order.pass_barrier(here | ~alive)

    def arrive_named(self, number: int, mask: Any) -> None:
        """Warps arrive at a barrier and do not wait."""
        if (clocks := self._clocks) is not None:
            clocks.tell(*self._warps(mask), clocks.holder(("barrier", number)))

    def pass_named(self, number: int, mask: Any) -> None:
        """Warps have waited at a barrier for each other and for those that arrived."""
        if (clocks := self._clocks) is None:
            return
        rows, warps = self._warps(mask)
        holder = clocks.holder(("barrier", number))
        clocks.tell(rows, warps, holder)
        clocks.learn(rows, warps, holder)
        clocks.forget(rows, holder)

    def arrive(self, rows: np.ndarray, warps: np.ndarray, blocks: np.ndarray, columns: np.ndarray) -> None:
        """Warps [n] of blocks `rows` arrive at mbarriers in the memory of `blocks`, by their columns."""
        if (clocks := self._clocks) is None:
            return
        for column in np.unique(columns).tolist():
            holder = clocks.holder(("arrived", column))
            near, far = ((columns == column) & one for one in (rows == blocks, rows != blocks))
            clocks.tell(rows[near], warps[near], holder)
            if far.any():
                clocks.hear(blocks[far], holder, self._foreign(rows[far], warps[far]))
                clocks.tell(rows[far], warps[far], clocks.foreign)

    def copies_arrive(self, rows: np.ndarray, warps: np.ndarray, columns: np.ndarray) -> None:
        """When their copies by `cp.async` are done, warps [n] arrive at mbarriers of their blocks."""
        if (clocks := self._clocks) is not None:
            for column in np.unique(columns).tolist():
                at = columns == column
                clocks.hear(rows[at], clocks.holder(("arrived", column)), COPIES + warps[at])

    def phase_over(self, rows: np.ndarray, columns: np.ndarray) -> None:
        """Phases of mbarriers [n] of blocks [n] are complete, and the copies that complete there done."""
        if (clocks := self._clocks) is not None:
            for column in np.unique(columns).tolist():
                of, over = rows[columns == column], clocks.holder(("over", column))
                clocks.take(of, over, clocks.holder(("arrived", column)))
                clocks.hear(of, over, clocks.agent(("copies", column)))

    def pass_phase(self, rows: np.ndarray, warps: np.ndarray, columns: np.ndarray) -> None:
        """Warps [n] of blocks [n] have waited for a phase of an mbarrier."""
        if (clocks := self._clocks) is not None:
            for column in np.unique(columns).tolist():
                at = columns == column
                clocks.learn(rows[at], warps[at], clocks.holder(("over", column)))

    def copies_to(self, column: int, row: int, warp: int) -> None:
        """A warp makes copies that complete at an mbarrier."""
        if (clocks := self._clocks) is not None and self._memory.order is not None:
            self._memory.order.sends(row, warp, clocks.agent(("copies", column)))

    def agents_at(self, columns: np.ndarray) -> np.ndarray:
        """The agents of copies that complete at mbarriers [...]."""
        found = np.zeros_like(columns)
        if (clocks := self._clocks) is not None:
            for column in np.unique(columns).tolist():
                found[columns == column] = clocks.agent(("copies", column))
        return found

    def commit(self, mask: Any) -> None:
        """The copies by `cp.async` so far are a group."""
        if (clocks := self._clocks) is not None:
            clocks.commit(*self._warps(mask))

    def wait(self, mask: Any, left: int) -> None:
        """Warps wait until at most so many groups are in flight."""
        if (clocks := self._clocks) is not None:
            clocks.wait(*self._warps(mask), left)

    def arrive_cluster(self, mask: Any) -> None:
        """Warps arrive at the barrier of their cluster."""
        if (clocks := self._clocks) is None:
            return
        holder = clocks.holder(CLUSTER)
        rows, warps = self._warps(mask)
        clocks.tell(rows, warps, holder)
        for peers in self._lanes.peers.T:
            others = peers[rows]
            away = (others >= 0) & (others != rows)
            if away.any():
                clocks.hear(others[away], holder, self._foreign(rows[away], warps[away]))

    def pass_cluster(self, mask: Any) -> None:
        """Warps have waited at the barrier of their cluster."""
        if (clocks := self._clocks) is None or mask is False:
            return
        holder = clocks.holder(CLUSTER)
        rows, warps = self._warps(mask)
        clocks.learn(rows, warps, holder)
        peers = np.unique(self._lanes.peers[rows])
        peers = peers[peers >= 0]
        clocks.learn(peers, np.full(len(peers), clocks.foreign), holder)

    def _foreign(self, rows: np.ndarray, warps: np.ndarray) -> np.ndarray:
        """The agents that warps [n] of blocks [n] are in other blocks."""
        clocks, peers = self._clocks, self._lanes.peers
        assert clocks is not None
        ranks = (peers[rows] == rows[:, None]).argmax(1)
        first = clocks.agent("foreign", peers.shape[1] * clocks.warps)
        found: np.ndarray = first + ranks * clocks.warps + warps
        return found

    def foreign_threads(self) -> np.ndarray:
        """The same of each thread, int64 [B, T]."""
        lanes = self._lanes
        rows, warps = np.indices((len(lanes.blocks), lanes.threads // WARP)).reshape(2, -1)
        return np.repeat(self._foreign(rows, warps).reshape(len(lanes.blocks), -1), WARP, axis=1)
