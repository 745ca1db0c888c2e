"""Bit fields, bit counts and byte permutations: `bfe bfi popc clz bfind brev prmt fns szext bmsk`.

In: register values (values.py). Out: register values.
Source of what each instruction means: PTX ISA, "Integer Arithmetic Instructions", `prmt`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.ptx.program import Instruction
from memsim.simt.registry import Compute, Unsupported, alu, integer_type, mode, options
from memsim.state.registers import fit, from_array, ints, plus, to_array, unsigned
from memsim.state.sums import Int, and_mask, low_bits, s64, shift_left, shift_right, u64

Value = Any


def pattern(value: Value, bits: int) -> np.ndarray:
    """The bits of an integer, the upper ones zero, as uint64."""
    x = ints(value, bits)
    return u64(to_array(unsigned(x, bits) if bits < 64 else x))


def shifted(array: np.ndarray, amount: np.ndarray, ufunc: np.ufunc) -> np.ndarray:
    """uint64 shifted by any amount; 64 and more shift everything out."""
    moved = ufunc(array, np.minimum(amount, 63).astype(np.uint64))
    return np.asarray(np.where(amount >= 64, np.uint64(0), moved))


def ones(length: np.ndarray) -> np.ndarray:
    """The `length` lowest bits set, as uint64."""
    return ~shifted(u64(np.full_like(length, -1)), length, np.left_shift)


# --- fields ---------------------------------------------------------------------------------


@alu("bfe", sources=3)
def build_bfe(instruction: Instruction) -> Compute:
    options(instruction)
    signed, bits = integer_type(instruction)

    def compute(a: Value, b: Value, c: Value) -> Int:
        x, start, length = ints(a, bits), low_bits(ints(b, 32), 8), low_bits(ints(c, 32), 8)
        if type(start) is int and type(length) is int and 0 < length <= bits - start:
            field = fit(low_bits(shift_right(x, start, False, bits), length), bits)
            unused = bits - length
            return shift_right(shift_left(field, unused, bits), unused, True, bits) if signed else field
        return extract(x, to_array(start), to_array(length), signed, bits)

    return compute


def extract(x: Int, start: np.ndarray, length: np.ndarray, signed: bool, bits: int) -> Int:
    """The field shifted down; what lies beyond the top is the sign of the field, or zero."""
    if not signed:
        field = shifted(pattern(x, bits), start, np.right_shift) & ones(length)
        return fit(from_array(s64(field)), bits)
    unused = np.clip(64 - length, 0, 63)
    field = to_array(x) >> np.minimum(start, bits - 1)
    return from_array(np.where(length == 0, 0, field << unused >> unused))


@alu("bfi", sources=4)
def build_bfi(instruction: Instruction) -> Compute:
    options(instruction)
    _, bits = integer_type(instruction)

    def compute(a: Value, b: Value, c: Value, d: Value) -> Int:
        start, length = low_bits(ints(c, 32), 8), low_bits(ints(d, 32), 8)
        if type(start) is int and type(length) is int and start + length < bits:
            field = shift_left(low_bits(ints(a, bits), length), start, bits)
            return plus(and_mask(ints(b, bits), ~(((1 << length) - 1) << start)), field)
        where = shifted(ones(to_array(length)), to_array(start), np.left_shift)
        moved = shifted(pattern(a, bits), to_array(start), np.left_shift)
        return fit(from_array(s64((pattern(b, bits) & ~where) | (moved & where))), bits)

    return compute


@alu("szext", sources=2)
def build_szext(instruction: Instruction) -> Compute:
    wraps = mode(instruction, "clamp", "wrap") == "wrap"
    signed, bits = integer_type(instruction)
    if bits != 32:
        raise Unsupported(instruction.name)

    def compute(a: Value, b: Value) -> Int:
        length = to_array(unsigned(ints(b, 32), 32))
        length = length & 31 if wraps else np.minimum(length, 32)
        return extract(ints(a, 32), np.zeros_like(length), length, signed, 32)

    return compute


@alu("bmsk", sources=2)
def build_bmsk(instruction: Instruction) -> Compute:
    wraps = mode(instruction, "clamp", "wrap") == "wrap"
    if instruction.modifiers[-1] != "b32":
        raise Unsupported(instruction.name)

    def compute(a: Value, b: Value) -> Int:
        start, length = (to_array(unsigned(ints(value, 32), 32)) for value in (a, b))
        if wraps:
            start, length = start & 31, length & 31
        return fit(from_array(s64(shifted(ones(length), start, np.left_shift))), 32)

    return compute


# --- counts and positions -------------------------------------------------------------------


@alu("popc", sources=1)
def build_popc(instruction: Instruction) -> Compute:
    options(instruction)
    _, bits = integer_type(instruction)

    def compute(a: Value) -> Int:
        count = pattern(a, bits)
        for width, mask in enumerate((0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F)):
            lower = np.uint64(mask)
            count = (count & lower) + (count >> np.uint64(1 << width) & lower)
        return from_array(s64(count * np.uint64(0x0101010101010101) >> np.uint64(56)))

    return compute


def highest_bit(array: np.ndarray) -> np.ndarray:
    """Position of the highest bit set of a uint64, -1 where there is none."""
    position = np.where(array == 0, -1, 0)
    for step in (32, 16, 8, 4, 2, 1):
        above = array >> np.uint64(step)
        position = position + np.where(above != 0, step, 0)
        array = np.where(above != 0, above, array)
    return position


@alu("clz", sources=1)
def build_clz(instruction: Instruction) -> Compute:
    options(instruction)
    _, bits = integer_type(instruction)
    return lambda a: from_array(bits - 1 - highest_bit(pattern(a, bits)))


@alu("bfind", sources=1)
def build_bfind(instruction: Instruction) -> Compute:
    as_amount = options(instruction, "shiftamt")
    signed, bits = integer_type(instruction)

    def compute(a: Value) -> Int:
        x = to_array(ints(a, bits))
        found = highest_bit(u64(np.where(x < 0, ~x, x)) if signed else pattern(a, bits))
        return from_array(np.where(found < 0, -1, bits - 1 - found) if as_amount else found)

    return compute


@alu("brev", sources=1)
def build_brev(instruction: Instruction) -> Compute:
    options(instruction)
    _, bits = integer_type(instruction)
    halves = (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F, 0x00FF00FF00FF00FF)

    def compute(a: Value) -> Int:
        x = pattern(a, bits)
        for step, half in enumerate((*halves, 0x0000FFFF0000FFFF, 0x00000000FFFFFFFF)):
            mask, width = np.uint64(half), np.uint64(1 << step)
            x = ((x & mask) << width) | (x >> width & mask)
        return fit(from_array(s64(x >> np.uint64(64 - bits))), bits)

    return compute


@alu("fns", sources=3)
def build_fns(instruction: Instruction) -> Compute:
    if instruction.modifiers != ("b32",):
        raise Unsupported(instruction.name)

    def compute(mask: Value, base: Value, offset: Value) -> Int:
        bits, start, n = np.broadcast_arrays(*(to_array(ints(v, 32)) for v in (mask, base, offset)))
        position = np.arange(32)
        is_set = (bits[..., None] >> position) & 1 == 1
        upward = is_set & (position >= start[..., None])
        downward = (is_set & (position <= start[..., None]))[..., ::-1]
        candidates = np.where(n[..., None] > 0, upward, downward)
        hit = candidates & (candidates.cumsum(axis=-1) == np.abs(n)[..., None])
        at = np.where(n > 0, hit.argmax(axis=-1), 31 - hit.argmax(axis=-1))
        itself = np.where((bits >> (start & 31)) & 1 == 1, start, -1)
        return from_array(np.where(n == 0, itself, np.where(hit.any(axis=-1), at, -1)))

    return compute


# --- bytes ----------------------------------------------------------------------------------

#: The selector that each mode of `prmt` makes of the two low bits of its third operand.
_PRMT = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


@alu("prmt", sources=3)
def build_prmt(instruction: Instruction) -> Compute:
    kind, *named = instruction.modifiers
    if kind != "b32" or (named and (len(named) > 1 or named[0] not in _PRMT)):
        raise Unsupported(instruction.name)
    table = np.array(_PRMT[named[0]]) if named else None

    def compute(a: Value, b: Value, c: Value) -> Int:
        low, high = (to_array(unsigned(ints(value, 32), 32)) for value in (a, b))
        select = to_array(ints(c, 32))
        if table is not None:
            select = table[select & 3]
        pool = low | (high << 32)
        result: np.ndarray = np.zeros((1, 1), np.int64)
        for i in range(4):
            pick = (select >> (4 * i)) & 0xF
            byte = (pool >> ((pick & 7) * 8)) & 0xFF
            byte = np.where(pick & 8, np.where(byte & 0x80, 0xFF, 0), byte)
            result = result | (byte << (8 * i))
        return fit(from_array(result), 32)

    return compute
