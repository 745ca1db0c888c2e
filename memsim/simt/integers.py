"""Integer, logic, shift, bit-field, compare and select instructions.

In: register values (values.py). Out: register values. The short cuts keep sums in parts:
adding, scaling, shifting, masking and comparing work on parts and bounds where the answer
is the same, and write the sum out only where it is not.
Source of what each instruction means: PTX ISA, chapter "Instruction Set".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from memsim.ptx.program import Instruction
from memsim.simt.floats import FLOAT_BUILDERS
from memsim.simt.registry import Compute, Unsupported, alu, integer_type, is_float, scalar_type
from memsim.simt.values import (
    Part,
    Sum,
    both,
    bounds,
    either,
    fit,
    from_array,
    ints,
    invert,
    low_zeros,
    plus,
    predicate,
    times,
    to_array,
    unsigned,
)

Value = Any


def floats_first(builder: Callable[[Instruction], Compute]) -> Callable[[Instruction], Compute]:
    """An opcode that floats and integers share: float forms go to floats.py."""

    def build(instruction: Instruction) -> Compute:
        if is_float(instruction):
            return FLOAT_BUILDERS[instruction.opcode](instruction)
        return builder(instruction)

    return build


def u64(array: np.ndarray) -> np.ndarray:
    """int64 bits read as uint64."""
    return array.view(np.uint64)


def readings(a: Value, b: Value, signed: bool, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Two operands as arrays that numpy orders and divides as the type says."""
    x, y = ints(a, bits), ints(b, bits)
    if signed:
        return to_array(x), to_array(y)
    if bits < 64:
        return to_array(unsigned(x, bits)), to_array(unsigned(y, bits))
    return u64(to_array(x)), u64(to_array(y))


def non_negative(value: int | Sum) -> bool:
    """True where signed and unsigned reading agree in every thread."""
    return bounds(value)[0] >= 0


# --- arithmetic -----------------------------------------------------------------------------


@alu("add")
@floats_first
def build_add(instruction: Instruction) -> Compute:
    _, bits = plain_integer(instruction)
    return lambda a, b: fit(plus(ints(a, bits), ints(b, bits)), bits)


@alu("sub")
@floats_first
def build_sub(instruction: Instruction) -> Compute:
    _, bits = plain_integer(instruction)
    return lambda a, b: fit(minus(ints(a, bits), ints(b, bits)), bits)


def plain_integer(instruction: Instruction) -> tuple[bool, int]:
    """The type of an instruction that takes no carry and does not saturate."""
    if {"cc", "sat"} & set(instruction.modifiers):
        raise Unsupported(instruction.name)
    return integer_type(instruction)


def minus(a: int | Sum, b: int | Sum) -> int | Sum:
    """Exact difference."""
    return plus(a, times(b, -1))


@alu("mul")
@floats_first
def build_mul(instruction: Instruction) -> Compute:
    return product(instruction)


@alu("mad")
@floats_first
def build_mad(instruction: Instruction) -> Compute:
    _, bits = plain_integer(instruction)
    multiply = product(instruction)
    if "wide" in instruction.modifiers:
        bits *= 2
    return lambda a, b, c: fit(plus(multiply(a, b), ints(c, bits)), bits)


def product(instruction: Instruction) -> Compute:
    """`.lo`, `.hi` or `.wide` product of two integers."""
    signed, bits = plain_integer(instruction)
    if "wide" in instruction.modifiers:
        return lambda a, b: fit(widened(a, b, signed, bits), 2 * bits)
    if "hi" in instruction.modifiers:
        return lambda a, b: high_half(a, b, signed, bits)
    if "lo" not in instruction.modifiers:
        raise Unsupported(instruction.name)
    return lambda a, b: fit(low_product(ints(a, bits), ints(b, bits)), bits)


def low_product(a: int | Sum, b: int | Sum) -> int | Sum:
    """Product, exact or modulo 2**64."""
    if type(a) is int:
        return times(b, a)
    if type(b) is int:
        return times(a, b)
    return from_array(to_array(a) * to_array(b))


def widened(a: Value, b: Value, signed: bool, bits: int) -> int | Sum:
    """Full product of two numbers of at most 32 bits."""
    x, y = ints(a, bits), ints(b, bits)
    if not signed:
        x, y = unsigned(x, bits), unsigned(y, bits)
    return low_product(fit(x, bits) if signed else x, fit(y, bits) if signed else y)


def high_half(a: Value, b: Value, signed: bool, bits: int) -> int | Sum:
    """Upper half of the double-width product."""
    if bits < 64:
        full = widened(a, b, signed, bits)
        if type(full) is int:
            return fit(full >> bits, bits)
        array = to_array(full)
        shifted = array >> bits if signed else (u64(array) >> np.uint64(bits)).view(np.int64)
        return fit(from_array(shifted), bits)
    x, y = np.broadcast_arrays(to_array(ints(a, 64)), to_array(ints(b, 64)))
    reading = (lambda v: v) if signed else (lambda v: v & (2**64 - 1))
    high = [(reading(int(p)) * reading(int(q))) >> 64 for p, q in zip(x.flat, y.flat)]
    flat = np.array([h - 2**64 if h >= 2**63 else h for h in high], dtype=np.int64)
    return from_array(flat.reshape(x.shape))


@alu("mul24", "mad24")
def build_mul24(instruction: Instruction) -> Compute:
    signed, bits = plain_integer(instruction)
    if "lo" not in instruction.modifiers or bits != 32:
        raise Unsupported(instruction.name)

    def low24(value: Value) -> int | Sum:
        low = and_ints(ints(value, 32), 0xFFFFFF, 32)
        return shift_right(shift_left(low, 8, 32), 8, True, 32) if signed else low

    if instruction.opcode == "mul24":
        return lambda a, b: fit(low_product(low24(a), low24(b)), 32)
    return lambda a, b, c: fit(plus(low_product(low24(a), low24(b)), ints(c, 32)), 32)


@alu("div", "rem")
@floats_first
def build_div(instruction: Instruction) -> Compute:
    signed, bits = integer_type(instruction)
    remainder = instruction.opcode == "rem"
    return lambda a, b: divide(a, b, remainder, signed, bits)


def divide(a: Value, b: Value, remainder: bool, signed: bool, bits: int) -> int | Sum:
    """Quotient rounded towards zero, or its remainder; by zero: all ones, or the dividend."""
    x, y = ints(a, bits), ints(b, bits)
    if type(y) is int and y > 0 and y & (y - 1) == 0 and non_negative(x):
        return and_ints(x, y - 1, bits) if remainder else shift_right(x, y.bit_length() - 1, False, bits)
    if type(y) is int and y > 0 and bounds(x)[0] >= 0 and bounds(x)[1] < y:
        return x if remainder else 0
    p, q = np.broadcast_arrays(*readings(a, b, signed, bits))
    zero = q == 0
    q = np.where(zero, q.dtype.type(1), q)
    quotient = p // q
    if signed:  # numpy rounds down, the hardware towards zero
        quotient = quotient + ((quotient < 0) & (quotient * q != p))
    result = np.where(zero, p, p - quotient * q) if remainder else np.where(zero, ~q.dtype.type(0), quotient)
    return fit(from_array(result.view(np.int64)), bits)


@alu("neg")
@floats_first
def build_neg(instruction: Instruction) -> Compute:
    _, bits = integer_type(instruction)
    return lambda a: fit(times(ints(a, bits), -1), bits)


@alu("abs")
@floats_first
def build_abs(instruction: Instruction) -> Compute:
    _, bits = integer_type(instruction)

    def compute(a: Value) -> int | Sum:
        x = ints(a, bits)
        if non_negative(x):
            return x
        return fit(abs(x) if type(x) is int else from_array(np.abs(to_array(x))), bits)

    return compute


@alu("min", "max")
@floats_first
def build_min_max(instruction: Instruction) -> Compute:
    signed, bits = integer_type(instruction)
    smaller = instruction.opcode == "min"

    def compute(a: Value, b: Value) -> int | Sum:
        x, y = ints(a, bits), ints(b, bits)
        (x_lo, x_hi), (y_lo, y_hi) = bounds(x), bounds(y)
        if signed or (x_lo >= 0 and y_lo >= 0):
            if x_hi <= y_lo:
                return x if smaller else y
            if y_hi <= x_lo:
                return y if smaller else x
        p, q = readings(x, y, signed, bits)
        result = np.minimum(p, q) if smaller else np.maximum(p, q)
        return fit(from_array(result.view(np.int64)), bits)

    return compute


@alu("sad")
def build_sad(instruction: Instruction) -> Compute:
    signed, bits = integer_type(instruction)

    def compute(a: Value, b: Value, c: Value) -> int | Sum:
        p, q = readings(a, b, signed, bits)
        distance = (np.maximum(p, q) - np.minimum(p, q)).view(np.int64)
        return fit(plus(from_array(distance), ints(c, bits)), bits)

    return compute


@alu("dp4a")
def build_dp4a(instruction: Instruction) -> Compute:
    left, right = instruction.modifiers[-2:]

    def bytes_of(value: Value, signed: bool) -> list[np.ndarray]:
        array = to_array(ints(value, 32))
        picked = [(array >> shift) & 0xFF for shift in (0, 8, 16, 24)]
        return [((b ^ 0x80) - 0x80) if signed else b for b in picked]

    def compute(a: Value, b: Value, c: Value) -> int | Sum:
        pairs = zip(bytes_of(a, left == "s32"), bytes_of(b, right == "s32"))
        total = sum((x * y for x, y in pairs), start=np.zeros((1, 1), np.int64))
        return fit(plus(from_array(total), ints(c, 32)), 32)

    return compute


# --- logic and shifts -----------------------------------------------------------------------


def and_ints(a: int | Sum, b: int | Sum, bits: int) -> int | Sum:
    """Bitwise and. A low mask drops the parts that are multiples of it."""
    if type(a) is int:
        if type(b) is int:
            return a & b
        a, b = b, a
    if type(b) is int:
        assert isinstance(a, Sum)
        if b == 0:
            return 0
        if b > 0 and b & (b + 1) == 0:
            return low_bits(a, b.bit_length())
        if b < 0 and -b & (-b - 1) == 0:  # ...11110000: what the low mask leaves
            return fit(minus(a, low_bits(a, (-b).bit_length() - 1)), bits)
    return from_array(to_array(a) & to_array(b))


def low_bits(value: Sum, count: int) -> int | Sum:
    """`value & (2**count - 1)`."""
    if count >= 63 and value.lo >= 0:
        return value
    if value.lo >= 0 and value.hi < 1 << count:
        return value
    rest = keep_parts(value, count, below=True)
    if type(rest) is int:
        return rest & ((1 << count) - 1)
    assert isinstance(rest, Sum)
    if rest.lo >= 0 and rest.hi < 1 << count:
        return rest
    return from_array(rest.array & ((1 << count) - 1))


def keep_parts(value: Sum, count: int, below: bool) -> int | Sum:
    """The parts of a sum that are not (below) or are multiples of 2**count.

    The constant is split too, so that both halves together are the value.
    """
    low = value.s & ((1 << count) - 1)
    parts = [
        part if part is not None and (part.zeros < count) == below else None
        for part in (value.u, value.v, value.f)
    ]
    s = low if below else value.s - low
    return Sum(s, *parts) if any(parts) else s


def or_ints(a: int | Sum, b: int | Sum) -> int | Sum:
    """Bitwise or; an addition where no bit is set in both (compilers write index sums so)."""
    if type(a) is int and type(b) is int:
        return a | b
    (a_lo, a_hi), (b_lo, b_hi) = bounds(a), bounds(b)
    if (b_lo >= 0 and b_hi < 1 << low_zeros(a)) or (a_lo >= 0 and a_hi < 1 << low_zeros(b)):
        return plus(a, b)
    return from_array(to_array(a) | to_array(b))


def xor_ints(a: int | Sum, b: int | Sum) -> int | Sum:
    """Bitwise exclusive or."""
    if type(a) is int and type(b) is int:
        return a ^ b
    return from_array(to_array(a) ^ to_array(b))


@alu("and", "or", "xor")
def build_logic(instruction: Instruction) -> Compute:
    if scalar_type(instruction) == "pred":
        return {
            "and": lambda a, b: both(predicate(a), predicate(b)),
            "or": lambda a, b: either(predicate(a), predicate(b)),
            "xor": lambda a, b: differ(predicate(a), predicate(b)),
        }[instruction.opcode]
    _, bits = integer_type(instruction)
    return {
        "and": lambda a, b: and_ints(ints(a, bits), ints(b, bits), bits),
        "or": lambda a, b: or_ints(ints(a, bits), ints(b, bits)),
        "xor": lambda a, b: xor_ints(ints(a, bits), ints(b, bits)),
    }[instruction.opcode]


def differ(a: bool | Part, b: bool | Part) -> bool | Part:
    """Exclusive or of predicates."""
    return either(both(a, invert(b)), both(invert(a), b))


@alu("not")
def build_not(instruction: Instruction) -> Compute:
    if scalar_type(instruction) == "pred":
        return lambda a: invert(predicate(a))
    _, bits = integer_type(instruction)
    return lambda a: fit(plus(times(ints(a, bits), -1), -1), bits)


@alu("cnot")
def build_cnot(instruction: Instruction) -> Compute:
    _, bits = integer_type(instruction)
    return lambda a: from_array((to_array(ints(a, bits)) == 0).astype(np.int64))


@alu("lop3")
def build_lop3(instruction: Instruction) -> Compute:
    if "BOOL" in "".join(instruction.modifiers).upper():
        raise Unsupported(instruction.name)

    def compute(a: Value, b: Value, c: Value, table: Value) -> int | Sum:
        x, y, z = (to_array(ints(value, 32)) for value in (a, b, c))
        result = np.zeros((1, 1), np.int64)
        for row in range(8):
            if int(table) >> row & 1:
                result = result | ((x if row & 4 else ~x) & (y if row & 2 else ~y) & (z if row & 1 else ~z))
        return fit(from_array(result), 32)

    return compute


@alu("shl")
def build_shl(instruction: Instruction) -> Compute:
    _, bits = integer_type(instruction)

    def compute(a: Value, b: Value) -> int | Sum:
        x, amount = ints(a, bits), unsigned(ints(b, 32), 32)
        if type(amount) is int:
            return shift_left(x, amount, bits)
        many = np.minimum(to_array(amount), bits)
        shifted = to_array(x) << np.minimum(many, 63)
        return fit(from_array(np.where(many >= bits, 0, shifted)), bits)

    return compute


def shift_left(value: int | Sum, amount: int, bits: int) -> int | Sum:
    """`value << amount`, amounts past the width give 0."""
    return fit(times(value, 1 << amount), bits) if amount < bits else 0


@alu("shr")
def build_shr(instruction: Instruction) -> Compute:
    signed, bits = integer_type(instruction)

    def compute(a: Value, b: Value) -> int | Sum:
        x, amount = ints(a, bits), unsigned(ints(b, 32), 32)
        if type(amount) is int:
            return shift_right(x, amount, signed, bits)
        many = np.minimum(to_array(amount), bits - 1 if signed else bits)
        if signed:
            return from_array(to_array(x) >> many)
        if bits < 64:
            return fit(from_array(to_array(unsigned(x, bits)) >> many), bits)
        shifted = u64(to_array(x)) >> np.minimum(many, 63).astype(np.uint64)
        return from_array(np.where(many >= 64, np.uint64(0), shifted).view(np.int64))

    return compute


def shift_right(value: int | Sum, amount: int, signed: bool, bits: int) -> int | Sum:
    """`value >> amount`; parts that are multiples of 2**amount are shifted on their own."""
    if amount >= bits:
        if not signed:
            return 0
        amount = bits - 1
    if amount == 0:
        return value
    if not signed and not non_negative(value):
        if bits == 64:
            array = u64(to_array(value)) >> np.uint64(amount)
            return from_array(array.view(np.int64))
        value = unsigned(value, bits)
    if type(value) is int:
        return value >> amount
    assert isinstance(value, Sum)
    if value.lo >> amount == value.hi >> amount:
        return value.lo >> amount
    high = keep_parts(value, amount, below=False)
    low = keep_parts(value, amount, below=True)
    return plus(shift_multiple(high, amount), shift_part(low, amount))


def shift_multiple(value: int | Sum, amount: int) -> int | Sum:
    """Shift of a sum whose every part is a multiple of 2**amount."""
    if type(value) is int:
        return value >> amount
    assert isinstance(value, Sum)
    shifted = (None if part is None else Part(part.array >> amount) for part in (value.u, value.v, value.f))
    return Sum(value.s >> amount, *shifted)


def shift_part(value: int | Sum, amount: int) -> int | Sum:
    """Shift of what is left of a sum."""
    if type(value) is int:
        return value >> amount
    assert isinstance(value, Sum)
    if value.lo >> amount == value.hi >> amount:
        return value.lo >> amount
    return from_array(value.array >> amount)


@alu("shf")
def build_shf(instruction: Instruction) -> Compute:
    left = "l" in instruction.modifiers
    clamp = "clamp" in instruction.modifiers

    def compute(a: Value, b: Value, c: Value) -> int | Sum:
        low = to_array(unsigned(ints(a, 32), 32))
        high = to_array(unsigned(ints(b, 32), 32))
        amount = to_array(unsigned(ints(c, 32), 32))
        amount = np.minimum(amount, 32) if clamp else amount & 31
        joined = u64(low | (high << 32))
        if left:
            joined = (joined << amount.astype(np.uint64)) >> np.uint64(32)
            joined = np.where(amount == 32, low.view(np.uint64), joined)
        else:
            joined = joined >> amount.astype(np.uint64)
        return fit(from_array(np.ascontiguousarray(joined).view(np.int64)), 32)

    return compute
