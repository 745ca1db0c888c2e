"""Integer operations that preserve the parts of a sum, for index arithmetic.

Shifts and masks work on each part of a sum separately as long as nothing carries from the low bits into the
high ones; then `(blockIdx.x * 256 + threadIdx.x) / 32` is still a block's part plus a thread's part. If
something may carry, the sum is expanded.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from memsim.state.parts import contiguous
from memsim.state.registers import Sum, as_unsigned, bounds, fit, from_array, low_zeros, plus, times, to_array

Int = int | Sum


def u64(array: np.ndarray) -> np.ndarray:
    """int64 bits read as uint64."""
    return contiguous(array).view(np.uint64)


def s64(array: np.ndarray) -> np.ndarray:
    """uint64 bits read as int64."""
    return contiguous(array).view(np.int64)


def non_negative(value: Int) -> bool:
    """Whether signed and unsigned reading agree in every thread."""
    return bounds(value)[0] >= 0


def minus(a: Int, b: Int) -> Int:
    """Exact difference."""
    return plus(a, times(b, -1))


def product(a: Int, b: Int) -> Int:
    """Product, exact or modulo 2**64."""
    if type(a) is int:
        return times(b, a)
    if type(b) is int:
        return times(a, b)
    return from_array(to_array(a) * to_array(b))


# --- low and high bits ----------------------------------------------------------------------


def same_window(value: Sum, count: int) -> bool:
    """Do all threads agree in the bits above the low `count`?"""
    return value.lo >> count == value.hi >> count


def may_carry(value: Sum, count: int) -> bool:
    """May the sum of the low `count` bits of the parts carry into the bits above?"""
    if value.f is not None or count > 60:
        return True
    mask = (1 << count) - 1
    top = value.s & mask
    for part in (value.u, value.v):
        if part is not None:
            top += part.derived(("low", count), lambda array: array & mask).hi
    return top > mask


def for_each_part(value: Sum, key: Hashable, change: Callable[[Any], Any]) -> Int:
    """`change` applied to the constant and to each part; a part that becomes constant is added to the
    constant.
    """
    s = change(value.s)
    kept = []
    for part in (value.u, value.v):
        if part is not None:
            part = part.derived(key, change)
            if part.lo == part.hi:
                s += part.lo
                part = None
        kept.append(part)
    return Sum(s, *kept) if any(kept) else s


def low_bits(value: Int, count: int) -> Int:
    """`value & (2**count - 1)`."""
    mask = (1 << count) - 1
    if type(value) is int:
        return value & mask
    assert isinstance(value, Sum)
    if same_window(value, count):
        window = value.lo & ~mask
        return plus(value, -window) if window else value
    if may_carry(value, count):
        return from_array(value.array & mask)
    return for_each_part(value, ("low", count), lambda x: x & mask)


def high_bits(value: Int, count: int) -> Int:
    """`value & -2**count`: the complement of `low_bits`."""
    if not count:
        return value
    mask = -(1 << count)
    if type(value) is int:
        return value & mask
    assert isinstance(value, Sum)
    if same_window(value, count):
        return value.lo & mask
    if may_carry(value, count):
        return from_array(value.array & mask)
    return for_each_part(value, ("high", count), lambda x: x & mask)


# --- shifts ---------------------------------------------------------------------------------


def shift_left(value: Int, amount: int, bits: int) -> Int:
    """`value << amount`; amounts of at least the width give 0."""
    return fit(times(value, 1 << amount), bits) if amount < bits else 0


def shift_right(value: Int, amount: int, signed: bool, bits: int) -> Int:
    """`value >> amount`, arithmetic or logical."""
    if amount >= bits:
        if not signed:
            return 0
        amount = bits - 1
    if amount == 0:
        return value
    if not signed and not non_negative(value):
        if bits == 64:
            return from_array(s64(u64(to_array(value)) >> np.uint64(amount)))
        value = as_unsigned(value, bits)
    if type(value) is int:
        return value >> amount
    assert isinstance(value, Sum)
    if same_window(value, amount):
        return value.lo >> amount
    if may_carry(value, amount):
        return from_array(value.array >> amount)
    return for_each_part(value, ("shift", amount), lambda x: x >> amount)


# --- bitwise --------------------------------------------------------------------------------


def and_ints(a: Int, b: Int) -> Int:
    """Bitwise and."""
    if type(a) is int:
        a, b = b, a
    if type(b) is int:
        return and_mask(a, b)
    return 0 if disjoint(a, b) else from_array(to_array(a) & to_array(b))


def and_mask(value: Int, mask: int) -> Int:
    """Bitwise and with a constant; a mask with one run of ones preserves the parts."""
    if type(value) is int:
        return value & mask
    if mask < 0:
        return minus(value, and_mask(value, ~mask))
    start, end = low_zeros(mask), mask.bit_length()
    if mask + (1 << start) == 1 << end:
        return high_bits(low_bits(value, end), start)
    return from_array(to_array(value) & mask) if mask else 0


def or_ints(a: Int, b: Int) -> Int:
    """Bitwise or; an addition if no bit is set in both (compilers write index sums like this)."""
    if type(a) is int:
        a, b = b, a
    if type(b) is int:
        return change_low(a, b, np.bitwise_or) if b >= 0 else invert_bits(and_mask(invert_bits(a), ~b))
    return plus(a, b) if disjoint(a, b) else from_array(to_array(a) | to_array(b))


def xor_ints(a: Int, b: Int) -> Int:
    """Bitwise exclusive or."""
    if type(a) is int:
        a, b = b, a
    if type(b) is int:
        return change_low(a, b, np.bitwise_xor) if b >= 0 else invert_bits(xor_ints(a, ~b))
    return plus(a, b) if disjoint(a, b) else from_array(to_array(a) ^ to_array(b))


def invert_bits(value: Int) -> Int:
    """Bitwise not."""
    return plus(times(value, -1), -1)


def change_low(value: Int, constant: int, operation: np.ufunc) -> Int:
    """`operation(value, constant)` for or and xor, which leaves the bits above the constant's unchanged."""
    if type(value) is int:
        return int(operation(value, constant))
    assert isinstance(value, Sum)
    if value.f is not None:
        return from_array(operation(value.array, constant))
    low = low_bits(value, constant.bit_length())
    changed = (
        int(operation(low, constant)) if type(low) is int else from_array(operation(to_array(low), constant))
    )
    return plus(high_bits(value, constant.bit_length()), changed)


def disjoint(a: Int, b: Int) -> bool:
    """Is it certain that no bit is set in both?"""
    (a_lo, a_hi), (b_lo, b_hi) = bounds(a), bounds(b)
    return (b_lo >= 0 and b_hi < 1 << low_zeros(a)) or (a_lo >= 0 and a_hi < 1 << low_zeros(b))
