"""Scalar arithmetic to compare with, in Python ints and fractions, written from PTX ISA.

Numbers are decoded from raw bits: integers to ints, floats to Python floats (exactly), packed
halves to pairs of floats, predicates to bools. Nothing here comes from the emulator.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

#: type -> (bits of the mantissa with the hidden one, smallest exponent of a normal number, largest)
FLOATS = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127), "f64": (53, -1022, 1023)}
NAN, INF = math.nan, math.inf
_CODES = {
    bits: (struct.Struct("<" + number), struct.Struct("<" + pattern))
    for bits, number, pattern in ((16, "e", "H"), (32, "f", "I"), (64, "d", "Q"))
}


@cache
def width(kind: str) -> int:
    """Bits of a type."""
    if kind == "pred":
        return 1
    return 32 if kind.endswith("x2") else int(kind.lstrip("subf"))


@cache
def decoder(kind: str) -> Callable[[int], Any]:
    """Turns raw bits, perhaps with others above them, into a value."""
    bits = width(kind)
    mask = (1 << bits) - 1
    if kind.endswith("x2"):
        half = decoder(kind[:-2])
        return lambda raw: (half(raw), half(raw >> 16))
    if kind == "bf16":
        return lambda raw: decoder("f32")((raw & mask) << 16)
    if kind in FLOATS:
        number, pattern = _CODES[bits]
        return lambda raw: number.unpack(pattern.pack(raw & mask))[0]
    if kind == "pred":
        return lambda raw: bool(raw & 1)
    if kind[0] == "s":
        sign = 1 << (bits - 1)
        return lambda raw: ((raw + sign) & mask) - sign
    return lambda raw: raw & mask


@cache
def encoder(kind: str) -> Callable[[Any], int]:
    """Turns a value that the type can hold into its bits; integers wrap."""
    bits = width(kind)
    mask = (1 << bits) - 1
    if kind.endswith("x2"):
        half = encoder(kind[:-2])
        return lambda value: half(value[0]) | half(value[1]) << 16
    if kind == "bf16":
        return lambda value: encoder("f32")(value) >> 16
    if kind in FLOATS:
        number, pattern = _CODES[bits]
        return lambda value: pattern.unpack(number.pack(value))[0]
    return lambda value: int(value) & mask


def decode(kind: str, raw: int) -> Any:
    """The value that the low bits of `raw` stand for."""
    return decoder(kind)(raw)


def encode(kind: str, value: Any) -> int:
    """The bits of a value."""
    return encoder(kind)(value)


def same(kind: str, a: int, b: int) -> bool:
    """Equal bits; any NaN for any NaN, whose payload PTX leaves open."""
    if a == b:
        return True
    if kind.endswith("x2"):
        return all(same(kind[:-2], a >> shift & 0xFFFF, b >> shift & 0xFFFF) for shift in (0, 16))
    return kind in FLOATS and math.isnan(decode(kind, a)) and math.isnan(decode(kind, b))


# --- rounding -------------------------------------------------------------------------------


def to_integral(x: Fraction, mode: str) -> int:
    """A rational number rounded to an integer; ties go to even."""
    return quotient(x.numerator, x.denominator, mode)


def quotient(n: int, d: int, mode: str) -> int:
    """n / d rounded to an integer; d is positive."""
    floor, rest = divmod(n, d)
    if mode == "rm" or rest == 0:
        return floor
    if mode == "rp":
        return floor + 1
    if mode == "rz":
        return floor + (n < 0)
    return floor + (2 * rest > d or (2 * rest == d and floor % 2))


def rounded(x: Fraction, kind: str, mode: str = "rn", zero: float = 0.0) -> float:
    """A rational number as a float of a type; `zero` stands for an exact zero.

    `f32.ftz`: as if exponents had no lower end, so that `flush` can tell what is too small. That
    it is told after rounding was measured on an H100.
    """
    n, d = x.numerator, x.denominator
    if n == 0:
        return zero
    sign = 1 if n > 0 else -1
    digits, lowest, highest = FLOATS[kind.removesuffix(".ftz")]
    if kind.endswith(".ftz"):
        lowest = -1000
    exponent = abs(n).bit_length() - d.bit_length()  # that of x, or one more
    exponent -= abs(n) << max(0, -exponent) < d << max(0, exponent)
    last = max(exponent, lowest) - digits + 1  # the number is a multiple of 2**last
    count = quotient(n << max(0, -last), d << max(0, last), mode)
    if count.bit_length() + last > highest + 1:
        away = mode == "rn" or (mode == "rp" and sign > 0) or (mode == "rm" and sign < 0)
        return sign * (INF if away else math.ldexp(2**digits - 1, highest - digits + 1))
    return math.copysign(math.ldexp(count, last), sign)


def flush(x: float, kind: str) -> float:
    """`.ftz`: a subnormal number becomes a zero of the same sign."""
    return math.copysign(0.0, x) if abs(x) < 2.0 ** FLOATS[kind][1] else x


def clamp(x: float) -> float:
    """`.sat`: the nearest number from 0 to 1, +0 for a NaN."""
    return min(x, 1.0) if x > 0 else 0.0


# --- float operations: special values by the IEEE rules, all others exactly ------------------


def add(a: float, b: float, kind: str, mode: str = "rn") -> float:
    if not (math.isfinite(a) and math.isfinite(b)):
        return a + b
    exact = Fraction(a) + Fraction(b)
    plus_zeros = math.copysign(1, a) > 0 and math.copysign(1, b) > 0
    minus_zeros = math.copysign(1, a) < 0 and math.copysign(1, b) < 0
    zero = -0.0 if minus_zeros or (mode == "rm" and not plus_zeros) else 0.0
    return rounded(exact, kind, mode, zero)


def mul(a: float, b: float, kind: str, mode: str = "rn") -> float:
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b
    return rounded(Fraction(a) * Fraction(b), kind, mode, math.copysign(1, a) * math.copysign(0, b))


def fma(a: float, b: float, c: float, kind: str, mode: str = "rn") -> float:
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c
    sign = math.copysign(1, a) * math.copysign(1, b)
    product = Fraction(a) * Fraction(b)
    if product == 0:
        return add(math.copysign(0, sign), c, kind, mode)
    exact = product + Fraction(c)
    return rounded(exact, kind, mode, -0.0 if mode == "rm" else 0.0)


def div(a: float, b: float, kind: str, mode: str = "rn") -> float:
    sign = math.copysign(1, a) * math.copysign(1, b)
    if math.isnan(a) or math.isnan(b) or (math.isinf(a) and math.isinf(b)) or (a == 0 and b == 0):
        return NAN
    if math.isinf(a) or b == 0:
        return math.copysign(INF, sign)
    if math.isinf(b) or a == 0:
        return math.copysign(0, sign)
    return rounded(Fraction(a) / Fraction(b), kind, mode)


def sqrt(a: float, kind: str, mode: str = "rn") -> float:
    if a == 0 or a == INF or math.isnan(a):
        return a
    if a < 0:
        return NAN
    # 128 bits of the root, and one more that says that something is left: enough for every mode
    scale = 2 * (128 + 600)
    numerator = Fraction(a) * 2**scale
    root = math.isqrt(math.floor(numerator))
    left = Fraction(1, 4) if root * root != numerator else 0
    return rounded((root + left) / Fraction(2) ** (scale // 2), kind, mode)


def minimum(a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    return min((a, math.copysign(1, a)), (b, math.copysign(1, b)))[0]


def maximum(a: float, b: float) -> float:
    return -minimum(-a, -b)


# --- comparisons ----------------------------------------------------------------------------

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def compare(relation: str, a: Any, b: Any) -> bool:
    """PTX's relations: the ordered ones are false for a NaN, those with `u` true."""
    if isinstance(a, int):
        return _ORDER[{"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(relation, relation)](a, b)
    unordered = math.isnan(a) or math.isnan(b)
    if relation in ("nan", "num"):
        return unordered == (relation == "nan")
    if unordered:
        return relation.endswith("u")
    return _ORDER[relation[:2]](a, b)


JOIN: dict[str, Callable[[bool, bool], bool]] = {
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "xor": lambda a, b: a != b,
}
