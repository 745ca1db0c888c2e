"""Integer arithmetic: `add sub mul mad div rem neg abs min max sad mul24 mad24 dp4a dp2a`.

In: register values (values.py). Out: register values; sums stay in parts where sums.py can.
Source of what each instruction means: PTX ISA, "Integer Arithmetic Instructions".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from memsim.ptx.program import Instruction
from memsim.simt.registry import Compute, Unsupported, alu, build, integer_type, mode, options
from memsim.state.registers import bounds, fit, from_array, ints, plus, times, to_array, unsigned
from memsim.state.sums import (
    Int,
    and_mask,
    low_bits,
    minus,
    non_negative,
    product,
    s64,
    shift_left,
    shift_right,
    u64,
)

Value = Any


def reading(value: Int, signed: bool, bits: int) -> Int:
    """The value as a number that the type says, for widths below 64."""
    return value if signed else unsigned(value, bits)


def readings(a: Value, b: Value, signed: bool, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Two operands as arrays that numpy orders and divides as the type says."""
    x, y = ints(a, bits), ints(b, bits)
    if bits == 64 and not signed:
        return u64(to_array(x)), u64(to_array(y))
    return to_array(reading(x, signed, bits)), to_array(reading(y, signed, bits))


def saturate(value: Int) -> Int:
    """The value, or the nearest that a signed 32-bit register holds."""
    lo, hi = bounds(value)
    if lo >= -(2**31) and hi < 2**31:
        return value
    return from_array(np.clip(to_array(value), -(2**31), 2**31 - 1))


def saturates(instruction: Instruction) -> bool:
    """Is the result clamped? Only s32 can be."""
    if "sat" in instruction.modifiers and instruction.modifiers[-1] != "s32":
        raise Unsupported(instruction.name)
    return "sat" in instruction.modifiers


# --- sums and products ----------------------------------------------------------------------


@alu("add", "sub", sources=2)
def build_add(instruction: Instruction) -> Compute:
    options(instruction, "sat")
    _, bits = integer_type(instruction)
    combine = plus if instruction.opcode == "add" else minus
    if saturates(instruction):
        return lambda a, b: saturate(combine(ints(a, bits), ints(b, bits)))
    return lambda a, b: fit(combine(ints(a, bits), ints(b, bits)), bits)


@alu("mul", sources=2)
def build_mul(instruction: Instruction) -> Compute:
    return multiplication(instruction, mode(instruction, "lo", "hi", "wide"))


@alu("mad", sources=3)
def build_mad(instruction: Instruction) -> Compute:
    half, *sat = instruction.modifiers[:-1] or ("",)
    if half not in ("lo", "hi", "wide") or sat not in ([], ["sat"]) or (sat and half != "hi"):
        raise Unsupported(instruction.name)
    _, bits = integer_type(instruction)
    multiply = multiplication(instruction, half)
    if saturates(instruction):
        return lambda a, b, c: saturate(plus(multiply(a, b), ints(c, bits)))
    if half == "wide":
        bits *= 2
    return lambda a, b, c: fit(plus(multiply(a, b), ints(c, bits)), bits)


def multiplication(instruction: Instruction, half: str) -> Compute:
    """The low half, the high half or all (`wide`) of the product of two integers."""
    signed, bits = integer_type(instruction)
    if half == "lo":
        return lambda a, b: fit(product(ints(a, bits), ints(b, bits)), bits)
    if bits == 64:
        if half == "wide":
            raise Unsupported(instruction.name)
        return lambda a, b: high_half(to_array(ints(a, 64)), to_array(ints(b, 64)), signed)

    def whole(a: Value, b: Value) -> Int:
        factors = (reading(ints(value, bits), signed, bits) for value in (a, b))
        return fit(product(*factors), 2 * bits)

    if half == "wide":
        return whole
    return lambda a, b: fit(shift_right(whole(a, b), bits, signed, 2 * bits), bits)


def high_half(x: np.ndarray, y: np.ndarray, signed: bool) -> Int:
    """Upper 64 bits of the 128-bit product, from four products of 32-bit halves."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a, b = u64(x), u64(y)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    first = a1 * b0 + (a0 * b0 >> half)
    second = a0 * b1 + (first & low)
    high = s64(a1 * b1 + (first >> half) + (second >> half))
    if signed:  # a negative factor was read 2**64 too large
        high = high - np.where(x < 0, y, 0) - np.where(y < 0, x, 0)
    return from_array(high)


@alu("mul24", "mad24", sources=(2, 3))
def build_mul24(instruction: Instruction) -> Compute:
    adds = instruction.opcode == "mad24"
    half, *sat = instruction.modifiers[:-1] or ("",)
    signed, bits = integer_type(instruction)
    known = half in ("lo", "hi") and bits == 32 and (not sat or (sat == ["sat"] and adds and half == "hi"))
    if not known or len(instruction.operands) != 3 + adds:
        raise Unsupported(instruction.name)
    saturated = saturates(instruction)

    def low24(value: Value) -> Int:
        low = low_bits(ints(value, 32), 24)
        return shift_right(shift_left(low, 8, 32), 8, True, 32) if signed else low

    def multiply(a: Value, b: Value) -> Int:
        whole = product(low24(a), low24(b))
        return fit(whole if half == "lo" else shift_right(whole, 16, signed, 64), 32)

    if saturated:
        return lambda a, b, c: saturate(plus(multiply(a, b), ints(c, 32)))
    return (lambda a, b, c: fit(plus(multiply(a, b), ints(c, 32)), 32)) if adds else multiply


# --- division -------------------------------------------------------------------------------


@alu("div", "rem", sources=2)
def build_div(instruction: Instruction) -> Compute:
    options(instruction)
    signed, bits = integer_type(instruction)
    remainder = instruction.opcode == "rem"
    return lambda a, b: divide(ints(a, bits), ints(b, bits), remainder, signed, bits)


def divide(x: Int, y: Int, remainder: bool, signed: bool, bits: int) -> Int:
    """Quotient rounded towards zero, or its remainder; by zero all ones, as measured on an H100."""
    if type(y) is int and y > 0 and non_negative(x):
        if y & (y - 1) == 0:
            return and_mask(x, y - 1) if remainder else shift_right(x, y.bit_length() - 1, False, bits)
        if bounds(x)[1] < y:
            return x if remainder else 0
    p, q = np.broadcast_arrays(*readings(x, y, signed, bits))
    zero = q == 0
    q = np.where(zero, q.dtype.type(1), q)
    quotient = p // q
    if signed:  # numpy rounds down, the hardware towards zero
        quotient = quotient + ((quotient < 0) & (quotient * q != p))
    result = p - quotient * q if remainder else quotient
    return fit(from_array(s64(np.where(zero, ~q.dtype.type(0), result))), bits)


# --- sign, order, distance ------------------------------------------------------------------


@alu("neg", sources=1)
def build_neg(instruction: Instruction) -> Compute:
    options(instruction)
    _, bits = integer_type(instruction)
    return lambda a: fit(times(ints(a, bits), -1), bits)


@alu("abs", sources=1)
def build_abs(instruction: Instruction) -> Compute:
    options(instruction)
    _, bits = integer_type(instruction)

    def compute(a: Value) -> Int:
        x = ints(a, bits)
        return x if non_negative(x) else fit(from_array(np.abs(to_array(x))), bits)

    return compute


@alu("min", "max", sources=2)
def build_min_max(instruction: Instruction) -> Compute:
    relu = options(instruction, "relu")
    signed, bits = integer_type(instruction)
    smaller = instruction.opcode == "min"
    if relu and not (signed and bits == 32):
        raise Unsupported(instruction.name)
    if relu:
        return lambda a, b: lesser(lesser(a, b, smaller, True, 32), 0, False, True, 32)
    return lambda a, b: lesser(a, b, smaller, signed, bits)


def lesser(a: Value, b: Value, smaller: bool, signed: bool, bits: int) -> Int:
    """The smaller or else the larger of two integers; decided by bounds where they do not overlap."""
    x, y = ints(a, bits), ints(b, bits)
    (x_lo, x_hi), (y_lo, y_hi) = bounds(x), bounds(y)
    if signed or (x_lo >= 0 and y_lo >= 0):
        if x_hi <= y_lo:
            return x if smaller else y
        if y_hi <= x_lo:
            return y if smaller else x
    p, q = readings(x, y, signed, bits)
    return fit(from_array(s64(np.minimum(p, q) if smaller else np.maximum(p, q))), bits)


@alu("sad", sources=3)
def build_sad(instruction: Instruction) -> Compute:
    options(instruction)
    signed, bits = integer_type(instruction)

    def compute(a: Value, b: Value, c: Value) -> Int:
        p, q = readings(a, b, signed, bits)
        distance = s64(np.maximum(p, q) - np.minimum(p, q))
        return fit(plus(from_array(distance), ints(c, bits)), bits)

    return compute


# --- several numbers in a register ----------------------------------------------------------


def fields(value: Value, signed: bool, size: int) -> list[np.ndarray]:
    """The 32 / size numbers in a 32-bit register, the lowest first."""
    array = to_array(ints(value, 32))
    picked = [(array >> shift) & ((1 << size) - 1) for shift in range(0, 32, size)]
    sign = 1 << (size - 1)
    return [(field ^ sign) - sign if signed else field for field in picked]


@alu("dp4a", "dp2a", sources=3)
def build_dot_product(instruction: Instruction) -> Compute:
    *half, left, right = "", *instruction.modifiers
    four = instruction.opcode == "dp4a"
    if {left, right} - {"s32", "u32"} or half[1:] not in ([[]] if four else [["lo"], ["hi"]]):
        raise Unsupported(instruction.name)
    first = 2 if "hi" in half else 0

    def compute(a: Value, b: Value, c: Value) -> Int:
        pairs = zip(fields(a, left == "s32", 8 if four else 16), fields(b, right == "s32", 8)[first:])
        total: np.ndarray = sum((x * y for x, y in pairs), start=np.zeros((1, 1), np.int64))
        return fit(plus(from_array(total), ints(c, 32)), 32)

    return compute


@alu("add", "min", "max", sources=2, kind="packed")
def build_packed(instruction: Instruction) -> Compute:
    relu = "relu" in instruction.modifiers
    if instruction.opcode == "add" and relu:
        raise Unsupported(instruction.name)
    options(instruction, "relu")
    signed = instruction.modifiers[-1] == "s16x2"
    if relu and not signed:
        raise Unsupported(instruction.name)
    compute = build(replace(instruction, modifiers=("s16" if signed else "u16",)))

    def compute_pair(a: Value, b: Value) -> Int:
        pairs = zip(fields(a, True, 16), fields(b, True, 16))
        halves = [to_array(compute(from_array(x), from_array(y))) for x, y in pairs]
        low, high = (np.maximum(half, 0) if relu else half for half in halves)
        return fit(from_array((low & 0xFFFF) | (high << 16)), 32)

    return compute_pair
