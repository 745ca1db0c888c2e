"""Changes of an array's layout: where a byte goes that was at some offset from the array's start.

In: byte offsets. Out: byte offsets. Each map is one to one, and moves whole chunks of bytes.
Left out on purpose: what a request costs, and how a change is written in a source.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LINE = 128  # bytes that the banks hold side by side
Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Padding:
    """`by` unused bytes behind every `every` bytes: a row of `every` bytes becomes one of `every + by`."""

    every: int
    by: int

    def places(self, offsets: Offsets) -> Offsets:
        """Where the bytes at `offsets` go."""
        return offsets + offsets // self.every * self.by

    def size(self, size: int) -> int:
        """The bytes that an array of `size` bytes then has; its last row is padded too, as C declares it."""
        return size + -(-size // self.every) * self.by

    def whole(self, width: int) -> bool:
        """Whether an aligned access of `width` bytes stays aligned and in one piece."""
        return self.every % width == 0 and self.by % width == 0

    @property
    def period(self) -> int:
        """Requests that lie a multiple of so many bytes apart cost the same afterwards."""
        step = int(np.lcm(self.every, LINE))
        rotation = step // self.every * self.by % 4  # a whole number of words turns all banks alike
        return step * (1 if rotation == 0 else 4)


@dataclass(frozen=True, slots=True)
class XorSwizzle:
    """XORs bits of the number of a chunk into bits of the offset.

    The `bits` lowest bits of `offset // every` are XORed into the offset from bit `base` on. `every` is a
    multiple of `2 ** (base + bits)`, so a byte stays in its aligned 2 ** (base + bits) bytes, and the map is
    its own inverse. Where `every` is a power of two this is CUTLASS's `Swizzle<B, M, S>` of bytes, with B =
    bits, M = base and S = log2(every) - base.
    """

    every: int
    bits: int
    base: int

    def places(self, offsets: Offsets) -> Offsets:
        """Where the bytes at `offsets` go."""
        return offsets ^ (offsets // self.every % (1 << self.bits) << self.base)

    def size(self, size: int) -> int:
        """The bytes that an array of `size` bytes then has: as many."""
        return size

    def whole(self, width: int) -> bool:
        """Whether an aligned access of `width` bytes stays aligned and in one piece."""
        return width <= 1 << self.base

    @property
    def period(self) -> int:
        """Requests that lie a multiple of so many bytes apart cost the same afterwards."""
        return int(np.lcm(self.every << self.bits, LINE))


Map = Padding | XorSwizzle

UNCHANGED = Padding(LINE, 0)
