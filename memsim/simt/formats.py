"""Float types: how a register holds one or two numbers of each, and how they are computed with.

In: register values (values.py). Out: numpy arrays to compute with, and register values again.
f32 and f64 are computed in their own type. f16 and bf16 are computed in f64, where products are
exact, and rounded once when written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from memsim.ptx.program import Instruction
from memsim.simt.registry import Unsupported, scalar_type
from memsim.state.registers import fit, floats, from_array, ints, to_array
from memsim.state.rounding import Array, narrow, to_bf16

Value = Any


@dataclass(frozen=True, slots=True)
class Format:
    """A float type: `lanes` numbers in a register of `bits` bits.

    `read` turns a register into an array for each number, the lowest first; `write` turns arrays
    into a register, rounding f64 to the type in a mode of rounding.py. `tiny` is the smallest
    normal number.
    """

    name: str
    bits: int
    lanes: int
    tiny: float
    read: Callable[[Value], list[Array]]
    write: Callable[..., Value]

    def flush(self, array: Array) -> Array:
        """Subnormal numbers become zero of the same sign."""
        return np.where(np.abs(array) < self.tiny, np.copysign(array.dtype.type(0), array), array)

    def flush_results(self, lanes: list[Array], mode: str = "rn") -> list[Array]:
        """Results that are subnormal become zero of the same sign.

        Too small is what would be so if it were rounded with exponents without end, as measured on an H100.
        """
        rounded = self.read(self.write(*(lane / self.tiny for lane in lanes), mode))
        return [
            np.where(np.abs(size) < 1, np.copysign(lane.dtype.type(0), lane), lane)
            for lane, size in zip(lanes, rounded)
        ]


def _read_half(value: Value) -> Array:
    return floats(value, np.float16).astype(np.float64)


def _write_half(array: Array, mode: str = "rn") -> Value:
    return narrow(array.astype(np.float64), np.float16, mode)


def _read_brain(value: Value) -> Array:
    return (to_array(ints(value, 16)) << 16).astype(np.int32).view(np.float32).astype(np.float64)


def _write_brain(array: Array, mode: str = "rn") -> Value:
    return fit(from_array(to_bf16(array.astype(np.float64), mode)), 16)


def _write_single(array: Array, mode: str = "rn") -> Value:
    return array if array.dtype == np.float32 else narrow(array, np.float32, mode)


def _pair(name: str, tiny: float, read: Callable[[Value], Array], write: Callable[..., Value]) -> Format:
    """Two 16-bit floats in a 32-bit register."""

    def read_both(value: Value) -> list[Array]:
        bits = to_array(ints(value, 32))
        return [read(fit(from_array(half), 16)) for half in (bits, bits >> 16)]

    def write_both(low: Array, high: Array, mode: str = "rn") -> Value:
        halves = [to_array(ints(write(half, mode), 16)) for half in (low, high)]
        return fit(from_array((halves[0] & 0xFFFF) | (halves[1] << 16)), 32)

    return Format(name, 32, 2, tiny, read_both, write_both)


_FORMATS = {
    "f16": Format("f16", 16, 1, 2.0**-14, lambda value: [_read_half(value)], _write_half),
    "bf16": Format("bf16", 16, 1, 2.0**-126, lambda value: [_read_brain(value)], _write_brain),
    "f16x2": _pair("f16x2", 2.0**-14, _read_half, _write_half),
    "bf16x2": _pair("bf16x2", 2.0**-126, _read_brain, _write_brain),
    "f32": Format("f32", 32, 1, 2.0**-126, lambda value: [floats(value, np.float32)], _write_single),
    "f64": Format(
        "f64", 64, 1, 2.0**-1022, lambda value: [floats(value, np.float64)], lambda array, mode: array
    ),
}


def format_named(name: str, instruction: Instruction) -> Format:
    """The format of that name.

    Raises:
        Unsupported: there is none.
    """
    if name not in _FORMATS:
        raise Unsupported(instruction.name)
    return _FORMATS[name]


def float_format(instruction: Instruction) -> Format:
    """The float type that the instruction works on."""
    return format_named(scalar_type(instruction), instruction)
