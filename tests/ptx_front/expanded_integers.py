"""Integer instructions of PTX without a machine instruction, which compilers expand to several.

`IDIV IREM IMULLO IMULHI ISHL ISHR IMIN IMAX IDISTANCE IBFE IBFI IPOPC ICLZ IBFIND`, each with the type that
it works on: U16, S16, U32, S32, U64 or S64. 64-bit operands are pairs; of 16-bit operands the upper half of
the register is ignored. Sums keep their parts where possible (`memsim.state.sums`). Semantics: PTX ISA,
"Integer Arithmetic Instructions".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from memsim.isa.comparisons import pick_lesser
from memsim.isa.definitions import BoundForm, Compute, executes
from memsim.isa.logic import highest_bit
from memsim.isa.number_formats import readings, split_words
from memsim.isa.op import Form, Immediate, Operand, require
from memsim.isa.readers import Binder, IntReader
from memsim.state.registers import as_unsigned, bounds, fit, from_array, plus, to_array, wrap_int
from memsim.state.sums import (
    Int,
    and_mask,
    low_bits,
    non_negative,
    product,
    s64,
    shift_left,
    shift_right,
    u64,
)

TYPES = {f"{sign}{bits}": (sign == "S", bits) for sign in "US" for bits in (16, 32, 64)}
Work = Callable[..., Int]


@dataclass(frozen=True, slots=True)
class Expanded:
    """An opcode. `work`: (signed, bits, *sources) -> result, all as signed integers.

    sources: T for one of the form's type, W for a word. counts: the result is a word.
    """

    work: Work
    sources: str
    counts: bool


EXPANDED: dict[str, Expanded] = {}


def type_of(form: BoundForm) -> tuple[bool, int]:
    """(signed, bits) of the form's only modifier."""
    require(len(form.modifiers) == 1 and form.modifiers[0] in TYPES)
    return TYPES[form.modifiers[0]]


def _signature(form: Form) -> str:
    made = EXPANDED[form.opcode]
    letter = "X" if form.modifiers and form.modifiers[0].endswith("64") else "V"
    return f"{'V' if made.counts else letter} <- {made.sources.replace('T', letter).replace('W', 'V')}"


def reader(binder: Binder, operand: Operand, bits: int) -> IntReader:
    """Reads an integer of so many bits, as a signed one."""
    if isinstance(operand, Immediate) and isinstance(operand.value, int):
        number = wrap_int(operand.value, bits)
        return lambda r: number
    read = binder.pair(operand) if bits == 64 else binder.word(operand)
    return lambda r: fit(read(r), bits)


def _build(form: BoundForm, *operands: Operand) -> Compute:
    made = EXPANDED[form.opcode]
    signed, bits = type_of(form)
    kinds = zip(operands, made.sources)
    sources = [reader(form.binder, operand, bits if kind == "T" else 32) for operand, kind in kinds]
    work = made.work
    if bits == 64 and not made.counts:
        return lambda r: split_words(work(signed, bits, *(read(r) for read in sources)))
    return lambda r: fit(work(signed, bits, *(read(r) for read in sources)), 32)


def expanded(name: str, sources: str, counts: bool = False) -> Callable[[Work], Work]:
    """Register an opcode by its function."""

    def register(work: Work) -> Work:
        EXPANDED[name] = Expanded(work, sources, counts)
        executes(name, _signature, None)(_build)
        return work

    return register


def pattern(x: Int, bits: int) -> np.ndarray:
    """The bits of an integer, zero-extended to uint64."""
    return u64(to_array(as_unsigned(x, bits) if bits < 64 else x))


# --- products, division, min and max --------------------------------------------------------------


@expanded("IMULLO", "TT")
def multiply(signed: bool, bits: int, a: Int, b: Int) -> Int:
    """The low half of a product."""
    return product(a, b)


@expanded("IMULHI", "TT")
def multiply_high(signed: bool, bits: int, a: Int, b: Int) -> Int:
    """The high half of a product; of 64 bits from four products of 32-bit halves."""
    if bits < 64:
        x, y = (a, b) if signed else (as_unsigned(a, bits), as_unsigned(b, bits))
        return fit(shift_right(fit(product(x, y), 2 * bits), bits, signed, 2 * bits), bits)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    p, q = to_array(a), to_array(b)
    u, v = u64(p), u64(q)
    u0, u1, v0, v1 = u & low, u >> half, v & low, v >> half
    first = u1 * v0 + (u0 * v0 >> half)
    second = u0 * v1 + (first & low)
    high = s64(u1 * v1 + (first >> half) + (second >> half))
    if signed:  # a negative factor was read 2**64 too large
        high = high - np.where(p < 0, q, 0) - np.where(q < 0, p, 0)
    return from_array(high)


def divide(signed: bool, bits: int, x: Int, y: Int, leaves: bool) -> Int:
    """Quotient, rounded towards zero, or the remainder if `leaves`; all ones for a division by zero, as
    measured on an H100.
    """
    if type(y) is int and y > 0 and non_negative(x):
        if y & (y - 1) == 0:
            return and_mask(x, y - 1) if leaves else shift_right(x, y.bit_length() - 1, False, bits)
        if bounds(x)[1] < y:
            return x if leaves else 0
    p, q = np.broadcast_arrays(*readings(x, y, signed, bits))
    zero = q == 0
    q = np.where(zero, q.dtype.type(1), q)
    whole = p // q
    if signed:  # numpy rounds down, the hardware towards zero
        whole = whole + ((whole < 0) & (whole * q != p))
    result = p - whole * q if leaves else whole
    return from_array(s64(np.where(zero, ~q.dtype.type(0), result)))


expanded("IDIV", "TT")(partial(divide, leaves=False))
expanded("IREM", "TT")(partial(divide, leaves=True))
expanded("IMIN", "TT")(lambda signed, bits, a, b: pick_lesser(a, b, True, signed, bits))
expanded("IMAX", "TT")(lambda signed, bits, a, b: pick_lesser(a, b, False, signed, bits))


@expanded("IDISTANCE", "TT")
def distance(signed: bool, bits: int, a: Int, b: Int) -> Int:
    """The absolute difference."""
    p, q = readings(a, b, signed, bits)
    return from_array(s64(np.maximum(p, q) - np.minimum(p, q)))


# --- shifts and fields ----------------------------------------------------------------------


def shifted(array: np.ndarray, amount: np.ndarray, ufunc: np.ufunc) -> np.ndarray:
    """uint64 shifted by any amount; 64 and more shift everything out."""
    moved = ufunc(array, np.minimum(amount, 63).astype(np.uint64))
    return np.asarray(np.where(amount >= 64, np.uint64(0), moved))


def ones(length: np.ndarray) -> np.ndarray:
    """A uint64 with the `length` lowest bits set."""
    return ~shifted(u64(np.full_like(length, -1)), length, np.left_shift)


@expanded("ISHL", "TW")
def left(signed: bool, bits: int, a: Int, by: Int) -> Int:
    """Left shift; by the width or more gives 0."""
    amount = as_unsigned(by, 32)
    if type(amount) is int:
        return shift_left(a, amount, bits)
    return from_array(s64(shifted(pattern(a, bits), to_array(amount), np.left_shift)))


@expanded("ISHR", "TW")
def right(signed: bool, bits: int, a: Int, by: Int) -> Int:
    """Right shift, arithmetic or logical."""
    amount = as_unsigned(by, 32)
    if type(amount) is int:
        return shift_right(a, amount, signed, bits)
    many = to_array(amount)
    if signed:
        return from_array(to_array(a) >> np.minimum(many, bits - 1))
    return from_array(s64(shifted(pattern(a, bits), many, np.right_shift)))


@expanded("IBFE", "TWW")
def extract(signed: bool, bits: int, a: Int, b: Int, c: Int) -> Int:
    """Bit field extract; bits beyond the top are the sign of the field, or zero."""
    start, length = low_bits(b, 8), low_bits(c, 8)
    if type(start) is int and type(length) is int and 0 < length <= bits - start:
        field = fit(low_bits(shift_right(a, start, False, bits), length), bits)
        unused = bits - length
        return shift_right(shift_left(field, unused, bits), unused, True, bits) if signed else field
    at, count = to_array(start), to_array(length)
    if not signed:
        return from_array(s64(shifted(pattern(a, bits), at, np.right_shift) & ones(count)))
    outside = np.clip(64 - count, 0, 63)
    found = to_array(a) >> np.minimum(at, bits - 1)
    return from_array(np.where(count == 0, 0, found << outside >> outside))


@expanded("IBFI", "TTWW")
def insert(signed: bool, bits: int, a: Int, b: Int, c: Int, d: Int) -> Int:
    """Bit field insert: the low bits of a as a field of b."""
    start, length = low_bits(c, 8), low_bits(d, 8)
    if type(start) is int and type(length) is int and start + length < bits:
        field = shift_left(low_bits(a, length), start, bits)
        return plus(and_mask(b, ~(((1 << length) - 1) << start)), field)
    where = shifted(ones(to_array(length)), to_array(start), np.left_shift)
    moved = shifted(pattern(a, bits), to_array(start), np.left_shift)
    return fit(from_array(s64((pattern(b, bits) & ~where) | (moved & where))), bits)


# --- counts and positions -------------------------------------------------------------------


@expanded("IPOPC", "T", counts=True)
def count_ones(signed: bool, bits: int, a: Int) -> Int:
    """The number of set bits."""
    return from_array(np.bitwise_count(pattern(a, bits)).astype(np.int64))


@expanded("ICLZ", "T", counts=True)
def leading_zeros(signed: bool, bits: int, a: Int) -> Int:
    """The number of zeros above the highest set bit."""
    return from_array(bits - 1 - highest_bit(pattern(a, bits)))


@expanded("IBFIND", "T", counts=True)
def find_highest(signed: bool, bits: int, a: Int) -> Int:
    """Index of the highest non-sign bit, -1 if there is none."""
    x = to_array(a)
    return from_array(highest_bit(u64(np.where(x < 0, ~x, x)) if signed else pattern(a, bits)))
