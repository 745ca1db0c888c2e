"""Functions of floats: `MUFU`.

It returns the float64 function rounded to float32; the chip's result may differ in the last bits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from memsim.isa.float_formats import to_bits
from memsim.isa.op import Form, Immediate, Op, Operand, Register
from memsim.isa.pairs import from_double, joined, to_double
from memsim.isa.readers import Binder, Registers
from memsim.isa.registry import Compute, checked, opcode, require
from memsim.isa.single import flushed
from memsim.state.registers import from_array
from memsim.state.rounding import Array


def turned(x: Array, quarter: int) -> Array:
    """The sine of x full turns, plus a quarter turn or not; the fraction is exact, and so are the zeros."""
    part = np.where(x == 0, x, x - np.rint(x))
    quarters = np.rint(part * 4)
    rest = (part - quarters / 4) * (2 * np.pi)
    which = (quarters.astype(np.int64) + quarter) & 3
    size = np.where(which & 1, np.cos(rest), np.sin(rest))
    found: Array = np.where(which & 2, -size, size)
    return found


def _turns(quarter: int) -> Callable[[Array], Array]:
    return lambda x: np.where(np.isfinite(x), turned(np.where(np.isfinite(x), x, 0.0), quarter), np.nan)


#: In float64; the argument of SIN and COS is in full turns.
FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "RCP": lambda x: 1.0 / x,
    "RSQ": lambda x: 1.0 / np.sqrt(x),
    "SQRT": np.sqrt,
    "EX2": np.exp2,
    "LG2": np.log2,
    "SIN": _turns(0),
    "COS": _turns(1),
    "TANH": np.tanh,
}


def is_approximate(op: Op) -> bool:
    """Is it an approximation, other than as the first step of an exact division or root?

    `MUFU.RSQ R0, -QNAN`, by which compilers make the result of an invalid division, is none.
    """
    if op.form.opcode != "MUFU":
        return "APPROX" in op.form.modifiers
    return not {"RCP", "RCP64H", "RSQ64H"} & set(op.form.modifiers) and not is_nan(op.form.operands[-1])


def is_nan(operand: Operand) -> bool:
    """Is it a constant float32 that is not a number?"""
    if not isinstance(operand, Immediate):
        return False
    value = operand.value
    return math.isnan(value) if isinstance(value, float) else value & 0x7FFFFFFF > 0x7F800000


@opcode("MUFU")
def build_function(form: Form, binder: Binder) -> Compute:
    name, *rest = form.modifiers
    if name in ("RCP64H", "RSQ64H") and not rest:
        return high_of_double(form, binder)
    require(name in FUNCTIONS)
    function = FUNCTIONS[name]
    if rest in (["F16"], ["BF16"]) and name in ("EX2", "TANH"):
        return of_half(form, binder, function)
    require(set(rest) <= {"FTZ"})
    a = binder.single(form.operands[1])
    if name == "TANH":  # the only one that reads and returns subnormal numbers
        return lambda r: function(a(r).astype(np.float64)).astype(np.float32)
    return lambda r: flushed(function(flushed(a(r)).astype(np.float64)).astype(np.float32))


def of_half(form: Form, binder: Binder, function: Callable[[Array], Array]) -> Compute:
    """A function of a 16-bit float; the upper half of the result is 0."""
    operand = checked(form.operands[1], Register)
    bf16 = "BF16" in form.modifiers
    require(operand.part in ("", "H0", "H1"))
    read = binder.halves(replace(operand, part=""), bf16)
    which = int(operand.part == "H1")

    def compute(r: Registers) -> Any:
        found = function(read(r)[which].astype(np.float64)).astype(np.float32)
        return from_array(to_bits(found.astype(np.float64), bf16, "rz"))  # towards zero, as an H200 does

    return compute


def no_subnormals(array: Array) -> Array:
    """Subnormal float64 numbers flushed to zero, keeping the sign."""
    return np.where(np.abs(array) < 2.0**-1022, np.copysign(0.0, array), array)


def high_of_double(form: Form, binder: Binder) -> Compute:
    """The high word of a float64 estimate, from the high word of a float64."""
    operand = form.operands[1]
    if isinstance(operand, Immediate) and isinstance(operand.value, float):
        bits = struct.unpack("<q", struct.pack("<d", operand.value))[0]  # printed as float64
        operand = Immediate(bits >> 32)
    word = binder.word(operand)
    root = form.modifiers[0] == "RSQ64H"

    def compute(r: Registers) -> Any:
        x = no_subnormals(to_double(joined(0, word(r))))
        return from_double(no_subnormals(1.0 / np.sqrt(x) if root else 1.0 / x))[1]

    return compute
