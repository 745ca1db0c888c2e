"""Layout changes of an array, and which are tried.

A map gives the new byte offset of each byte. It is one to one and moves whole chunks of bytes.

Candidates keep every recorded access aligned and contiguous: paddings by 1 element to 128 bytes (more repeats
the same banks) after each row of every declared extent, after rows as long as the strides between lanes, and
after every power of two of bytes; XORs of all bits that select banks with the row number, some rows', or a
part of a row's: CUTLASS's `Swizzle<B, M, S>` and `col ^ (row >> a & mask) << b`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from memsim.analysis import Analysis
from memsim.arch.units import LINE
from memsim.suggest.tiles import Tile

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

    @property
    def piece(self) -> int:
        """A byte stays in its aligned so many bytes."""
        return 1 << self.base + self.bits

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


LINE_BITS = 7
WORD_BITS = 2  # the bytes of a word are in one bank; moving them within it changes nothing
MOST_STRIDES = 6  # strides between lanes that are tried as row lengths


def candidates(analysis: Analysis, tile: Tile, written: Sequence[int] = ()) -> list[Map]:
    """Every map that is tried for an array. written: row lengths of its source, in bytes."""
    declared = [prod(extents) * element for extents, element in _inner(tile)]
    powers = [1 << power for power in range(4, tile.size.bit_length())]
    lengths = dict.fromkeys([*declared, *written, *_strides(analysis, tile), *powers])
    rows = [row for row in lengths if tile.element <= row < tile.size]
    swizzled = {row << power for row in rows for power in range(tile.size.bit_length())}
    padded_once = (2 * row for row in rows if 2 * row < tile.size)
    tried: list[Map] = [*_paddings(tile, dict.fromkeys([*rows, *padded_once]))]
    tried += _swizzles(tile, sorted(swizzled))
    return list(dict.fromkeys(change for change in tried if change.whole(tile.width)))


def _inner(tile: Tile) -> Iterator[tuple[tuple[int, ...], int]]:
    """The extents of each row of the declaration, innermost first."""
    if tile.shape is not None:
        for level in range(len(tile.shape.extents) - 1, 0, -1):
            yield tile.shape.extents[level:], tile.shape.element


def _strides(analysis: Analysis, tile: Tile) -> list[int]:
    """The most common strides between neighbouring lanes that do not access neighbouring elements."""
    trace = analysis.trace
    addresses, active = trace.addresses[tile.rows], trace.active[tile.rows]
    apart = np.abs(np.diff(addresses, axis=1))
    both = active[:, 1:] & active[:, :-1] & (apart > tile.width)
    values, times = np.unique(apart[both], return_counts=True)
    common = Counter(dict(zip(values.tolist(), times.tolist())))
    return [stride for stride, _ in common.most_common(MOST_STRIDES)]


def _paddings(tile: Tile, rows: Iterable[int]) -> Iterator[Padding]:
    for extents, element in _inner(tile):
        unit = prod(extents[1:]) * element
        for by in range(unit, LINE + 1, unit):
            yield Padding(prod(extents) * element, by)
    step = max(tile.width, tile.element, 1 << WORD_BITS)
    for row in rows:
        for by in range(step, LINE + 1, step):
            yield Padding(row, by)


def _swizzles(tile: Tile, rows: list[int]) -> Iterator[XorSwizzle]:
    lowest = max(tile.width.bit_length() - 1, tile.element.bit_length() - 1, WORD_BITS)
    for base in range(lowest, LINE_BITS):
        for bits in range(1, LINE_BITS - base + 1):
            period = 1 << base + bits
            if tile.size % period == 0:
                for row in rows:
                    if row % period == 0 and row < tile.size:
                        yield XorSwizzle(row, bits, base)
