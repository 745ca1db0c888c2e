"""The bytes of a state space, accessed by whole warps at once, with unknown bytes marked."""

from __future__ import annotations

from copy import copy

import numpy as np

from memsim.state.parts import Part
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import both, from_bools, to_bools
from memsim.state.registers import Sum, floats, from_array, ints, plus, to_array
from memsim.state.updates import Change, update_elements

#: Bytes that are looked through faster than the marks of those that one instruction loads.
SMALL = 1 << 16


class SpaceBytes:
    """The bytes of one state space: shape (1, n) for global and constant memory, (B, n) for shared, (B * T,
    n) for local memory.
    """

    def __init__(self, data: np.ndarray, base: int, shape: tuple[int, int], rows: str) -> None:
        self.data = data
        self.base = base
        self.shape = shape
        self.rows = rows
        #: Why all of it is unknown.
        self.poison: Poison | None = None
        #: For each byte of `data` the number of the reason why it is unknown, from 1; 0: known.
        self.unknown: np.ndarray | None = None
        self.reasons: list[Poison] = []
        #: The number for bytes that were never written.
        self.fresh = 0
        self.given: np.ndarray = np.zeros((1, 1), np.int64)
        self._questions = 0
        self._views: dict[type, np.ndarray] = {}

    def view(self, dtype: type) -> np.ndarray:
        """The bytes as elements, one row for each owner."""
        if dtype not in self._views:
            self._views[dtype] = self.data.view(dtype)
        return self._views[dtype]

    def positions(self, address: int | Sum, dtype: type, active: bool | Part) -> np.ndarray:
        """Element index of each thread, for inactive ones that of an active one; broadcasts to (B, T)."""
        index: np.ndarray = to_array(address) - self.base
        index >>= np.dtype(dtype).itemsize.bit_length() - 1
        return of_active(index, active)

    def of_rows(self, rows: np.ndarray) -> SpaceBytes:
        """The same bytes, with each thread accessing the given row, int64 [B, T]."""
        if self.unknown is None:
            self.unknown = np.zeros_like(self.data)
        found = copy(self)
        found.rows, found.given = "given", rows
        return found

    def row_of(self) -> np.ndarray | int:
        """The row that each thread accesses."""
        blocks, threads = self.shape
        if self.rows == "one":
            return 0
        if self.rows == "given":
            return self.given
        if self.rows == "block":
            return np.arange(blocks)[:, None]
        return np.arange(blocks * threads).reshape(blocks, threads)

    def load(
        self, address: int | Sum, dtype: type, active: bool | Part, unused: int = 0, *, is_known: bool = False
    ) -> np.ndarray:
        """The value read by each thread, in the smallest shape. unused: bits of it, of whole bytes, that may
        be any. is_known: by `lost`, no value is unknown.

        Raises:
            Poisoned: a value is unknown.
        """
        if not is_known:
            self.check(address, dtype, active, unused)
        run = self._run(address, dtype, active)
        if run is not None:
            whole: np.ndarray = self.view(dtype)[0][run].reshape(self.shape).copy()
            return whole
        if self.rows == "one" and isinstance(active, Part) and min(active.shape) > 1:
            return self._load_some(address, dtype, active)
        if self.rows == "one" and (found := self._load_rows(address, dtype, active)) is not None:
            return found
        return self._read(self.view(dtype), self.positions(address, dtype, active))

    def _run(self, address: int | Sum, dtype: type, active: bool | Part) -> slice | None:
        """The elements of all threads, if they are one after the other; None if they are not."""
        if self.rows != "one" or active is not True or not isinstance(address, Sum):
            return None
        (blocks, threads), size, v = self.shape, np.dtype(dtype).itemsize, address.v
        u = np.zeros((1, 1), np.int64) if address.u is None else address.u.array
        if v is None or v.shape[1] != threads or len(u) != blocks:
            return None
        of_threads, of_blocks = v.array[0], u[:, 0]
        if (np.diff(of_threads) != size).any() or (np.diff(of_blocks) != threads * size).any():
            return None
        start = (address.s - self.base + int(of_threads[0]) + int(of_blocks[0])) // size
        return slice(start, start + blocks * threads)

    def _load_rows(self, address: int | Sum, dtype: type, active: bool | Part) -> np.ndarray | None:
        """The same where the threads of each row read consecutive elements; None if they do not."""
        view, threads, size = self.view(dtype)[0], self.shape[1], np.dtype(dtype).itemsize
        if not isinstance(address, Sum) or address.u is None or address.v is None or len(view) < threads:
            return None
        if isinstance(active, Part) and active.shape[1] > 1:
            return None
        of_threads = address.v.array[0]
        if (np.diff(of_threads) != size).any():
            return None
        first = (address.u.array + (address.s + int(of_threads[0]) - self.base)) // size
        places = of_active(first, active)
        found: np.ndarray = np.lib.stride_tricks.sliding_window_view(view, threads)[places[:, 0]]
        return found

    def _load_some(self, address: int | Sum, dtype: type, active: Part) -> np.ndarray:
        """The same of scattered lanes only; 0 in the others."""
        lanes = active.lanes
        index = np.broadcast_to(to_array(address), self.shape).reshape(-1)[lanes] - self.base
        index >>= np.dtype(dtype).itemsize.bit_length() - 1
        found: np.ndarray = np.zeros(self.shape, dtype)
        found.reshape(-1)[lanes] = self.view(dtype)[0][index]
        return found

    def check(self, address: int | Sum, dtype: type, active: bool | Part, unused: int = 0) -> None:
        """Raise Poisoned if a thread reads something unknown."""
        lost = self.lost(address, dtype, active, unused)
        if lost is not False:
            raise Poisoned(self.why(address, dtype, lost))

    @property
    def all_known(self) -> bool:
        """Whether no byte is unknown."""
        return self.poison is None and self.unknown is None

    def lost(self, address: int | Sum, dtype: type, active: bool | Part, unused: int = 0) -> bool | Part:
        """The threads that read something unknown, but for bits `unused` of it."""
        if self.poison:
            return active
        if self.unknown is None:
            return False
        self._questions += 1
        if (self.unknown.size <= SMALL or self._questions % 64 == 0) and not np.count_nonzero(self.unknown):
            self.unknown = None  # everything has been overwritten
            return False
        marks = self.unknown.view(f"u{np.dtype(dtype).itemsize}")
        found = self._read(marks, self.positions(address, dtype, active))
        if unused:
            found = found & ~marks.dtype.type(unused)
        return both(active, from_bools(found != 0))

    def why(self, address: int | Sum, dtype: type, lost: bool | Part) -> Poison:
        """Why the values read by these threads are unknown."""
        if self.poison is not None:
            return self.poison
        assert self.unknown is not None
        marks = self.unknown.view(f"u{np.dtype(dtype).itemsize}")
        found = np.broadcast_to(self._read(marks, self.positions(address, dtype, lost)), self.shape)
        first = found[np.broadcast_to(to_bools(lost), self.shape)][0]
        return self.reasons[max(int(first).to_bytes(8, "little")) - 1]

    def forget(self, address: int | Sum, dtype: type, active: bool | Part, why: Poison) -> None:
        """Threads write something unknown."""
        if self.unknown is None:
            self.unknown = np.zeros_like(self.data)
        marks = self.unknown.view(f"u{np.dtype(dtype).itemsize}")
        value = int.from_bytes(bytes([self._number(why)] * marks.itemsize), "little")
        self._write(marks, self.positions(address, dtype, active), marks.dtype.type(value), active)

    def get(self, row: int, address: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, Poison] | None]:
        """The bytes at addresses of a row, uint8 [n]; and which are unknown [n], and why; None: none are."""
        at = address - self.base
        found = self.data[row, at]
        if self.poison is not None:
            return found, (np.ones(len(at), bool), self.poison)
        if self.unknown is None:
            return found, None
        marks = self.unknown[row, at]
        lost = marks != 0
        return found, (lost, self.reasons[int(marks.max()) - 1]) if lost.any() else None

    def put(
        self, row: int, address: np.ndarray, values: np.ndarray, why: tuple[np.ndarray, Poison] | None
    ) -> None:
        """Write bytes, uint8 [n], to addresses of a row; some may be unknown."""
        at = address - self.base
        self.data[row, at] = values
        if why is not None:
            if self.unknown is None:
                self.unknown = np.zeros_like(self.data)
            self.unknown[row, at] = np.where(why[0], self._number(why[1]), 0)
        elif self.unknown is not None:
            self.unknown[row, at] = 0

    def never_written(self, why: Poison, size: int) -> None:
        """Its first `size` bytes are undefined; bytes after them belong to no buffer."""
        self.unknown = np.zeros_like(self.data)
        self.fresh = self._number(why)
        self.unknown[:, :size] = self.fresh

    def begin_words(self, address: int | Sum, active: bool | Part) -> None:
        """Undefined bytes of words that threads partially write become 0.

        A spilled register of which the kernel uses a half is stored as a half and loaded as a whole.
        """
        if self.unknown is None:
            return
        marks, index = self.unknown.view(np.uint32), self.positions(address, np.uint32, active)
        pieces = np.ascontiguousarray(self._read(marks, index))[..., None].view(np.uint8)
        words = np.where(pieces == self.fresh, np.uint8(0), pieces).view(np.uint32)[..., 0]
        self._write(marks, index, words, active)

    def _number(self, why: Poison) -> int:
        """The number of a reason; after 254 of them the last one is reused."""
        told = why.story()
        for number, reason in enumerate(self.reasons, 1):
            if reason.story() == told:
                return number
        if len(self.reasons) < 255:
            self.reasons.append(why)
        return len(self.reasons)

    def _read(self, view: np.ndarray, index: np.ndarray) -> np.ndarray:
        found: np.ndarray
        if self.rows == "one":
            found = view[0][index]
        elif self.rows == "block" and index.shape[0] == 1:
            found = view[:, index[0]]
        else:
            found = view.reshape(-1)[self._places(view, index)]
        return found

    def _places(self, view: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Of elements of each thread's row, the positions in all rows, one after the other."""
        found: np.ndarray = index + self.row_of() * view.shape[1]
        return found

    def store(self, address: int | Sum, values: np.ndarray, active: bool | Part) -> None:
        """Write each active thread's value; if several write to the same place, the last thread wins."""
        run = self._run(address, values.dtype.type, active) if self.unknown is None else None
        if run is not None:
            self.view(values.dtype.type)[0][run].reshape(self.shape)[...] = values
            return
        self._store_at(self.positions(address, values.dtype.type, active), values, active)

    def _store_at(self, index: np.ndarray, values: np.ndarray, active: bool | Part) -> None:
        self._write(self.view(values.dtype.type), index, values, active)
        if self.unknown is not None:
            marks = self.unknown.view(f"u{values.dtype.itemsize}")
            self._write(marks, index, marks.dtype.type(0), active)

    def update(
        self,
        address: int | Sum,
        dtype: type,
        active: bool | Part,
        operation: str,
        values: list[np.ndarray],
        returns: bool,
        change: Change | None = None,
    ) -> np.ndarray:
        """Read-modify-write of every active thread, in the order of thread and block numbers.

        Returns the values before each thread's update, shape (B, T). The hardware guarantees no order; this
        one is legal. `change`: the function of `operation`, unless it is numpy's.

        Raises:
            Poisoned: a value is unknown.
        """
        self.check(address, dtype, active)
        view = self.view(dtype)
        mask = np.broadcast_to(to_bools(active), self.shape)
        index = self.positions(address, dtype, active)
        places = np.broadcast_to(self._places(view, index), self.shape)[mask]
        b, c = ([np.broadcast_to(v, self.shape)[mask] for v in values] + [None, None])[:2]
        assert b is not None
        old: np.ndarray = np.zeros(self.shape, dtype)
        seen = update_elements(view.reshape(-1), places, operation, b, c, returns, change)
        if seen is not None:
            old[mask] = seen
        return old

    def exchange_pairs(
        self, address: int | Sum, active: bool | Part, operation: str, values: list[list[np.ndarray]]
    ) -> list[np.ndarray]:
        """16-byte exchange (`exch`), or compare and swap (`cas`), lane by lane; returns what was there.

        values: of each operand the lower and the upper word, which broadcast to (B, T).

        Raises:
            Poisoned: a value is unknown.
        """
        for word in (address, plus(address, 8)):
            self.check(word, np.uint64, active)
        view = self.view(np.uint64).reshape(-1)
        index = self.positions(address, np.uint64, active)
        places = np.broadcast_to(self._places(self.view(np.uint64), index), self.shape)
        operands = [[np.broadcast_to(word, self.shape) for word in value] for value in values]
        old = [np.zeros(self.shape, np.uint64) for _ in range(2)]
        for lane in zip(*np.nonzero(np.broadcast_to(to_bools(active), self.shape))):
            at = places[lane]
            there = view[at], view[at + 1]
            old[0][lane], old[1][lane] = there
            expected = tuple(word[lane] for word in operands[0])
            if operation == "exch" or there == expected:
                view[at], view[at + 1] = (word[lane] for word in operands[-1])
        return old

    def _write(
        self, view: np.ndarray, index: np.ndarray, values: np.ndarray | np.generic, active: bool | Part
    ) -> None:
        elements, places = view.reshape(-1), self._places(view, index)
        if places.shape != self.shape:
            places = np.broadcast_to(places, self.shape)
        if np.shape(values) != self.shape:
            values = np.broadcast_to(values, self.shape)
        if active is True:
            elements[places] = values
            return
        if isinstance(active, Part) and active.shape == self.shape:
            lanes = active.lanes
        else:
            lanes = np.flatnonzero(np.broadcast_to(to_bools(active), self.shape))
        elements[places.reshape(-1)[lanes]] = values.reshape(-1)[lanes]


def of_active(index: np.ndarray, active: bool | Part) -> np.ndarray:
    """Places, with those of inactive threads replaced by that of the first active one; 0 if there is none.

    What inactive threads load then is within the bounds of what the others load.
    """
    if active is True:
        return index
    mask = to_bools(active)
    row, column = divmod(int(mask.argmax()), mask.shape[1])
    one = index[row % index.shape[0], column % index.shape[1]] if mask[row, column] else 0
    return np.where(mask, index, one)


def as_register(array: np.ndarray) -> int | Sum | np.ndarray:
    """A loaded element as a register value."""
    if array.dtype.kind == "f":
        return array
    return from_array(np.ascontiguousarray(array).view(f"i{array.dtype.itemsize}").astype(np.int64))


def to_store(value: object, dtype: type) -> np.ndarray:
    """A register's value as elements to write.

    Raises:
        Poisoned: the value is unknown.
    """
    if np.dtype(dtype).kind == "f":
        return floats(value, dtype)
    return to_array(ints(value)).astype(dtype)
