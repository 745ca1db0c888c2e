"""Who waited for whom, and for which copies, told to the clocks and marks of shared memory.

Warps count as a whole: what one lane tells or waits for, its warp does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from memsim.arch.units import WARP
from memsim.order.observed_bytes import ObservedBytes
from memsim.order.order_listener import Mask, OrderListener, Threads
from memsim.order.race import Race
from memsim.order.shared_order import SharedOrder
from memsim.order.warp_clocks import COPIES, WarpClocks
from memsim.state.launch_memory import Memory
from memsim.state.predicates import to_bools
from memsim.state.space_bytes import SpaceBytes
from memsim.state.sums import Int

#: Holder of what warps tell at the cluster's barrier.
CLUSTER = "cluster"


class SharedListener(OrderListener):
    """Finds races in shared memory.

    report: is told of each pair of instructions once in a chunk. partly: whether anything but block barriers
    orders what warps do.
    """

    def __init__(self, report: Callable[[Race], None], partly: bool) -> None:
        self._report = report
        self._partly = partly

    def start_chunk(self, threads: Threads, memory: Memory) -> None:
        self._threads = threads
        self.order = SharedOrder(*threads.shape, memory.shared_size, self._report, self._partly)
        memory.shared_as = partial(ObservedBytes, order=self.order, foreign_threads=self._foreign_threads)

    def run_together(self, mask: Mask) -> None:
        self.order.lanes.run(mask, self._threads.alive)

    def execute(self, instruction: int) -> None:
        self.order.now = instruction

    def block_barrier(self, mask: Mask = True) -> None:
        if mask is not False:
            here, alive = (np.any(to_bools(one), axis=1) for one in (mask, self._threads.alive))
            self.order.pass_barrier(here | ~alive)

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
        for peers in self._threads.peers.T:
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
        peers = np.unique(self._threads.peers[rows])
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

    def copy_to_phase(self, column: int, row: int, warp: int) -> None:
        self.order.set_sender(row, warp, self._clocks.agent(("copies", column)))

    def store_later(
        self, store: SpaceBytes, address: Int, dtype: type, active: Mask, columns: np.ndarray | None = None
    ) -> None:
        agents = None
        if columns is not None:
            lanes, agents = self._threads.full(active), np.zeros(self._threads.shape, np.int64)
            for column in np.unique(columns[lanes]).tolist():
                agents[lanes & (columns == column)] = self._clocks.agent(("copies", column))
        assert isinstance(store, ObservedBytes)
        store.send(address, dtype, active, agents)

    def commit(self, mask: Mask) -> None:
        self._clocks.commit(*self._warps(mask))

    def wait(self, mask: Mask, left: int) -> None:
        self._clocks.wait(*self._warps(mask), left)

    @property
    def _clocks(self) -> WarpClocks:
        return self.order.partly()

    def _warps(self, mask: Mask) -> tuple[np.ndarray, np.ndarray]:
        """(blocks, warps) with a lane in a mask."""
        blocks, threads = self._threads.shape
        rows, warps = np.nonzero(np.broadcast_to(self._threads.warps_of(mask), (blocks, threads // WARP)))
        return rows, warps

    def _foreign(self, rows: np.ndarray, warps: np.ndarray) -> np.ndarray:
        """The agents that warps [n] of blocks [n] are in other blocks."""
        clocks, peers = self._clocks, self._threads.peers
        ranks = (peers[rows] == rows[:, None]).argmax(1)
        first = clocks.agent("foreign", peers.shape[1] * clocks.warps)
        found: np.ndarray = first + ranks * clocks.warps + warps
        return found

    def _foreign_threads(self) -> np.ndarray:
        """The same of each thread, int64 [B, T]."""
        blocks, threads = self._threads.shape
        rows, warps = np.indices((blocks, threads // WARP)).reshape(2, -1)
        return np.repeat(self._foreign(rows, warps).reshape(blocks, -1), WARP, axis=1)


def _each(columns: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each mbarrier with where it is among columns."""
    for column in np.unique(columns).tolist():
        yield column, columns == column
