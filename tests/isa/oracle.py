"""Arithmetic of machine instructions on single numbers (bits as integers), in Python's own integers and
fractions.

Nothing here is numpy, and nothing is taken from memsim.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    """A binary float type: bits of the exponent and of the mantissa."""

    exponent: int
    mantissa: int
    nan: int

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def sign(self) -> int:
        return 1 << (self.exponent + self.mantissa)

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.mantissa

    @property
    def tiny(self) -> Fraction:
        """The smallest normal number."""
        return Fraction(2) ** (1 - self.bias)


F16 = Format(5, 10, 0x7FFF)
BF16 = Format(8, 7, 0x7FFF)
F32 = Format(8, 23, 0x7FC00000)
F64 = Format(11, 52, 0x7FF8 << 48)

Number = Fraction | float

#: Modifiers of rounding, as `rounded` calls the modes.
MODES = {"": "rn", ".RM": "rm", ".RP": "rp", ".RZ": "rz"}
ORDER = {
    **{"LT": operator.lt, "LE": operator.le, "GT": operator.gt},
    **{"GE": operator.ge, "EQ": operator.eq, "NE": operator.ne},
}


def decode(bits: int, form: Format) -> tuple[int, Number]:
    """(sign, value): value is a Fraction, infinite or NaN."""
    sign = 1 if bits & form.sign else 0
    exponent = (bits >> form.mantissa) & ((1 << form.exponent) - 1)
    mantissa = bits & ((1 << form.mantissa) - 1)
    if exponent == (1 << form.exponent) - 1:
        return sign, math.nan if mantissa else (-math.inf if sign else math.inf)
    if exponent == 0:
        value = Fraction(mantissa) * form.tiny / (1 << form.mantissa)
    else:
        value = (1 + Fraction(mantissa, 1 << form.mantissa)) * Fraction(2) ** (exponent - form.bias)
    return sign, -value if sign else value


def rounded(value: Fraction, unit: Fraction, mode: str) -> Fraction:
    """A multiple of `unit`: rn (ties to even), rz, rm, rp."""
    steps = value / unit
    below = math.floor(steps)
    if mode == "rm":
        return below * unit
    if mode == "rp":
        return math.ceil(steps) * unit
    if mode == "rz":
        return (below if value >= 0 else math.ceil(steps)) * unit
    return round(steps) * unit


def encode(value: Number, form: Format, mode: str = "rn", zero_sign: int = 0) -> int:
    """The bits of a number rounded to a format."""
    if isinstance(value, float):
        if math.isnan(value):
            return form.nan
        return form.infinity | (form.sign if value < 0 else 0)
    if value == 0:
        return form.sign if zero_sign else 0
    negative = value < 0
    exponent = max(_exponent(abs(value)), 1 - form.bias)
    found = rounded(value, Fraction(2) ** (exponent - form.mantissa), mode)
    if found == 0:
        return form.sign if negative else 0
    exponent = max(_exponent(abs(found)), 1 - form.bias)
    sign = form.sign if negative else 0
    if exponent > form.bias:
        grows = mode == "rn" or (mode == "rp" and not negative) or (mode == "rm" and negative)
        return sign | (form.infinity if grows else form.infinity - 1)
    steps = int(abs(found) / (Fraction(2) ** (exponent - form.mantissa)))
    if steps < 1 << form.mantissa:
        return sign | steps
    return sign | ((exponent + form.bias) << form.mantissa) | (steps - (1 << form.mantissa))


def _exponent(size: Fraction) -> int:
    found = size.numerator.bit_length() - size.denominator.bit_length()
    return found if size >= Fraction(2) ** found else found - 1


def fused(a: int, b: int, c: int | None, form: Format, mode: str = "rn", adds: bool = True) -> int:
    """a * b + c rounded once; without c, the product; with b 1.0, a sum."""
    (sa, x), (sb, y) = decode(a, form), decode(b, form)
    sign = sa ^ sb
    infinite = any(isinstance(v, float) and math.isinf(v) for v in (x, y))
    if any(isinstance(v, float) and math.isnan(v) for v in (x, y)) or (infinite and (x == 0 or y == 0)):
        return form.nan
    product: Number = (-math.inf if sign else math.inf) if infinite else x * y
    if c is None:
        return encode(product, form, mode, sign)
    sc, z = decode(c, form)
    if isinstance(z, float) and math.isnan(z):
        return form.nan
    if isinstance(z, float) and infinite:
        return encode(z, form) if z == product else form.nan
    if isinstance(z, float) or infinite:
        return encode(z if isinstance(z, float) else product, form)
    total = product + z
    zero_sign = sign if sign == sc and z == 0 and product == 0 else int(mode == "rm")
    return encode(total, form, mode, zero_sign)


def one(form: Format) -> int:
    """The bits of 1.0."""
    return form.bias << form.mantissa


def flush(bits: int, form: Format) -> int:
    """Subnormal numbers as zeros of their sign."""
    return bits & form.sign if not bits & form.infinity else bits


def is_nan(bits: int, form: Format) -> bool:
    return bits & ~form.sign > form.infinity


def signed(value: int, bits: int = 32) -> int:
    """The signed reading of the low bits."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def unsigned(value: int, bits: int = 32) -> int:
    return value & ((1 << bits) - 1)


def pieces(word: int, size: int, is_signed: bool) -> list[int]:
    """The numbers in a word, the lowest first."""
    found = [(word >> shift) & ((1 << size) - 1) for shift in range(0, 32, size)]
    return [signed(x, size) for x in found] if is_signed else found
