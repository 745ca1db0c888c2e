"""Fused multiply-add, `a * b + c` with one rounding to nearest, in f32 and f64."""

from __future__ import annotations

import numpy as np

from memsim.state import exact
from memsim.state.rounding import Array, odd_sum, to_odd, two_sum

#: Range of products whose error f64 can represent without overflow or underflow.
_SMALL, _LARGE = 2.0**-950, 2.0**950
_FACTOR = 2.0**480


def fma32(a: Array, b: Array, c: Array) -> Array:
    """a * b + c in f32.

    The product is exact in f64. So is the sum's rounding, unless the f64 sum is halfway between two f32
    numbers, or too small for a normal one; these few are rounded to odd first.
    """
    total = np.multiply(a, b, dtype=np.float64)
    total = total + c if c.shape != total.shape else np.add(total, c, out=total)
    found: Array = total.astype(np.float32)
    rare = (total.view(np.int64) & 0x1FFFFFFF) == 0x10000000
    small = np.abs(found) <= np.finfo(np.float32).tiny
    if small.any():
        rare |= small & (total != 0)  # a sum that is zero in f64 is exactly zero
    at = np.flatnonzero(rare)
    if len(at):
        place = np.unravel_index(at, total.shape)
        x, y, z = (np.broadcast_to(one, total.shape)[place].astype(np.float64) for one in (a, b, c))
        found[place] = odd_sum(x * y, z).astype(np.float32)
    return found


def fma64(a: Array, b: Array, c: Array) -> Array:
    """a * b + c in f64, by the algorithm of Boldo and Melquiond (see rounding.py)."""
    high, low = two_product(a, b)
    upper, rest = two_sum(c, low)
    total, error = two_sum(high, upper)
    result = total + to_odd(*two_sum(rest, error))
    finite = np.isfinite(a) & np.isfinite(b)
    native = np.where(finite & np.isinf(c), c, a * b + c)  # a * b itself may overflow
    result = np.where(result == 0, native, result)  # the zero with the right sign
    size = np.abs(high)
    factors = np.maximum(np.abs(a), np.abs(b)) <= _FACTOR
    safe = factors & (size <= _LARGE) & ((size >= _SMALL) | (a == 0) | (b == 0)) & (np.abs(c) <= _LARGE)
    if safe.all():
        return result
    rare = np.broadcast_to(~safe, result.shape)
    picked = (np.broadcast_to(x, result.shape)[rare] for x in (a, b, c))
    result[rare] = exact.rounded("fma", "rn", native[rare], *picked)
    return result


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """a * b rounded to nearest, and the error of that, exactly (Dekker)."""

    def split(x: Array) -> tuple[Array, Array]:
        big = x * 134217729.0  # 2**27 + 1
        high = big - (big - x)
        return high, x - high

    product = a * b
    (a_high, a_low), (b_high, b_low) = split(a), split(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error
