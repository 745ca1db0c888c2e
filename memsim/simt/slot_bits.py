"""Sets of register slots as the bits of a number."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1 << 14)
def slots_of(bits: int) -> list[int]:
    """A bit set of slots as their numbers."""
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found
