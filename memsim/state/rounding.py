"""Rounding from f64 to narrower types in every mode, and sums that can be rounded again.

A number that f64 cannot represent is first rounded to odd (an inexact result gets its last bit set): rounding
it again, in any mode, to a type with at least two bits fewer gives the same as rounding once (Boldo and
Melquiond, "Emulation of FMA and correctly rounded sums", IEEE Transactions on Computers 57, 2008).
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

#: Of PTX's rounding modifiers those that do not round to nearest (`rn`, ties to even).
_TOWARDS = {"rz": 0.0, "rm": -np.inf, "rp": np.inf}


def two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """x + y rounded to nearest, and its exact error (Knuth)."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


def to_odd(total: Array, error: Array) -> Array:
    """`total + error`, of which `total` is the nearest f64, rounded to odd."""
    bits = total.view(np.int64)
    wrong = (error != 0) & np.isfinite(total) & (bits & 1 == 0)
    outward = (error > 0) == (total > 0)
    return np.where(wrong, np.where(outward, bits + 1, bits - 1), bits).view(np.float64)


def odd_sum(x: Array, y: Array, mode: str = "rn") -> Array:
    """x + y rounded to odd. Towards minus infinity (`mode`) a zero sum is -0, unless +0 + +0."""
    total = to_odd(*two_sum(x, y))
    if mode == "rm":
        total = np.where((total == 0) & (np.signbit(x) | np.signbit(y)), -0.0, total)
    return total


def integer_sum(array: Array) -> tuple[Array, Array]:
    """int64 or uint64 as the nearest f64 and its error."""
    high = (array >> array.dtype.type(32)).astype(np.float64) * 2.0**32
    return two_sum(high, (array & array.dtype.type(0xFFFFFFFF)).astype(np.float64))


def directed(total: Array, error: Array, mode: str) -> Array:
    """`total + error`, of which `total` is the nearest f64, rounded in a mode other than `rn`."""
    passed = {"rz": (error != 0) & ((error > 0) != (total > 0)), "rm": error < 0, "rp": error > 0}[mode]
    return np.where(passed, np.nextafter(total, _TOWARDS[mode]), total)


def narrow(x: Array, dtype: type, mode: str = "rn") -> Array:
    """f64 rounded to f32 or f16."""
    near: Array = x.astype(dtype)
    if mode == "rn":
        return near
    passed = {"rz": np.abs(near) > np.abs(x), "rm": near > x, "rp": near < x}[mode]
    return np.where(passed, np.nextafter(near, dtype(_TOWARDS[mode])), near)


def to_bf16(x: Array, mode: str = "rn") -> Array:
    """f64 rounded to bf16, as int64 bits; any NaN is 0x7fff."""
    truncated = narrow(x, np.float32, "rz")
    inexact = np.isfinite(truncated) & (truncated != x)
    bits = truncated.view(np.uint32).astype(np.int64) | inexact  # f32, rounded to odd
    away = bits & 0xFFFF != 0
    if mode == "rn":
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    elif mode == "rz":
        rounded = bits >> 16
    else:
        rounded = (bits >> 16) + (away & (np.signbit(x) == (mode == "rm")))
    return np.where(np.isnan(x), 0x7FFF, rounded)
