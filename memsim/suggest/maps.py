"""Layout changes of an array: the new byte offset of each byte.

Each map is one to one and moves whole chunks of bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memsim.arch.units import LINE

Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Padding:
    """`by` unused bytes after every `every` bytes: rows of `every` bytes become rows of `every + by`."""

    every: int
    by: int

    def places(self, offsets: Offsets) -> Offsets:
        """The new offsets of the bytes at `offsets`."""
        return offsets + offsets // self.every * self.by

    def size(self, size: int) -> int:
        """The new size in bytes of an array of `size` bytes; the last row is padded too, as declared in C."""
        return size + -(-size // self.every) * self.by

    def whole(self, width: int) -> bool:
        """Whether an aligned access of `width` bytes stays aligned and contiguous."""
        return self.every % width == 0 and self.by % width == 0

    @property
    def period(self) -> int:
        """Requests whose addresses differ by a multiple of so many bytes cost the same afterwards."""
        step = int(np.lcm(self.every, LINE))
        rotation = step // self.every * self.by % 4  # a whole number of words turns all banks alike
        return step * (1 if rotation == 0 else 4)


@dataclass(frozen=True, slots=True)
class XorSwizzle:
    """XORs bits of a chunk's number into bits of the offset.

    The `bits` lowest bits of `offset // every` are XORed into the offset from bit `base` on. `every` is a
    multiple of `2 ** (base + bits)`, so a byte stays in its aligned 2 ** (base + bits) bytes, and the map is
    its own inverse. If `every` is a power of two, this is CUTLASS's `Swizzle<B, M, S>` of bytes, with B =
    bits, M = base and S = log2(every) - base.
    """

    every: int
    bits: int
    base: int

    def places(self, offsets: Offsets) -> Offsets:
        """The new offsets of the bytes at `offsets`."""
        return offsets ^ (offsets // self.every % (1 << self.bits) << self.base)

    def size(self, size: int) -> int:
        """The new size in bytes of an array of `size` bytes: unchanged."""
        return size

    def whole(self, width: int) -> bool:
        """Whether an aligned access of `width` bytes stays aligned and contiguous."""
        return width <= 1 << self.base

    @property
    def period(self) -> int:
        """Requests whose addresses differ by a multiple of so many bytes cost the same afterwards."""
        return int(np.lcm(self.every << self.bits, LINE))


Map = Padding | XorSwizzle

UNCHANGED = Padding(LINE, 0)
