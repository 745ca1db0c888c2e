"""The layout changes that are tried for an array; each keeps every recorded access aligned and contiguous.

Paddings by 1 element to 128 bytes (more repeats the same banks) after each row of every declared extent,
after rows as long as the strides between lanes, and after every power of two of bytes. XORs of all bits that
select banks with the row number, some rows', or a part of a row's: CUTLASS's `Swizzle<B, M, S>` and `col ^
(row >> a & mask) << b`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod

import numpy as np

from memsim.analysis import Analysis
from memsim.arch.units import LINE
from memsim.suggest.maps import Map, Padding, XorSwizzle
from memsim.suggest.tiles import Tile

LINE_BITS = 7
WORD_BITS = 2  # the bytes of a word are in one bank; moving them within it changes nothing
MOST_STRIDES = 6  # strides between lanes that are tried as row lengths


def candidates(analysis: Analysis, tile: Tile) -> list[Map]:
    """Every map that is tried for an array."""
    rows = row_lengths(analysis, tile)
    swizzled = {row << power for row in rows for power in range(tile.size.bit_length())}
    found: dict[Map, None] = {}
    tried: list[Map] = [*_paddings(tile, rows), *_swizzles(tile, sorted(swizzled))]
    for change in tried:
        if change.whole(tile.width):
            found[change] = None
    return list(found)


def row_lengths(analysis: Analysis, tile: Tile) -> list[int]:
    """Candidate row lengths in bytes: from the declaration, the strides between lanes, and powers of 2."""
    declared = [prod(extents) * element for extents, element in _inner(tile)]
    powers = [1 << power for power in range(4, tile.size.bit_length())]
    found = dict.fromkeys([*declared, *_strides(analysis, tile), *powers])
    return [row for row in found if tile.element <= row < tile.size]


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


def _paddings(tile: Tile, rows: list[int]) -> Iterator[Padding]:
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
