"""Who accessed which bytes of shared memory, told to its marks; who waited for whom, to its clocks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import numpy as np

from memsim.arch.units import WARP
from memsim.order.order_listener import Race, Threads
from memsim.order.shared_order import SharedOrder
from memsim.order.warp_clocks import ClockListener, WarpClocks
from memsim.state.launch_memory import Memory
from memsim.state.parts import Mask
from memsim.state.poison import Poison
from memsim.state.predicates import to_bools
from memsim.state.registers import plus
from memsim.state.space_bytes import SpaceBytes
from memsim.state.sums import Int
from memsim.state.updates import Change


class ObservedBytes(SpaceBytes):
    """Shared memory that tells `SharedOrder` of each access.

    foreign_threads: the agents [B, T] that threads are where they access memory of other blocks.
    """

    def __init__(
        self,
        data: np.ndarray,
        base: int,
        shape: tuple[int, int],
        rows: str,
        *,
        order: SharedOrder,
        foreign_threads: Callable[[], np.ndarray],
    ) -> None:
        super().__init__(data, base, shape, rows)
        self._order = order
        self._foreign_threads = foreign_threads
        self._agents: np.ndarray | None = None

    def of_rows(self, rows: np.ndarray) -> ObservedBytes:
        found = super().of_rows(rows)
        assert isinstance(found, ObservedBytes)
        found._agents = self._foreign_threads()
        return found

    def load(
        self, address: Int, dtype: type, active: Mask, unused: int = 0, *, is_known: bool = False
    ) -> np.ndarray:
        found = super().load(address, dtype, active, unused, is_known=is_known)
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


class SharedListener(ClockListener):
    """Finds races in shared memory.

    report: is told of each pair of instructions once in a chunk. partly: whether anything but block barriers
    orders what warps do.
    """

    def __init__(self, report: Callable[[Race], None], partly: bool) -> None:
        self._report = report
        self._partly = partly
        #: As in `SharedOrder`, in all chunks.
        self.reach: dict[int, tuple[int, int]] = {}

    def start_chunk(self, threads: Threads, memory: Memory) -> None:
        self.threads = threads
        self.order = SharedOrder(*threads.shape, memory.shared_size, self._report, self._partly)
        self.order.reach = self.reach
        memory.shared_as = partial(ObservedBytes, order=self.order, foreign_threads=self._foreign_threads)

    def run_together(self, mask: Mask) -> None:
        self.order.lanes.run(mask, self.threads.alive)

    def execute(self, instruction: int) -> None:
        self.order.now = instruction

    def block_barrier(self, mask: Mask = True) -> None:
        if mask is not False:
            here, alive = (np.any(to_bools(one), axis=1) for one in (mask, self.threads.alive))
            self.order.pass_barrier(here | ~alive)

    def copy_to_phase(self, column: int, row: int, warp: int) -> None:
        self.order.set_sender(row, warp, self._clocks.agent(("copies", column)))

    def store_later(
        self, store: SpaceBytes, address: Int, dtype: type, active: Mask, columns: np.ndarray | None = None
    ) -> None:
        agents = None
        if columns is not None:
            lanes, agents = self.threads.full(active), np.zeros(self.threads.shape, np.int64)
            for column in np.unique(columns[lanes]).tolist():
                agents[lanes & (columns == column)] = self._clocks.agent(("copies", column))
        assert isinstance(store, ObservedBytes)
        store.send(address, dtype, active, agents)

    @property
    def _clocks(self) -> WarpClocks:
        return self.order.partly()

    def _foreign_threads(self) -> np.ndarray:
        """The same of each thread, int64 [B, T]."""
        blocks, threads = self.threads.shape
        rows, warps = np.indices((blocks, threads // WARP)).reshape(2, -1)
        return np.repeat(self._foreign(rows, warps).reshape(blocks, -1), WARP, axis=1)
