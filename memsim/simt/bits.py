"""Bit fields, bit counts and byte permutations.

In: register values (values.py). Out: register values.
Source of what each instruction means: PTX ISA, "Integer Arithmetic Instructions".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.ptx.program import Instruction
from memsim.simt.integers import and_ints, shift_left, shift_right, u64
from memsim.simt.registry import Compute, Unsupported, alu, integer_type
from memsim.simt.values import Sum, fit, from_array, ints, to_array, unsigned

Value = Any


@alu("bfe")
def build_bfe(instruction: Instruction) -> Compute:
    signed, bits = integer_type(instruction)

    def compute(a: Value, b: Value, c: Value) -> int | Sum:
        x = ints(a, bits)
        start, length = and_ints(ints(b, 32), 0xFF, 32), and_ints(ints(c, 32), 0xFF, 32)
        if type(start) is int and type(length) is int and start + length <= bits and length:
            field = and_ints(shift_right(x, start, False, bits), (1 << length) - 1, bits)
            if not signed:
                return fit(field, bits)
            return shift_right(shift_left(field, bits - length, bits), bits - length, True, bits)
        return extract(x, to_array(start), to_array(length), signed, bits)

    return compute


def extract(x: int | Sum, start: np.ndarray, length: np.ndarray, signed: bool, bits: int) -> int | Sum:
    """Bit-field extract by the ISA's bit-by-bit definition."""
    source = to_array(x)
    last = np.minimum(start + length - 1, bits - 1)
    sign = (source >> last) & 1 if signed else np.zeros_like(source)
    sign = np.where(length == 0, 0, sign)
    result = np.zeros((1, 1), np.int64)
    for i in range(bits):
        inside = (i < length) & (start + i < bits)
        bit = np.where(inside, (source >> np.minimum(start + i, 63)) & 1, sign)
        result = result | (bit << i)
    return fit(from_array(result), bits)


@alu("bfi")
def build_bfi(instruction: Instruction) -> Compute:
    _, bits = integer_type(instruction)

    def compute(a: Value, b: Value, c: Value, d: Value) -> int | Sum:
        x, y = to_array(ints(a, bits)), to_array(ints(b, bits))
        start = to_array(ints(c, 32)) & 0xFF
        length = to_array(ints(d, 32)) & 0xFF
        length = np.clip(np.minimum(length, bits - start), 0, bits)
        one = np.uint64(1)
        ones = np.where(
            length >= 64, ~np.uint64(0), (one << np.minimum(length, 63).astype(np.uint64)) - one
        )
        shift = np.minimum(start, 63).astype(np.uint64)
        mask = np.where(start >= bits, np.uint64(0), ones << shift)
        result = (u64(np.ascontiguousarray(y)) & ~mask) | ((u64(np.ascontiguousarray(x)) << shift) & mask)
        return fit(from_array(np.ascontiguousarray(result).view(np.int64)), bits)

    return compute


@alu("brev", "popc", "clz", "bfind")
def build_bit_count(instruction: Instruction) -> Compute:
    signed, bits = integer_type(instruction)
    opcode, amount = instruction.opcode, "shiftamt" in instruction.modifiers

    def compute(a: Value) -> int | Sum:
        x = to_array(ints(a, bits))
        if opcode == "bfind" and signed:
            x = np.where(x < 0, ~x, x)
        column = [(x >> i) & 1 for i in range(bits)]
        if opcode == "popc":
            return from_array(sum(column[1:], start=column[0]))
        if opcode == "brev":
            reversed_bits = [bit << (bits - 1 - i) for i, bit in enumerate(column)]
            return fit(from_array(sum(reversed_bits[1:], start=reversed_bits[0])), bits)
        highest = np.full_like(x, -1)
        for i, bit in enumerate(column):
            highest = np.where(bit == 1, i, highest)
        if opcode == "clz":
            return from_array(bits - 1 - highest)
        return from_array(np.where(highest < 0, -1, bits - 1 - highest) if amount else highest)

    return compute


@alu("prmt")
def build_prmt(instruction: Instruction) -> Compute:
    if instruction.modifiers != ("b32",):
        raise Unsupported(instruction.name)

    def compute(a: Value, b: Value, c: Value) -> int | Sum:
        low, high = (to_array(unsigned(ints(value, 32), 32)) for value in (a, b))
        select = to_array(ints(c, 32))
        pool = low | (high << 32)
        result = np.zeros((1, 1), np.int64)
        for i in range(4):
            pick = (select >> (4 * i)) & 0xF
            byte = (pool >> ((pick & 7) * 8)) & 0xFF
            byte = np.where(pick & 8, np.where(byte & 0x80, 0xFF, 0), byte)
            result = result | (byte << (8 * i))
        return fit(from_array(result), 32)

    return compute


