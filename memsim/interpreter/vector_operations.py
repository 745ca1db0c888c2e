"""Operations of native/interpreter.c, and where their operands are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, SupportsInt

import numpy as np

#: Vectors that an instruction may need at once, beside registers and constants.
SCRATCH = 256


@dataclass(frozen=True, slots=True)
class RegisterPlace:
    """A register of the warp."""

    slot: int


@dataclass(frozen=True, slots=True)
class ScratchPlace:
    """An intermediate result."""

    number: int


@dataclass(frozen=True, slots=True)
class ConstantPlace:
    """The same number in each lane: its bits in words of this many bytes."""

    bits: int
    size: int


Place = RegisterPlace | ScratchPlace | ConstantPlace
ZERO = ConstantPlace(0, 4)


class VectorOperation(NamedTuple):
    """As `Operation` of native/interpreter.h; places are not numbers yet. n, c: or what becomes one."""

    name: str
    d: Place | None = None
    a: Place | None = None
    b: Place | None = None
    c: Any = None
    k: int = 0
    n: Any = 0


def constant(value: SupportsInt, size: int) -> ConstantPlace:
    """A number in words of `size` bytes: of an integer the low ones, of a float its bits."""
    if isinstance(value, (np.floating, float)):
        array = np.asarray(value)
        bits = int(array.view(f"u{array.dtype.itemsize}"))
        return ConstantPlace(bits, 8 if array.dtype.itemsize == 8 else 4)
    wide = 8 if size == 8 else 4
    return ConstantPlace(int(value) & ((1 << 8 * wide) - 1), wide)
