"""Extended-precision arithmetic with a carry bit: `add.cc addc sub.cc subc mad.cc madc`.

In: register values (values.py); those that read the carry get it as one source more. Out: the
result, or with `.cc` the pair (result, carry).
Source of what each instruction means: PTX ISA, "Extended-Precision Integer Arithmetic".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.ptx.program import Instruction
from memsim.simt.integers import multiplication
from memsim.simt.registry import Compute, Unsupported, alu, integer_type, options
from memsim.state.registers import fit, from_array, ints, to_array, unsigned
from memsim.state.sums import s64, u64

Value = Any


@alu("add", "addc", "sub", "subc", sources=2, kind="carry")
def build_add(instruction: Instruction) -> Compute:
    options(instruction, "cc")
    subtracts = instruction.opcode in ("sub", "subc")
    chain = chained(instruction, subtracts)
    return lambda a, b, carry=0: chain(a, b, carry)


@alu("mad", "madc", sources=3, kind="carry")
def build_mad(instruction: Instruction) -> Compute:
    half = options(instruction, "lo", "hi", "cc") - {"cc"}
    if len(half) != 1:
        raise Unsupported(instruction.name)
    multiply = multiplication(instruction, *half)
    chain = chained(instruction, subtracts=False)
    return lambda a, b, c, carry=0: chain(multiply(a, b), c, carry)


def chained(instruction: Instruction, subtracts: bool) -> Compute:
    """`a + b + carry`, or `a - (b + borrow)`; with `.cc` together with the carry or borrow out of it."""
    _, bits = integer_type(instruction)
    if bits < 32:
        raise Unsupported(instruction.name)

    def pattern(value: Value) -> np.ndarray:
        x = ints(value, bits)
        return u64(to_array(unsigned(x, bits) if bits < 64 else x))

    def compute(a: Value, b: Value, carry: Value) -> Any:
        x, y, carried = pattern(a), pattern(b), u64(to_array(ints(carry, 32)))
        if subtracts:
            result = x - y - carried
            out = (x < y) | ((x == y) & (carried == 1))
        else:
            result = x + y + carried
            limit = np.uint64((1 << bits) - 1)
            out = (x > limit - y) | ((x == limit - y) & (carried == 1))
        value = fit(from_array(s64(result)), bits)
        return (value, from_array(out.astype(np.int64))) if "cc" in instruction.modifiers else value

    return compute
