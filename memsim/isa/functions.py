"""The instruction of the multi-function unit: `MUFU`."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from memsim.isa.float_formats import to_bits
from memsim.isa.multi_function import FUNCTIONS, OF_HIGH, Floats
from memsim.isa.op import Form, Immediate, Op, Operand, Register
from memsim.isa.readers import Binder, Registers
from memsim.isa.registry import Compute, checked, opcode, require
from memsim.state.registers import fit, from_array, to_array


def is_approximate(op: Op) -> bool:
    """Is it an approximation?

    `MUFU.RSQ R0, -QNAN`, by which compilers make the result of an invalid division, is none.
    """
    if op.form.opcode != "MUFU":
        return "APPROX" in op.form.modifiers
    return not is_nan(op.form.operands[-1])


def is_nan(operand: Operand) -> bool:
    """Is it a constant float32 that is not a number?"""
    if not isinstance(operand, Immediate):
        return False
    value = operand.value
    return math.isnan(value) if isinstance(value, float) else value & 0x7FFFFFFF > 0x7F800000


@opcode("MUFU")
def build_function(form: Form, binder: Binder) -> Compute:
    name, *rest = form.modifiers
    if name in OF_HIGH and not rest:
        return high_of_double(form, binder)
    require(name in FUNCTIONS)
    function = FUNCTIONS[name]
    if rest in (["F16"], ["BF16"]) and name in ("EX2", "TANH"):
        return of_half(form, binder, function)
    require(set(rest) <= {"FTZ"})
    a = binder.single(form.operands[1])
    return lambda r: function(a(r))


def of_half(form: Form, binder: Binder, function: Callable[[Floats], Floats]) -> Compute:
    """A function of a 16-bit float; the upper half of the result is 0."""
    operand = checked(form.operands[1], Register)
    bf16 = "BF16" in form.modifiers
    require(operand.part in ("", "H0", "H1"))
    read = binder.halves(replace(operand, part=""), bf16)
    which = int(operand.part == "H1")
    infinite_from = np.inf if bf16 else 65_536.0

    def compute(r: Registers) -> Any:
        found = function(read(r)[which].astype(np.float32)).astype(np.float64)
        found = np.where(found >= infinite_from, np.inf, found)
        return from_array(to_bits(found, bf16, "rz"))  # towards zero

    return compute


def high_of_double(form: Form, binder: Binder) -> Compute:
    """The high word of a float64 estimate, from the high word of a float64."""
    operand = form.operands[1]
    if isinstance(operand, Immediate) and isinstance(operand.value, float):
        bits = struct.unpack("<q", struct.pack("<d", operand.value))[0]  # printed as float64
        operand = Immediate(bits >> 32)
    word = binder.word(operand)
    function = OF_HIGH[form.modifiers[0]]
    return lambda r: fit(from_array(function(to_array(word(r)))), 32)
