"""Who waited for whom, told to the clocks of warps.

Warps count as a whole: what one lane tells or waits for, its warp does.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from memsim.order.order_listener import OrderListener, Threads, warps_in
from memsim.order.warp_clocks import COPIES, WarpClocks
from memsim.state.parts import Mask

#: Holder of what warps tell at the cluster's barrier.
CLUSTER = "cluster"


class ClockListener(OrderListener):
    """Tells `WarpClocks` of all that orders warps but barriers of whole blocks."""

    threads: Threads

    @property
    def _clocks(self) -> WarpClocks:
        """The clocks, in use from here on."""
        raise NotImplementedError

    def arrive_named(self, number: int, mask: Mask) -> None:
        clocks = self._clocks
        clocks.tell(*self._warps(mask), clocks.holder(("barrier", number)))

    def pass_named(self, number: int, mask: Mask) -> None:
        clocks, (rows, warps) = self._clocks, self._warps(mask)
        holder = clocks.holder(("barrier", number))
        clocks.tell(rows, warps, holder)
        clocks.learn(rows, warps, holder)
        clocks.forget(rows, holder)

    def arrive_cluster(self, mask: Mask) -> None:
        clocks, (rows, warps) = self._clocks, self._warps(mask)
        holder = clocks.holder(CLUSTER)
        clocks.tell(rows, warps, holder)
        for peers in self.threads.peers.T:
            others = peers[rows]
            away = (others >= 0) & (others != rows)
            if away.any():
                clocks.hear(others[away], holder, self._foreign(rows[away], warps[away]))

    def pass_cluster(self, mask: Mask) -> None:
        if mask is False:
            return
        clocks, (rows, warps) = self._clocks, self._warps(mask)
        holder = clocks.holder(CLUSTER)
        clocks.learn(rows, warps, holder)
        peers = np.unique(self.threads.peers[rows])
        peers = peers[peers >= 0]
        clocks.learn(peers, np.full(len(peers), clocks.foreign), holder)

    def arrive(self, rows: np.ndarray, warps: np.ndarray, blocks: np.ndarray, columns: np.ndarray) -> None:
        clocks = self._clocks
        for column, at in _each(columns):
            holder = clocks.holder(("arrived", column))
            near, far = at & (rows == blocks), at & (rows != blocks)
            clocks.tell(rows[near], warps[near], holder)
            if far.any():
                clocks.hear(blocks[far], holder, self._foreign(rows[far], warps[far]))
                clocks.tell(rows[far], warps[far], clocks.foreign)

    def copies_arrive(self, rows: np.ndarray, warps: np.ndarray, columns: np.ndarray) -> None:
        clocks = self._clocks
        for column, at in _each(columns):
            clocks.hear(rows[at], clocks.holder(("arrived", column)), COPIES + warps[at])

    def complete_phase(self, rows: np.ndarray, columns: np.ndarray) -> None:
        clocks = self._clocks
        for column, at in _each(columns):
            over = clocks.holder(("over", column))
            clocks.take(rows[at], over, clocks.holder(("arrived", column)))
            clocks.hear(rows[at], over, clocks.agent(("copies", column)))

    def pass_phase(self, rows: np.ndarray, warps: np.ndarray, columns: np.ndarray) -> None:
        clocks = self._clocks
        for column, at in _each(columns):
            clocks.learn(rows[at], warps[at], clocks.holder(("over", column)))

    def commit(self, mask: Mask) -> None:
        self._clocks.commit(*self._warps(mask))

    def wait(self, mask: Mask, left: int) -> None:
        self._clocks.wait(*self._warps(mask), left)

    def _warps(self, mask: Mask) -> tuple[np.ndarray, np.ndarray]:
        """(blocks, warps) with a lane in a mask."""
        return warps_in(self.threads, mask)

    def _foreign(self, rows: np.ndarray, warps: np.ndarray) -> np.ndarray:
        """The agents that warps [n] of blocks [n] are in other blocks."""
        clocks, peers = self._clocks, self.threads.peers
        ranks = (peers[rows] == rows[:, None]).argmax(1)
        first = clocks.agent("foreign", peers.shape[1] * clocks.warps)
        found: np.ndarray = first + ranks * clocks.warps + warps
        return found


def _each(columns: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each mbarrier with where it is among columns."""
    for column in np.unique(columns).tolist():
        yield column, columns == column
