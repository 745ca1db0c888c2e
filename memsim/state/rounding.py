"""Floats rounded once, in every mode: sums, products, `a * b + c`, narrower types; their minimum and maximum.

A number that f64 cannot represent is first rounded to odd (an inexact result gets its last bit set): rounding
it again, in any mode, to a type with at least two bits fewer gives the same as rounding once (Boldo and
Melquiond, "Emulation of FMA and correctly rounded sums", IEEE Transactions on Computers 57, 2008).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from memsim.state.parts import noted_as_one, select

Array = np.ndarray
Fused = Callable[[Array, Array, Array], Array]

#: Of PTX's rounding modifiers those that do not round to nearest (`rn`, ties to even).
_TOWARDS = {"rz": 0.0, "rm": -np.inf, "rp": np.inf}
#: Range of products whose error f64 can represent without overflow or underflow.
_SMALL, _LARGE = 2.0**-950, 2.0**950
_FACTOR = 2.0**480
_EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,
}


#: What computes `fma32` and `fma64` with the same results, by type, where there is machine code for it.
IN_MACHINE_CODE: dict[type, Fused] = {}


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


@noted_as_one
def sum_to_odd(x: Array, y: Array) -> Array:
    """x + y rounded to odd."""
    return to_odd(*two_sum(x, y))


def odd_sum(x: Array, y: Array, mode: str = "rn") -> Array:
    """x + y rounded to odd. Towards minus infinity (`mode`) a zero sum is -0, unless +0 + +0."""
    total = sum_to_odd(x, y)
    if mode == "rm":
        total = np.where((total == 0) & (np.signbit(x) | np.signbit(y)), -0.0, total)
    return total


def integer_sum(array: Array) -> tuple[Array, Array]:
    """int64 or uint64 as the nearest f64 and its error."""
    high = (array >> array.dtype.type(32)).astype(np.float64) * 2.0**32
    return two_sum(high, (array & array.dtype.type(0xFFFFFFFF)).astype(np.float64))


def round_directed(total: Array, error: Array, mode: str) -> Array:
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


@noted_as_one
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


# --- fused multiply-add ---------------------------------------------------------------------


@noted_as_one
def fma32(a: Array, b: Array, c: Array) -> Array:
    """a * b + c in f32.

    The product is exact in f64. So is the sum's rounding, unless the f64 sum is halfway between two f32
    numbers, or too small for a normal one; these few are rounded to odd first.
    """
    if np.float32 in IN_MACHINE_CODE:
        return IN_MACHINE_CODE[np.float32](a, b, c)
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


@noted_as_one
def fma64(a: Array, b: Array, c: Array) -> Array:
    """a * b + c in f64, by the algorithm of Boldo and Melquiond (see above)."""
    if np.float64 in IN_MACHINE_CODE:
        return IN_MACHINE_CODE[np.float64](a, b, c)
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
    result[rare] = round_exactly("fma", "rn", native[rare], *picked)
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


# --- rare cases, from the exact rational result ---------------------------------------------


def round_exactly(operation: str, mode: str, nearest: Array, *operands: Array) -> Array:
    """`operation` on f64 operands in a rounding mode; for rare cases, as each takes about a microsecond.

    `nearest`: the IEEE result rounded to nearest (for `fma` possibly rounded twice); it is kept if an operand
    is not finite, or if it is a NaN.
    """
    if not isinstance(nearest, np.ndarray):  # what stands for an array
        return nearest.rounded(operation, mode, operands)
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


# --- minimum, maximum, saturation -----------------------------------------------------------


def lower(a: Array, b: Array) -> Array:
    """IEEE minimumNumber: the number if the other is NaN; -0 below +0."""
    return select((a < b) | np.isnan(b) | ((a == b) & np.signbit(a)), a, b)


def higher(a: Array, b: Array) -> Array:
    """IEEE maximumNumber: the number if the other is NaN; +0 above -0."""
    return select((a > b) | np.isnan(b) | ((a == b) & np.signbit(b)), a, b)


def saturate_float(array: Array) -> Array:
    """Clamped to [0, 1]; NaN and -0 become +0."""
    return np.where(array > 0, np.minimum(array, 1), 0).astype(array.dtype)
