"""Exact f64 arithmetic for rare cases: directed rounding, extremes of `fma`.

Rounds once from the exact rational result. Works on one number at a time, about a microsecond each; common
cases are handled elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from memsim.state.rounding import Array

_EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,
}


def rounded(operation: str, mode: str, nearest: Array, *operands: Array) -> Array:
    """`operation` on f64 operands in a rounding mode of rounding.py.

    `nearest`: the IEEE result rounded to nearest (for `fma` possibly rounded twice); it is kept if an operand
    is not finite, or if it is a NaN.
    """
    result = np.array(nearest)
    columns = [np.broadcast_to(operand, result.shape) for operand in operands]
    for index in np.ndindex(result.shape):
        numbers = [float(column[index]) for column in columns]
        near = float(result[index])
        if math.isnan(near) or not all(map(math.isfinite, numbers)):
            continue
        exact = _EXACT[operation](*map(Fraction, numbers))
        if operation == "fma":
            near = _nearest(exact, near)
        if exact == 0 and mode == "rm" and operation in ("add", "fma"):
            near = _zero(numbers)
        result[index] = _step(near, _compare(exact, near), mode)
    return result


def _compare(a: Fraction, b: Fraction | float) -> int:
    return (a > b) - (a < b)


def _nearest(exact: Fraction, zero: float) -> float:
    """The nearest f64; Python divides integers with one rounding. `zero` has the sign of a zero result."""
    if exact == 0:
        return zero
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _zero(numbers: list[float]) -> float:
    """The zero of a sum rounded towards minus infinity: positive only if both addends are +0."""
    *product, last = numbers
    addends = (math.prod(product), last)
    return -0.0 if any(math.copysign(1.0, addend) < 0 for addend in addends) else 0.0


def _step(near: float, side: int, mode: str) -> float:
    """The number in the given mode; the exact one lies above (side 1) or below (-1) the nearest."""
    down = mode == "rm" or (mode == "rz" and near > 0)
    up = mode == "rp" or (mode == "rz" and near < 0)
    if side < 0 and down:
        return math.nextafter(near, -math.inf)
    if side > 0 and up:
        return math.nextafter(near, math.inf)
    return near
