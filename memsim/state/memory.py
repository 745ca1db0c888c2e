"""The memory of a launch: where everything lies, and what is in it.

In: the kernel's variables and the launch's arguments. Out: addresses of every buffer, loads
and stores of whole warps at once, and the answer to "whose bytes are these?".
Contents are only made when something reads or writes them. Left out: what an access costs.

Global buffers start at multiples of 256 bytes, as `cudaMalloc` gives them, with a gap between
them so that running past an end is seen. Shared memory holds statically declared variables first,
in the order of the PTX, dynamic shared memory last; it starts behind the part that the system keeps.
"""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memsim.errors import MemsimError
from memsim.launch import MOST_BYTES, Texture1D
from memsim.ptx.program import Variable
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

#: Low words of addresses stay clear of their wrap-around for a while, below and above.
GLOBAL_BASE = 0x10_1000_0000
GLOBAL_ALIGN = 256
#: The first byte of a kernel's own shared memory: the system keeps 1 KiB below it (CUDA's
#: reservedSharedMemPerBlock, since CC 8.0; on CC 9.0 ptxas also starts static variables there).
SHARED_BASE = 0x400
#: Where the windows lie for generic addresses.
SHARED_WINDOW = 0x7_0000_0000
LOCAL_WINDOW = 0x6_0000_0000
CONSTANT_WINDOW = 0x5_0000_0000
WINDOW_SIZE = 1 << 24
#: Handles of texture objects; no address in any space.
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


class Layout:
    """Named ranges in one state space, placed one after the other; alignment counts from `base`."""

    def __init__(self, space: str, base: int = 0) -> None:
        self.space = space
        self.base = base
        self.buffers: list[Buffer] = []
        self.starts: list[int] = []
        self.end = base

    def place(self, name: str, size: int, alignment: int, gap: int = 0) -> int:
        """Reserve `size` bytes under a name; gives the address."""
        start = self.reserve(size, alignment, gap)
        self.add(name, start, size)
        return start

    def reserve(self, size: int, alignment: int, gap: int = 0) -> int:
        """Reserve `size` bytes; gives the address."""
        start = self.base + align(self.end - self.base, alignment)
        self.end = start + size + gap
        return start

    def add(self, name: str, start: int, size: int) -> None:
        """A named range that begins at `start`.

        Raises:
            MemsimError: it is larger than an address can tell.
        """
        if start + size > MOST_BYTES:
            raise MemsimError(f"{name} is larger than any memory")
        place = bisect.bisect_right(self.starts, start)
        self.buffers.insert(place, Buffer(name, self.space, start, start + size))
        self.starts.insert(place, start)

    def find(self, lo: int, end: int) -> Buffer | None:
        """The buffer that holds all bytes `lo` .. `end - 1`, if there is one."""
        i = bisect.bisect_right(self.starts, lo) - 1
        if i >= 0 and end <= self.buffers[i].end:
            return self.buffers[i]
        return None

    def at(self, start: int) -> Buffer | None:
        """The buffer that starts at an address, if there is one."""
        i = bisect.bisect_left(self.starts, start)
        return self.buffers[i] if i < len(self.starts) and self.starts[i] == start else None

    def owners(self, addresses: np.ndarray, width: int) -> np.ndarray:
        """Index of the buffer of each access, -1 where it is in none, int64 like `addresses`."""
        ends = np.array([buffer.end for buffer in self.buffers], np.int64)
        index = np.searchsorted(np.array(self.starts, np.int64), addresses, side="right") - 1
        inside = (index >= 0) & (addresses + width <= ends[np.maximum(index, 0)]) if self.buffers else False
        return np.where(inside, index, -1)


#: PTX scalar type -> numpy type of a memory element.
ELEMENTS: dict[str, type] = {
    "f16": np.int16,
    "f32": np.float32,
    "f64": np.float64,
    **{f"{kind}{bits}": getattr(np, f"int{bits}") for kind in "bs" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": getattr(np, f"uint{bits}") for bits in (8, 16)},
    "u32": np.int32,
    "u64": np.int64,
    "b8": np.uint8,
    "bf16": np.int16,
    "f16x2": np.int32,
    "bf16x2": np.int32,
}


class Store:
    """The bytes of one state space: shape (1, n) for global and constant memory, (B, n) for
    shared, (B * T, n) for local memory."""

    def __init__(self, data: np.ndarray, base: int, shape: tuple[int, int], rows: str) -> None:
        self.data = data
        self.base = base
        self.shape = shape
        self.rows = rows
        #: Why nothing in it is known any more.
        self.poison: Poison | None = None
        #: Not 0 for bytes that hold something unknown, like `data`; and why.
        self.unknown: np.ndarray | None = None
        self.why: Poison | None = None
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

    def row_of(self) -> np.ndarray | int:
        """The row that each thread's bytes are in."""
        blocks, threads = self.shape
        if self.rows == "one":
            return 0
        if self.rows == "block":
            return np.arange(blocks)[:, None]
        return np.arange(blocks * threads).reshape(blocks, threads)

    def load(self, address: int | Sum, dtype: type, active: bool | Part) -> np.ndarray:
        """What each thread reads; the smallest shape that holds it.

        Raises:
            Poisoned: something unknown was written here before.
        """
        self.check(address, dtype, active)
        return self._read(self.view(dtype), self.positions(address, dtype, active))

    def check(self, address: int | Sum, dtype: type, active: bool | Part) -> None:
        """Is all known that the threads read?

        Raises:
            Poisoned: it is not.
        """
        why = self.poison or self.why
        if why is not None and self.lost(address, dtype, active) is not False:
            raise Poisoned(why)

    def lost(self, address: int | Sum, dtype: type, active: bool | Part) -> bool | Part:
        """The threads that read something unknown."""
        if self.poison:
            return active
        if self.unknown is None:
            return False
        marks = self.unknown.view(f"u{np.dtype(dtype).itemsize}")
        return both(active, from_bools(self._read(marks, self.positions(address, dtype, active)) != 0))

    def forget(self, address: int | Sum, dtype: type, active: bool | Part, why: Poison) -> None:
        """Threads write something unknown."""
        if self.unknown is None:
            self.unknown = np.zeros_like(self.data)
        self.why = why
        marks = self.unknown.view(f"u{np.dtype(dtype).itemsize}")
        self._write(marks, self.positions(address, dtype, active), marks.dtype.type(1), active)

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
        """Write each active thread's value; of several to one place the last thread's stays."""
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


#: The first byte of an array in the caller's memory, and one past its last.
Span = tuple[int, int]


def _span(array: Any) -> Span | None:
    """Where a numpy array lies; None for one that is only described, or empty."""
    if not isinstance(array, np.ndarray) or not array.nbytes:
        return None
    start = array.__array_interface__["data"][0]
    return start, start + array.nbytes


def _joined(spans: Sequence[Span]) -> list[Span]:
    """The spans, those that overlap made one."""
    regions: list[Span] = []
    for start, end in sorted(spans):
        if regions and start < regions[-1][1]:
            regions[-1] = regions[-1][0], max(end, regions[-1][1])
        else:
            regions.append((start, end))
    return regions


class Memory:
    """All state spaces of one launch.

    `variables` are the module's and the kernel's; `buffers` are (name, array or None, bytes)
    for the arguments; arrays are only copied in when data is needed.
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        buffers: Sequence[tuple[str, Any, int]],
        dynamic_shared: int,
    ) -> None:
        self.layouts = {
            "global": Layout("global", GLOBAL_BASE),
            "shared": Layout("shared", SHARED_BASE),
            "local": Layout("local"),
            "const": Layout("const", GLOBAL_ALIGN),
        }
        self.symbols: dict[str, tuple[str, int]] = {}
        self.initial = [v for v in variables if v.space in ("global", "const")]
        self._arguments: list[tuple[int, Any]] = []
        self.textures: dict[int, Texture1D] = {}
        #: What global memory holds at first beside arguments and variables: (address, bytes).
        self.contents: list[tuple[int, bytes]] = []
        dynamic = []
        for variable in variables:
            space = "local" if variable.space == "param" else variable.space
            if space not in self.layouts:
                continue
            if space == "shared" and variable.size == 0:
                dynamic.append(variable)
                continue
            alignment = max(variable.align, GLOBAL_ALIGN if space == "global" else 1)
            gap = GLOBAL_ALIGN if space == "global" else 0
            address = self.layouts[space].place(variable.name, variable.size, alignment, gap)
            self.symbols[variable.name] = (space, address)
        shared = self.layouts["shared"]
        self.static_shared = shared.end - SHARED_BASE
        self.dynamic_shared: int | None = None
        if dynamic or dynamic_shared:
            alignment = max([16, *(variable.align for variable in dynamic)])
            name = dynamic[0].name if dynamic else "dynamic shared memory"
            address = shared.place(name, dynamic_shared, alignment)
            self.dynamic_shared = address
            for variable in dynamic:
                self.symbols[variable.name] = ("shared", address)
        self._place(buffers)
        self._global: Store | None = None
        self._const: Store | None = None
        self.shared: Store | None = None
        self.local: Store | None = None
        self.shape = (1, 32)

    def _place(self, buffers: Sequence[tuple[str, Any, int]]) -> None:
        """Every array by itself, but for those that share memory: these lie as they do for the caller."""
        spans = [_span(array) for _, array, _ in buffers]
        regions = _joined([span for span in spans if span is not None])
        starts: dict[Span, int] = {}

        def reserve(name: str, size: int) -> int:
            return self.layouts["global"].place(name, size, GLOBAL_ALIGN, GLOBAL_ALIGN)

        for (name, array, size), span in zip(buffers, spans):
            if span is None:
                self._arguments.append((reserve(name, size), array))
                continue
            start, end = region = next(one for one in regions if one[0] <= span[0] < one[1])
            if region not in starts:
                starts[region] = reserve(name, end - start)
            self._arguments.append((starts[region] + span[0] - start, array))

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block that the kernel uses, in bytes."""
        return self.layouts["shared"].end - SHARED_BASE

    @property
    def argument_addresses(self) -> list[int]:
        """Where each argument array lies, in the order given."""
        return [address for address, _ in self._arguments]

    def bind(self, texture: Texture1D) -> int:
        """The handle that a kernel knows a texture object by."""
        handle = TEXTURE_HANDLES + len(self.textures)
        self.textures[handle] = texture
        return handle

    def start_chunk(self, blocks: int, threads: int) -> None:
        """New blocks begin: their shared and local memory is made when first used."""
        self.shape = (blocks, threads)
        self.shared = self.local = None
        for store in (self._global, self._const):
            if store is not None:
                store.shape = self.shape

    def space(self, name: str) -> Store:
        """The bytes of a state space, made on first use."""
        blocks, threads = self.shape
        if name == "shared":
            if self.shared is None:
                data = np.zeros((blocks, align(self.shared_bytes + 16, 16)), np.uint8)
                self.shared = Store(data, SHARED_BASE, self.shape, "block")
            return self.shared
        if name in ("local", "param"):
            if self.local is None:
                size = align(max(self.layouts["local"].end, 16), 16)
                data = np.zeros((blocks * threads, size), np.uint8)
                self.local = Store(data, 0, self.shape, "thread")
            return self.local
        if name == "const":
            if self._const is None:
                self._const = self._filled("const")
            return self._const
        if self._global is None:
            self._global = self._filled("global")
            for address, content in self.contents:
                start = address - GLOBAL_BASE
                self._global.data[0, start : start + len(content)] = np.frombuffer(content, np.uint8)
            for address, array in self._arguments:
                raw = array.make() if hasattr(array, "make") else array
                raw = np.ascontiguousarray(raw).view(np.uint8).reshape(-1)
                self._global.data[0, address - GLOBAL_BASE : address - GLOBAL_BASE + raw.size] = raw
        return self._global

    def digest(self) -> bytes:
        """A digest of all that a kernel can change."""
        found = hashlib.sha256()
        for store in (self._global, self.shared, self.local):
            found.update(b"-" if store is None else repr(store.poison is None).encode())
            if store is not None:
                found.update(store.data.data)
                if store.unknown is not None:
                    found.update(store.unknown.data)
        return found.digest()

    def _filled(self, space: str) -> Store:
        """Module variables of `space` with their initial bytes."""
        layout = self.layouts[space]
        base = GLOBAL_BASE if space == "global" else 0
        data = np.zeros((1, align(layout.end - base + GLOBAL_ALIGN, 16)), np.uint8)
        for variable in self.initial:
            if variable.space != space:
                continue
            _, address = self.symbols[variable.name]
            content = bytearray(variable.init or b"")
            for offset, symbol, addend in variable.init_symbols:
                if symbol in self.symbols:
                    content += bytes(max(0, offset + 8 - len(content)))
                    content[offset : offset + 8] = (self.symbols[symbol][1] + addend).to_bytes(8, "little")
            data[0, address - base : address - base + len(content)] = np.frombuffer(content, np.uint8)
        return Store(data, base, self.shape, "one")

    def copy_back(self) -> None:
        """Write argument arrays back in place.

        Raises:
            Poisoned: what the kernel wrote is not known.
        """
        if self._global is None:
            return
        if self._global.poison:
            raise Poisoned(self._global.poison)
        if self._global.unknown is not None and self._global.unknown.any():
            assert self._global.why is not None
            raise Poisoned(self._global.why)
        for address, array in self._arguments:
            if isinstance(array, np.ndarray) and array.flags.writeable:
                start = address - GLOBAL_BASE
                raw = self._global.data[0, start : start + array.nbytes]
                array[...] = raw.view(array.dtype).reshape(array.shape)


def loaded(array: np.ndarray, widen: bool) -> Any:
    """A loaded element as a register holds it; `widen`: the register has more bits, and they are zero."""
    if array.dtype.kind == "f" and not widen:
        return array
    sign = "u" if widen else "i"
    return from_array(np.ascontiguousarray(array).view(f"{sign}{array.dtype.itemsize}").astype(np.int64))


def to_store(value: Any, dtype: type) -> np.ndarray:
    """A register's value as elements to write.

    Raises:
        Poisoned: the value is not known.
    """
    if np.dtype(dtype).kind == "f":
        return floats(value, dtype)
    bits = np.dtype(dtype).itemsize * 8
    width = value.dtype.itemsize * 8 if isinstance(value, np.ndarray) else max(bits, 8)
    return to_array(ints(value, width)).astype(dtype)
