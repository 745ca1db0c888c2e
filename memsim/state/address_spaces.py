"""The layout of state spaces: windows of generic addresses, the buffers in each space, constant banks.

Global buffers start at multiples of 256 bytes, as by `cudaMalloc`. Shared memory starts after the part
reserved by the system.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass

import numpy as np

from memsim.errors import MemsimError
from memsim.launch import MOST_BYTES
from memsim.state.parts import Mask
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import both, from_bools, to_bools
from memsim.state.registers import to_array
from memsim.state.sums import Int

#: Where a kernel's parameters begin in the window of constant memory, behind the user's variables.
PARAMETERS = 1 << 23


class ConstantBytes:
    """The bytes of a constant bank, read at addresses of lanes like a `Store`."""

    all_known = False

    def __init__(self, content: bytes, parameters: bytes = b"") -> None:
        self.size = len(content)
        self.content = np.frombuffer(content + parameters, np.uint8)
        self.unknown = Poison("outside of the known part of the constant bank", None)

    def lost(self, address: Int, dtype: type, active: Mask, unused: int = 0) -> Mask:
        """The lanes that read unknown bytes, used or not."""
        inside, _ = self._places(address, np.dtype(dtype).itemsize)
        return both(active, from_bools(~inside))

    def why(self, address: Int, dtype: type, lost: Mask) -> Poison:
        """Why the values read by these lanes are unknown."""
        return self.unknown

    def load(
        self, address: Int, dtype: type, active: Mask, unused: int = 0, *, is_known: bool = False
    ) -> np.ndarray:
        """The value read by each lane.

        Raises:
            Poisoned: a lane reads unknown bytes.
        """
        size = np.dtype(dtype).itemsize
        inside, at = self._places(address, size)
        if (to_bools(active) & ~inside).any():
            raise Poisoned(self.unknown)
        if not self.content.size:
            return np.zeros(at.shape, dtype)
        at = np.where(inside, at, 0)
        if not (at % size).any():
            found: np.ndarray = self.content[: len(self.content) // size * size].view(dtype)[at // size]
            return found
        index = at[..., None] + np.arange(size)
        return np.ascontiguousarray(self.content[index]).view(dtype)[..., 0]

    def _places(self, address: Int, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Whether so many bytes at addresses are in the bank, and their places in `content`."""
        at = to_array(address)
        behind = at - PARAMETERS + self.size
        of_parameters = (at >= PARAMETERS) & (behind + size <= self.content.size)
        of_bank = (at >= 0) & (at + size <= self.size)
        return of_bank | of_parameters, np.where(of_bank, at, behind)

    def store(self, address: Int, values: np.ndarray, active: Mask) -> None:
        """Constant memory cannot be written."""
        raise Poisoned(Poison("a write to constant memory", None))


#: Low words of addresses wrap around at multiples of this, and are then no sums of parts any more.
WRAP = 1 << 31
#: Keeps low words of addresses clear of wrap-around, below and above.
GLOBAL_BASE = 0x10_1000_0000
CLEAR = GLOBAL_BASE % WRAP
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
        """Reserve `size` bytes; returns the address. Up to 1.5 GiB in global memory keep clear of `WRAP`."""
        start = self.base + align(self.end - self.base, alignment)
        fits = self.space == "global" and size <= WRAP - 2 * CLEAR
        if fits and start // WRAP < (start + size + CLEAR) // WRAP:
            start = align(start, WRAP) + CLEAR
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

    def remove(self, buffer: Buffer) -> None:
        """Removes a named range; its place stays reserved."""
        place = self.starts.index(buffer.start)
        del self.buffers[place], self.starts[place]

    def find(self, lo: int, end: int) -> Buffer | None:
        """The buffer that contains all bytes `lo` .. `end - 1`, if any."""
        i = bisect.bisect_right(self.starts, lo) - 1
        if i >= 0 and end <= self.buffers[i].end:
            return self.buffers[i]
        return None

    def between(self, lo: int, end: int) -> list[Buffer]:
        """The buffers that have bytes of `lo` .. `end - 1`."""
        first = max(0, bisect.bisect_right(self.starts, lo) - 1)
        last = bisect.bisect_left(self.starts, end)
        return [one for one in self.buffers[first:last] if lo < one.end]

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
