"""The bytes of shared memory, told to what follows their order as they are read and written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from memsim.order.order_listener import Mask
from memsim.order.shared_order import SharedOrder
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
