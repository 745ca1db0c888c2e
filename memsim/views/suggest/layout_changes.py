"""Changes of a layout in words: `padding: 4 B after every 128 B`."""

from __future__ import annotations

from memsim.suggest.maps import Map, Padding
from memsim.suggest.tiles import Tile
from memsim.views.labels import count


def change_name(change: Map, tile: Tile) -> str:
    """`padding: 4 B after every 128 B`, `swizzle: ... (Swizzle<1,2,3>)`."""
    if isinstance(change, Padding):
        return f"padding: {change.by} B after every {change.every} B"
    element = tile.element.bit_length() - 1
    name = f"swizzle: XOR of {count(change.bits, 'bit')} of the {_counted(change.every, tile)}"
    if change.every & (change.every - 1):
        return name
    chunk, shift = change.base - element, change.every.bit_length() - 1 - change.base
    return f"{name}, CUTLASS's Swizzle<{change.bits},{chunk},{shift}>" if chunk >= 0 else name


def formula(change: Map) -> str:
    """Where the byte at offset `o` from the array's start goes."""
    if isinstance(change, Padding):
        return f"o + o / {change.every} * {change.by}"
    return f"o ^ (o / {change.every} % {1 << change.bits} << {change.base})"


def _counted(every: int, tile: Tile) -> str:
    """What a swizzle counts: rows, groups of rows, or pieces of a row."""
    shape = tile.shape
    row = shape.extents[-1] * shape.element if shape is not None and len(shape.extents) > 1 else 0
    if row and every % row == 0:
        return "row's number" if every == row else f"number of every {every // row} rows"
    return f"number of every {every} B"
