"""Who accessed which bytes of shared memory, and who waited for whom, told to its clocks and marks.

Warps count as a whole: what one lane tells or waits for, its warp does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from memsim.arch.units import WARP
from memsim.order.order_listener import Mask, OrderListener, Race, Threads
from memsim.order.shared_order import SharedOrder
from memsim.order.warp_clocks import COPIES, WarpClocks
from memsim.state.launch_memory import Memory
from memsim.state.poison import Poison
from memsim.state.predicates import to_bools
from memsim.state.registers import plus
from memsim.state.space_bytes import Change, SpaceBytes
from memsim.state.sums import Int


class ObservedBytes(SpaceBytes):
    """Shared memory that tells `SharedOrder` of each access.

    foreign_threads: the agents [B, T] that threads are where they access memory of other blocks.
    """

    def __init__(self, *space: Any, order: SharedOrder, foreign_threads: Callable[[], np.ndarray]) -> None:
        super().__init__(*space)
        self._order = order
        self._foreign_threads = foreign_threads
        self._agents: np.ndarray | None = None

    def of_rows(self, rows: np.ndarray) -> ObservedBytes:
        found = super().of_rows(rows)
        assert isinstance(found, ObservedBytes)
        found._agents = self._foreign_threads()
        return found

    def load(self, address: Int, dtype: type, active: Mask) -> np.ndarray:
        found = super().load(address, dtype, active)
        with self._as_accessed():
            self._order.load(*self._elements(address, dtype), active)
        return found

    def store(self, address: Int, values: np.ndarray, active: Mask) -> None:
        # What is there before and after tells stores of the same value, and whose value is lost where lanes
        # meet. As bits, in which a NaN is what it is.
        size = values.dtype.itemsize
        bits = np.ascontiguousarray(values).view(f"u{size}")
        dtype = bits.dtype.type
        view, index = self.view(dtype), self.positions(address, dtype, active)
        with self._as_accessed():
            meets = self._order.store(*self._elements(address, dtype), active)
            same: np.ndarray = np.zeros((1, 1), bool)
            if meets:
                same = self._read(view, index) == bits
                if self.unknown is not None:
                    same = same & (self._read(self.unknown.view(bits.dtype), index) == 0)
            self._store_at(index, bits, active)
            stays = self._read(view, index) == bits
            if meets:
                self._order.overlap(index, size, active, same, stays)
            elif not (stays | ~to_bools(active)).all():
                self._order.differ(index, size, active, ~stays)

    def update(
        self,
        address: Int,
        dtype: type,
        active: Mask,
        operation: str,
        values: list[np.ndarray],
        returns: bool,
        change: Change | None = None,
    ) -> np.ndarray:
        found = super().update(address, dtype, active, operation, values, returns, change)
        self._tell_update(address, dtype, active, operation)
        return found

    def exchange_pairs(
        self, address: Int, active: Mask, operation: str, values: list[list[np.ndarray]]
    ) -> list[np.ndarray]:
        found = super().exchange_pairs(address, active, operation, values)
        for word in (address, plus(address, 8)):
            self._tell_update(word, np.uint64, active, operation)
        return found

    def _tell_update(self, address: Int, dtype: type, active: Mask, operation: str) -> None:
        with self._as_accessed():
            self._order.update(*self._elements(address, dtype), active, operation)

    def put(
        self, row: int, address: np.ndarray, values: np.ndarray, why: tuple[np.ndarray, Poison] | None
    ) -> None:
        self._order.overwrite(row, address - self.base)
        super().put(row, address, values, why)

    def send(self, address: Int, dtype: type, active: Mask, agents: np.ndarray | None) -> None:
        """What threads have just stored is there later: see `SharedOrder.send`."""
        with self._as_accessed():
            self._order.send(*self._elements(address, dtype), active, agents)

    def _elements(self, address: Int, dtype: type) -> tuple[np.ndarray, int]:
        """The index of each thread's element, active or not, and its bytes."""
        return self.positions(address, dtype, True), np.dtype(dtype).itemsize

    def _as_accessed(self) -> AbstractContextManager[None]:
        """As threads access it, of their own block or of others."""
        if self._agents is None:
            return nullcontext()
        return self._order.as_foreign(self.given, self._agents)


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
