"""Logic and shift instructions: `and or xor not cnot lop3 shl shr shf`.

In: register values (values.py). Out: register values; sums stay in parts where sums.py can.
Source of what each instruction means: PTX ISA, "Logic and Shift Instructions".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.ptx.program import Immediate, Instruction
from memsim.simt.registry import Compute, Unsupported, alu, integer_type, options
from memsim.state.registers import (
    Part,
    Sum,
    both,
    either,
    fit,
    from_array,
    ints,
    invert,
    predicate,
    to_array,
    unsigned,
)
from memsim.state.sums import and_ints, invert_bits, or_ints, s64, shift_left, shift_right, u64, xor_ints

Value = Any

_BITWISE = {"and": and_ints, "or": or_ints, "xor": xor_ints}


def differ(a: bool | Part, b: bool | Part) -> bool | Part:
    """Exclusive or of predicates."""
    return either(both(a, invert(b)), both(invert(a), b))


_PREDICATES = {"and": both, "or": either, "xor": differ}


@alu("and", "or", "xor", sources=2)
def build_bitwise(instruction: Instruction) -> Compute:
    options(instruction)
    _, bits = integer_type(instruction)
    operation = _BITWISE[instruction.opcode]
    return lambda a, b: operation(ints(a, bits), ints(b, bits))


@alu("and", "or", "xor", sources=2, kind="predicate")
def build_logical(instruction: Instruction) -> Compute:
    options(instruction)
    operation = _PREDICATES[instruction.opcode]
    return lambda a, b: operation(predicate(a), predicate(b))


@alu("not", sources=1)
def build_not(instruction: Instruction) -> Compute:
    options(instruction)
    _, bits = integer_type(instruction)
    return lambda a: fit(invert_bits(ints(a, bits)), bits)


@alu("not", sources=1, kind="predicate")
def build_not_predicate(instruction: Instruction) -> Compute:
    options(instruction)
    return lambda a: invert(predicate(a))


@alu("cnot", sources=1)
def build_cnot(instruction: Instruction) -> Compute:
    options(instruction)
    _, bits = integer_type(instruction)
    return lambda a: from_array((to_array(ints(a, bits)) == 0).astype(np.int64))


@alu("lop3", sources=4)
def build_lop3(instruction: Instruction) -> Compute:
    table = instruction.operands[-1]
    if instruction.modifiers != ("b32",) or not isinstance(table, Immediate):
        raise Unsupported(instruction.name)
    rows = [row for row in range(8) if int(table.value) >> row & 1]

    def compute(a: Value, b: Value, c: Value, _: Value) -> int | Sum:
        x, y, z = (to_array(ints(value, 32)) for value in (a, b, c))
        result: np.ndarray = np.zeros((1, 1), np.int64)
        for row in rows:
            result = result | ((x if row & 4 else ~x) & (y if row & 2 else ~y) & (z if row & 1 else ~z))
        return from_array(result)

    return compute


@alu("shl", sources=2)
def build_shl(instruction: Instruction) -> Compute:
    options(instruction)
    _, bits = integer_type(instruction)

    def compute(a: Value, b: Value) -> int | Sum:
        x, amount = ints(a, bits), unsigned(ints(b, 32), 32)
        if type(amount) is int:
            return shift_left(x, amount, bits)
        many = to_array(amount)
        shifted = to_array(x) << np.minimum(many, 63)
        return fit(from_array(np.where(many >= bits, 0, shifted)), bits)

    return compute


@alu("shr", sources=2)
def build_shr(instruction: Instruction) -> Compute:
    options(instruction)
    signed, bits = integer_type(instruction)

    def compute(a: Value, b: Value) -> int | Sum:
        x, amount = ints(a, bits), unsigned(ints(b, 32), 32)
        if type(amount) is int:
            return shift_right(x, amount, signed, bits)
        many = to_array(amount)
        if signed:
            return from_array(to_array(x) >> np.minimum(many, bits - 1))
        pattern = u64(to_array(x if bits == 64 else unsigned(x, bits)))
        shifted = s64(pattern >> np.minimum(many, 63).astype(np.uint64))
        return fit(from_array(np.where(many >= bits, 0, shifted)), bits)

    return compute


@alu("shf", sources=3)
def build_shf(instruction: Instruction) -> Compute:
    if instruction.modifiers not in {(to, mode, "b32") for to in "lr" for mode in ("wrap", "clamp")}:
        raise Unsupported(instruction.name)
    left, clamps = "l" in instruction.modifiers, "clamp" in instruction.modifiers

    def compute(a: Value, b: Value, c: Value) -> int | Sum:
        low, high, amount = (to_array(unsigned(ints(value, 32), 32)) for value in (a, b, c))
        amount = np.minimum(amount, 32) if clamps else amount & 31
        joined = u64(low | (high << 32)) >> np.where(left, 32 - amount, amount).astype(np.uint64)
        return fit(from_array(s64(joined)), 32)

    return compute
