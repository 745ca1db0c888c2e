"""The instruction of the multi-function unit: `MUFU`."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from typing import Any

import numpy as np

from memsim.isa.definitions import BoundForm, Compute, define, executes
from memsim.isa.float_formats import to_bits
from memsim.isa.multi_function import FUNCTIONS, OF_HIGH
from memsim.isa.op import Immediate, Operand, Register
from memsim.isa.program import Op
from memsim.isa.readers import FloatReader, Registers
from memsim.isa.unsupported import require
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


@executes(" ".join(f"MUFU.{name}" for name in FUNCTIONS), "W <- F", "FTZ")
def function_of_float(form: BoundForm, read: FloatReader) -> Compute:
    function = FUNCTIONS[form.modifiers[0]]
    return lambda r: function(read(r))


@executes("MUFU.EX2.F16 MUFU.EX2.BF16 MUFU.TANH.F16 MUFU.TANH.BF16", "W <- R")
def function_of_half(form: BoundForm, operand: Register) -> Compute:
    """The upper half of the result is 0."""
    function, bf16 = FUNCTIONS[form.modifiers[0]], "BF16" in form.given
    require(operand.part in ("", "H0", "H1"))
    read = form.binder.halves(replace(operand, part=""), bf16)
    which = int(operand.part == "H1")
    infinite_from = np.inf if bf16 else 65_536.0

    def compute(r: Registers) -> Any:
        found = function(read(r)[which].astype(np.float32)).astype(np.float64)
        found = np.where(found >= infinite_from, np.inf, found)
        return from_array(to_bits(found, bf16, "rz"))  # towards zero

    return compute


@executes(" ".join(f"MUFU.{name}" for name in OF_HIGH), "W <- V")
def high_of_double(form: BoundForm, operand: Operand) -> Compute:
    """The high word of a float64 estimate, from the high word of a float64."""
    if isinstance(operand, Immediate) and isinstance(operand.value, float):
        bits = struct.unpack("<q", struct.pack("<d", operand.value))[0]  # printed as float64
        operand = Immediate(bits >> 32)
    word, function = form.binder.word(operand), OF_HIGH[form.modifiers[0]]
    return lambda r: fit(from_array(function(to_array(word(r)))), 32)


define("MUFU", "W <- V", None)  # others are not executed
