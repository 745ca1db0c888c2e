"""The memory of a launch: the placement of all buffers, and their contents.

Loads and stores work on whole warps. Contents are created on first access. Global buffers start at multiples
of 256 bytes, as by `cudaMalloc`, with a gap between them so that overruns are detected. Shared memory starts
after the part reserved by the system.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memsim.errors import MemsimError
from memsim.launch import GLOBAL_ALIGN, MOST_BYTES, TABLES, ArrayArg, Pointers, Texture1D, owner
from memsim.state.constants import PARAMETERS
from memsim.state.registers import (
    Part,
    Poison,
    Poisoned,
    Sum,
    both,
    floats,
    from_array,
    from_bools,
    ints,
    to_array,
    to_bools,
)

#: Keeps low words of addresses clear of wrap-around, below and above.
GLOBAL_BASE = 0x10_1000_0000
#: The first byte of a kernel's own shared memory: the system keeps 1 KiB below it (CUDA's
#: reservedSharedMemPerBlock, since CC 8.0; on CC 9.0 ptxas also starts static variables there).
SHARED_BASE = 0x400
#: Windows of generic addresses.
SHARED_WINDOW = 0x7_0000_0000
LOCAL_WINDOW = 0x6_0000_0000
CONSTANT_WINDOW = 0x5_0000_0000
WINDOW_SIZE = 1 << 24
#: Generic address of parameters: after the constants, which are smaller.
PARAMETER_WINDOW = CONSTANT_WINDOW + PARAMETERS
#: Handles of texture objects; not an address in any space.
TEXTURE_HANDLES = 0x8_0000_0000


def align(value: int, to: int) -> int:
    """`value` rounded up to a multiple of `to`."""
    return -(-value // to) * to


@dataclass(frozen=True, slots=True)
class Buffer:
    """A named range of bytes in a state space; `end` is one past the last byte."""

    name: str
    space: str
    start: int
    end: int


class SpaceLayout:
    """Named ranges in one state space, placed one after the other; alignment counts from `base`."""

    def __init__(self, space: str, base: int = 0) -> None:
        self.space = space
        self.base = base
        self.buffers: list[Buffer] = []
        self.starts: list[int] = []
        self.end = base

    def place(self, name: str, size: int, alignment: int, gap: int = 0) -> int:
        """Reserve `size` bytes under a name; returns the address."""
        start = self.reserve(size, alignment, gap)
        self.add(name, start, size)
        return start

    def reserve(self, size: int, alignment: int, gap: int = 0) -> int:
        """Reserve `size` bytes; returns the address."""
        start = self.base + align(self.end - self.base, alignment)
        self.end = start + size + gap
        return start

    def add(self, name: str, start: int, size: int) -> None:
        """Add a named range that starts at `start`.

        Raises:
            MemsimError: it is larger than the address space.
        """
        if start + size > MOST_BYTES:
            raise MemsimError(f"{name} is larger than any GPU's memory")
        place = bisect.bisect_right(self.starts, start)
        self.buffers.insert(place, Buffer(name, self.space, start, start + size))
        self.starts.insert(place, start)

    def find(self, lo: int, end: int) -> Buffer | None:
        """The buffer that contains all bytes `lo` .. `end - 1`, if any."""
        i = bisect.bisect_right(self.starts, lo) - 1
        if i >= 0 and end <= self.buffers[i].end:
            return self.buffers[i]
        return None

    def at(self, start: int) -> Buffer | None:
        """The buffer that starts at an address, if any."""
        i = bisect.bisect_left(self.starts, start)
        return self.buffers[i] if i < len(self.starts) and self.starts[i] == start else None

    def owners(self, addresses: np.ndarray, width: int) -> np.ndarray:
        """Index of the buffer of each access, -1 if in none, int64 like `addresses`."""
        ends = np.array([buffer.end for buffer in self.buffers], np.int64)
        index = np.searchsorted(np.array(self.starts, np.int64), addresses, side="right") - 1
        inside = (index >= 0) & (addresses + width <= ends[np.maximum(index, 0)]) if self.buffers else False
        return np.where(inside, index, -1)


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
        """Element index of each thread, 0 for inactive ones; broadcasts to (B, T)."""
        index: np.ndarray = (to_array(address) - self.base) // np.dtype(dtype).itemsize
        return index if active is True else np.where(to_bools(active), index, 0)

    def of_rows(self, rows: np.ndarray) -> SpaceBytes:
        """The same bytes, with each thread accessing the given row, int64 [B, T]."""
        if self.unknown is None:
            self.unknown = np.zeros_like(self.data)
        found = SpaceBytes(self.data, self.base, self.shape, "given")
        found.poison, found.unknown, found.reasons, found.given = (
            self.poison,
            self.unknown,
            self.reasons,
            rows,
        )
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

    def load(self, address: int | Sum, dtype: type, active: bool | Part) -> np.ndarray:
        """The value read by each thread, in the smallest shape.

        Raises:
            Poisoned: a value is unknown.
        """
        self.check(address, dtype, active)
        return self._read(self.view(dtype), self.positions(address, dtype, active))

    def check(self, address: int | Sum, dtype: type, active: bool | Part) -> None:
        """Raise Poisoned if a thread reads something unknown."""
        lost = self.lost(address, dtype, active)
        if lost is not False:
            raise Poisoned(self.why(address, dtype, lost))

    def lost(self, address: int | Sum, dtype: type, active: bool | Part) -> bool | Part:
        """The threads that read something unknown."""
        if self.poison:
            return active
        if self.unknown is None:
            return False
        self._questions += 1
        if self._questions % 64 == 0 and not self.unknown.any():
            self.unknown = None  # everything has been overwritten
            return False
        marks = self.unknown.view(f"u{np.dtype(dtype).itemsize}")
        return both(active, from_bools(self._read(marks, self.positions(address, dtype, active)) != 0))

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
            found = view[self.row_of(), index]
        return found

    def store(self, address: int | Sum, values: np.ndarray, active: bool | Part) -> None:
        """Write each active thread's value; if several write to the same place, the last thread wins."""
        dtype = values.dtype.type
        index = self.positions(address, dtype, active)
        self._write(self.view(dtype), index, values, active)
        if self.unknown is not None:
            marks = self.unknown.view(f"u{np.dtype(dtype).itemsize}")
            self._write(marks, index, marks.dtype.type(0), active)

    def _write(self, view: np.ndarray, index: np.ndarray, values: Any, active: bool | Part) -> None:
        rows, index, values = np.broadcast_arrays(
            np.broadcast_to(self.row_of(), self.shape), index, np.broadcast_to(values, self.shape)
        )
        if active is True:
            view[rows, index] = values
            return
        mask = np.broadcast_to(to_bools(active), self.shape)
        view[rows[mask], index[mask]] = values[mask]


#: The first byte of an array in the caller's memory, and one past the last.
Span = tuple[int, int]


def _span(array: Any) -> Span | None:
    """The memory span of a numpy array; None for one that is only described, or empty."""
    if not isinstance(array, np.ndarray) or not array.nbytes:
        return None
    low, high = np.lib.array_utils.byte_bounds(array)
    first, last = np.lib.array_utils.byte_bounds(owner(array))
    return min(low, first), max(high, last)


def _joined(spans: Sequence[Span]) -> list[Span]:
    """The spans, with overlapping ones merged."""
    regions: list[Span] = []
    for start, end in sorted(spans):
        if regions and start < regions[-1][1]:
            regions[-1] = regions[-1][0], max(end, regions[-1][1])
        else:
            regions.append((start, end))
    return regions


def _region(regions: Sequence[Span], span: Span) -> Span:
    """The region that contains a span."""
    return next(one for one in regions if one[0] <= span[0] < one[1])


def _first(array: np.ndarray) -> int:
    """The address of an array's first element in the caller's memory."""
    return int(array.__array_interface__["data"][0])


class Memory:
    """All state spaces of one launch.

    `buffers` are (name, array) for the arguments, as listed by `memsim.simt.arguments.arrays_of`; arrays are
    only copied in when data is needed. `shared_base`: the address of the first shared byte.
    """

    def __init__(self, buffers: Sequence[tuple[str, Any]], shared_base: int = SHARED_BASE) -> None:
        self.layouts = {
            "global": SpaceLayout("global", GLOBAL_BASE),
            "shared": SpaceLayout("shared", shared_base),
            "local": SpaceLayout("local"),
        }
        self.symbols: dict[str, tuple[str, int]] = {}
        self._arguments: list[tuple[int, Any]] = []
        self.textures: dict[int, Texture1D] = {}
        #: Tensors by the address of their map, or why one is unknown.
        self.tensors: dict[int, Any] = {}
        #: Initial contents of global memory besides arguments: (address, bytes).
        self.contents: list[tuple[int, bytes]] = []
        self.static_shared = 0
        self.dynamic_shared: int | None = None
        self._place(buffers)
        self._global: SpaceBytes | None = None
        self.shared: SpaceBytes | None = None
        self.local: SpaceBytes | None = None
        self.shape = (1, 32)
        #: Why spaces are unknown whose bytes have not been created yet.
        self._spoiled: dict[str, Poison] = {}
        #: Why shared and local memory that was never written is unknown; zero if not specified.
        self.uninitialised: Mapping[str, Poison] = {}

    def _place(self, buffers: Sequence[tuple[str, Any]]) -> None:
        """Each allocation separately; views of one, and arrays that share memory, overlap as in the caller's
        memory.
        """
        spans = [_span(array) for _, array in buffers]
        regions = _joined([span for span in spans if span is not None])
        starts: dict[Span, int] = {}
        names: dict[Span, dict[int, str]] = {}

        def reserve(name: str, size: int) -> int:
            return self.layouts["global"].place(name, size, GLOBAL_ALIGN, GLOBAL_ALIGN)

        for (name, array), span in zip(buffers, spans):
            if span is not None:
                names.setdefault(_region(regions, span), {}).setdefault(_first(array), name)
        for (name, array), span in zip(buffers, spans):
            if span is None:
                described = isinstance(array, ArrayArg)
                start = reserve(name, array.extent if described else array.nbytes)
                self._arguments.append((start + (array.start if described else 0), array))
                continue
            region = _region(regions, span)
            if region not in starts:
                starts[region] = reserve(", ".join(names[region].values()), region[1] - region[0])
            self._arguments.append((starts[region] + _first(array) - region[0], array))
        self._fill_tables()

    def _fill_tables(self) -> None:
        """The contents of tables of pointers: a table's arrays are the arguments right after it."""
        for number, (address, table) in enumerate(self._arguments):
            if isinstance(table, Pointers):
                following = iter(self._arguments[number + 1 :])
                addresses = [0 if array is None else next(following)[0] for array in table.arrays]
                self.contents.append((address, np.array(addresses, np.uint64).tobytes()))

    @property
    def shared_bytes(self) -> int:
        """Shared memory per block that the kernel uses, in bytes."""
        return self.layouts["shared"].end - self.layouts["shared"].base

    @property
    def argument_addresses(self) -> list[int]:
        """The address of each argument array, in order."""
        return [address for address, _ in self._arguments]

    def bind(self, texture: Texture1D) -> int:
        """The handle of a texture object."""
        handle = TEXTURE_HANDLES + len(self.textures)
        self.textures[handle] = texture
        return handle

    def start_chunk(self, blocks: int, threads: int) -> None:
        """New blocks start; their shared and local memory is created on first use."""
        self.shape = (blocks, threads)
        self.shared = self.local = None
        self._spoiled = {name: poison for name, poison in self._spoiled.items() if name == "global"}
        if self._global is not None:
            self._global.shape = self.shape

    def space(self, name: str) -> SpaceBytes:
        """The bytes of a state space, created on first use."""
        blocks, threads = self.shape
        if name == "shared":
            if self.shared is None:
                data = np.zeros((blocks, align(self.shared_bytes + 16, 16)), np.uint8)
                base = self.layouts["shared"].base
                self.shared = self._fresh("shared", SpaceBytes(data, base, self.shape, "block"))
            return self.shared
        if name == "local":
            if self.local is None:
                size = align(max(self.layouts["local"].end, 16), 16)
                data = np.zeros((blocks * threads, size), np.uint8)
                self.local = self._fresh("local", SpaceBytes(data, 0, self.shape, "thread"))
            return self.local
        if self._global is None:
            size = align(self.layouts["global"].end - GLOBAL_BASE + GLOBAL_ALIGN, 16)
            self._global = SpaceBytes(np.zeros((1, size), np.uint8), GLOBAL_BASE, self.shape, "one")
            self._global.poison = self._spoiled.pop("global", None)
            for address, array in self._arguments:
                if not isinstance(array, TABLES):
                    made = array.make() if isinstance(array, ArrayArg) else array
                    self._copy_in(address, owner(made), made)
            for address, content in self.contents:
                start = address - GLOBAL_BASE
                self._global.data[0, start : start + len(content)] = np.frombuffer(content, np.uint8)
        return self._global

    def spoil(self, name: str, poison: Poison) -> None:
        """All of a state space becomes unknown; its bytes need not be created for that."""
        made = {"global": self._global, "shared": self.shared, "local": self.local}.get(name)
        if made is not None:
            made.poison = poison
        else:
            self._spoiled[name] = poison

    def _copy_in(self, address: int, whole: np.ndarray, array: np.ndarray) -> None:
        """Copy the allocation `whole` such that the first element of `array` is at `address`."""
        self._elements(address - (_first(array) - _first(whole)), whole)[...] = whole
        if not np.may_share_memory(whole, array):
            self._elements(address, array)[...] = array

    def _elements(self, address: int, like: np.ndarray) -> np.ndarray:
        """Global memory from an address on, as elements with the layout of an array."""
        assert self._global is not None
        memory, start = self._global.data, address - GLOBAL_BASE
        elements: np.ndarray = np.ndarray(like.shape, like.dtype, memory, start, like.strides)
        return elements

    def _fresh(self, space: str, store: SpaceBytes) -> SpaceBytes:
        """A space that has not been written."""
        store.poison = self._spoiled.pop(space, None)
        if space in self.uninitialised:
            store.never_written(self.uninitialised[space], self.layouts[space].end - store.base)
        return store

    def copy_back(self) -> None:
        """Write argument arrays back in place.

        Raises:
            Poisoned: the kernel wrote something unknown.
        """
        if "global" in self._spoiled:
            raise Poisoned(self._spoiled["global"])
        if self._global is None:
            return
        if self._global.poison:
            raise Poisoned(self._global.poison)
        if self._global.unknown is not None and self._global.unknown.any():
            raise Poisoned(self._global.reasons[int(self._global.unknown.max()) - 1])
        for address, array in self._arguments:
            if isinstance(array, np.ndarray) and array.flags.writeable:
                array[...] = self._elements(address, array)


def loaded(array: np.ndarray) -> Any:
    """A loaded element as a register value."""
    if array.dtype.kind == "f":
        return array
    return from_array(np.ascontiguousarray(array).view(f"i{array.dtype.itemsize}").astype(np.int64))


def to_store(value: Any, dtype: type) -> np.ndarray:
    """A register's value as elements to write.

    Raises:
        Poisoned: the value is unknown.
    """
    if np.dtype(dtype).kind == "f":
        return floats(value, dtype)
    bits = np.dtype(dtype).itemsize * 8
    width = value.dtype.itemsize * 8 if isinstance(value, np.ndarray) else max(bits, 8)
    return to_array(ints(value, width)).astype(dtype)
