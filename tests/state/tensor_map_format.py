"""`cuTensorMapEncodeTiled` written in Python: the fields of a tensor map as bytes."""

from __future__ import annotations

from collections.abc import Sequence

#: `CUtensorMapDataType` -> the number in a map. TF32 is float32 with a flag.
NUMBERS = (0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 7, 8)
ROUNDED = (11, 12)


def encoded(
    kind: int,
    address: int,
    extents: Sequence[int],
    steps: Sequence[int],
    box: Sequence[int],
    swizzle: int,
    fill: int = 0,
) -> bytes:
    """The 128 bytes of a tiled map without interleave; dimensions innermost first."""
    rank = len(extents)
    word = (rank - 1) << 4 | NUMBERS[kind] << 7 | swizzle << 13 | fill << 15 | (kind in ROUNDED) << 16
    units = [step // 16 for step in steps] + [0] * (5 - rank)
    upper = sum((unit >> 32) << 4 * i for i, unit in enumerate(units))
    counts = [count - 1 for count in box] + [0] * (5 - rank)
    words = [
        address & 0xFFFFFFFF,
        address >> 32,
        word,
        *(unit & 0xFFFFFFFF for unit in units),
        upper,
        *(extent - 1 for extent in extents),
        *[0] * (5 - rank),
        counts[0] << 24,
        sum(count << 8 * i for i, count in enumerate(counts[1:])),
        0,
    ]
    return b"".join(one.to_bytes(4, "little") for one in words).ljust(128, b"\0")
