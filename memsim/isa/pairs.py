"""64-bit integers and floats in two registers, the lower word first."""

from __future__ import annotations

import numpy as np

from memsim.state.registers import fit, from_array, plus, times, to_array, unsigned
from memsim.state.sums import Int, shift_right


def joined(low: Int, high: Int) -> Int:
    """Two signed 32-bit words as one 64-bit integer."""
    return plus(unsigned(low, 32), times(high, 1 << 32))


def halved(value: Int) -> tuple[Int, Int]:
    """A 64-bit integer (modulo 2**64) as two words."""
    value = fit(value, 64)
    return fit(value, 32), fit(shift_right(value, 32, True, 64), 32)


def to_double(value: Int) -> np.ndarray:
    """64 bits read as a float64."""
    return np.ascontiguousarray(to_array(value)).view(np.float64)


def from_double(array: np.ndarray) -> tuple[Int, Int]:
    """float64 as two words."""
    return halved(from_array(np.ascontiguousarray(array, np.float64).view(np.int64)))
