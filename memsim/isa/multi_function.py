"""The multi-function unit, `MUFU`, as numpy functions that reproduce the chip's results bit for bit.

The unit approximates a function by a quadratic polynomial for each segment of its argument and cuts the
result off. That is the design of S. Oberman and M. Siu, "A High-Performance Area-Efficient Multifunction
Interpolator" (ARITH 2005). The coefficients in multi_function.csv, and what follows of widths, complements
and special arguments, were found from the results of an H100: each segment's are a solution of the
inequalities that its 2**16 or 2**17 results state. Source: traces/*/functions.npz has digests of the results
for all 2**32 arguments of each function, the same on an H100 and an H200, and all are reproduced;
tests/isa/test_multi_function.py compares a fortieth of them, or all. On other chips these functions are
assumed within limits (documented_errors.py), and what depends on their last bits is uncertain.

Functions take and return float32 arrays, but for the two of float64, whose numbers are high words. Subnormal
arguments and results are flushed to zero, except those of the hyperbolic tangent. Every NaN returned is
0x7fffffff.
"""

from __future__ import annotations

import csv
import math
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from memsim.isa.definitions import BoundForm, Compute, Results, define, executes
from memsim.isa.number_formats import to_bits
from memsim.isa.op import Immediate, Operand, Register, Trait, require
from memsim.isa.program import Op
from memsim.isa.readers import FloatReader, Registers
from memsim.state.parts import contiguous, entries, noted_as_one
from memsim.state.registers import fit, from_array, to_array

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: Coefficients are integers in this unit.
UNIT: Final = 2.0**-40
#: Bits of an argument within its segment, at most; and the lowest column of the squarer that is built.
_BITS, _COLUMN = 17, 19
#: Bits of a float32's fraction, and of the fraction of a turn that SIN and COS see: 23 in each quarter.
_FRACTION, _TURN = 23, 25
_NAN: Final = np.uint32(0x7FFFFFFF).view(np.float32)
_NAN_HIGH: Final = 0x7FFFFFFF
_INFINITE_HIGH: Final = 0x7FF00000

#: For each power of two from 2**-8 to 8, between which the tangent is interpolated: bits of the argument that
#: are dropped.
_TANGENT_DROPS: Final = np.array([6, 6, 6, 5, 5, 4, 4, 4, 3, 2, 3])
#: The first segment of each: together they have 2**(6 - dropped bits) segments.
_TANGENT_SEGMENTS: Final = np.cumsum(np.r_[0, 1 << (_FRACTION - _BITS - _TANGENT_DROPS[:-1])])


@cache
def coefficients() -> dict[str, Doubles]:
    """For each function its segments' coefficients: constant, linear and quadratic [3, n], times `UNIT`."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    with Path(__file__).with_suffix(".csv").open(encoding="ascii", newline="") as file:
        for row in csv.DictReader(file):
            segment = float(row["constant"]), float(row["linear"]), float(row["quadratic"])
            found.setdefault(row["function"], []).append(segment)
    return {name: np.ascontiguousarray((np.array(rows) * UNIT).T) for name, rows in found.items()}


@cache
def squares() -> npt.NDArray[np.uint16]:
    """What the squarer gives for each number of 17 bits, in units of 2**19.

    It adds the products of pairs of bits, but those in columns below 19 are not built: x * x is the sum of
    2**(i + j + 1) for set bits i < j, and of 2**(2 i) for each set bit i.
    """
    found = np.zeros(1, np.int64)
    for bit in range(_BITS):
        below = np.arange(1 << bit)
        unbuilt = max(0, _COLUMN - 1 - bit)  # bits of `below` whose product with this bit is left out
        alone = 1 << 2 * bit if 2 * bit >= _COLUMN else 0
        found = np.concatenate([found, found + alone + (below >> unbuilt << unbuilt << bit + 1)])
    return (found >> _COLUMN).astype(np.uint16)


def _interpolated(name: str, segment: Integers, rest: Integers) -> Doubles:
    """The polynomial of a segment, exactly: the products and sums of these integers fit in float64."""
    return _quadratic(name, segment, rest, rest)


def _quadratic(name: str, segment: Integers, rest: Integers, squared: Integers) -> Doubles:
    return polynomial(coefficients()[name], segment, rest, entries(squares(), squared))


@noted_as_one
def polynomial(table: Doubles, segment: Integers, rest: Integers, square: npt.NDArray[np.uint16]) -> Doubles:
    """Of the coefficients in a column of the table."""
    constant, linear, quadratic = (column[segment] for column in table)
    found: Doubles = constant + linear * rest + quadratic * square
    return found


def _of_fraction(name: str, fraction: Integers, first: Integers | int = 0) -> Doubles:
    """The polynomial for a fraction of 23 bits, in 64 segments from `first` on."""
    return _interpolated(name, first + (fraction >> _BITS), fraction & (1 << _BITS) - 1)


@noted_as_one
def _cut(value: Doubles) -> Floats:
    """float32 towards zero; what is below its normal numbers becomes zero, what is above infinity."""
    bits = contiguous(value).view(np.int64) & ~((1 << 52 - _FRACTION) - 1)
    cut = bits.view(np.float64)
    with np.errstate(over="ignore"):
        return np.where(np.abs(cut) < 2.0**-126, np.copysign(0.0, cut), cut).astype(np.float32)


def _fields(x: Floats) -> tuple[Integers, Integers]:
    """Exponent, with its bias, and fraction."""
    bits = contiguous(x).view(np.uint32).astype(np.int64)
    return bits >> _FRACTION & 0xFF, bits & (1 << _FRACTION) - 1


def _reciprocal(fraction: Integers) -> Doubles:
    """1 / (1 + fraction / 2**23). Its 128 segments have 16 bits, the upper ones of the squarer's 17."""
    rest = fraction & (1 << _BITS - 1) - 1
    return _quadratic("RCP", fraction >> _BITS - 1, rest, 2 * rest)


def _root_of(name: str, exponent: Integers, fraction: Integers) -> Doubles:
    """SQRT or RSQ of 1 + fraction / 2**23, or twice that for an odd exponent; exactly 1 for 1."""
    odd = exponent & 1
    found = _of_fraction(name, fraction, odd << _FRACTION - _BITS)
    return np.where((fraction | odd) == 0, 1.0, found)


def reciprocal(x: Floats) -> Floats:
    exponent, fraction = _fields(x)
    size = np.ldexp(_reciprocal(fraction), (127 - exponent).astype(np.int32))
    size = np.where(exponent == 0, np.inf, np.where(exponent == 0xFF, 0.0, size))
    return np.where(np.isnan(x), _NAN, np.copysign(_cut(size), x))


def root(x: Floats) -> Floats:
    exponent, fraction = _fields(x)
    size = np.ldexp(_root_of("SQRT", exponent - 127, fraction), (exponent - 127 >> 1).astype(np.int32))
    size = np.where(exponent == 0, 0.0, np.where(exponent == 0xFF, np.inf, size))
    invalid = np.isnan(x) | (x < 0) & (exponent > 0)
    return np.where(invalid, _NAN, np.copysign(_cut(size), x))


def reciprocal_root(x: Floats) -> Floats:
    exponent, fraction = _fields(x)
    size = np.ldexp(_root_of("RSQ", exponent - 127, fraction), -(exponent - 127 >> 1).astype(np.int32))
    size = np.where(exponent == 0, np.inf, np.where(exponent == 0xFF, 0.0, size))
    invalid = np.isnan(x) | (x < 0) & (exponent > 0)
    return np.where(invalid, _NAN, np.copysign(_cut(size), x))


def power_of_two(x: Floats) -> Floats:
    """2**x of a number in fixed point, 23 bits after the point; negative ones complemented if not whole."""
    size = np.abs(x)
    size = np.where(size < 255, size, np.float32(255))  # from which on it is 0 or infinity
    fixed = (size * np.float32(1 << _FRACTION)).astype(np.int32)
    fraction_mask = (1 << _FRACTION) - 1
    fixed = np.where(x < 0, np.where(fixed & fraction_mask, ~fixed, -fixed), fixed)
    found = _of_fraction("EX2", fixed & fraction_mask)
    found = np.ldexp(found, (fixed >> _FRACTION) - 1)
    return np.where(np.isnan(x), _NAN, _cut(found))


def logarithm(x: Floats) -> Floats:
    """log2 of the fraction in fixed point, 36 bits after the point; below 1, the complement of those bits."""
    exponent, fraction = _fields(x)
    last = 2.0**-36
    of_fraction = np.floor(_of_fraction("LG2", fraction) * 2.0**36) * last
    found = exponent - 127 + of_fraction + np.where(exponent < 127, last, 0.0)
    found = np.where((fraction == 0) & (exponent == 127), 0.0, found)
    found = np.where(exponent == 0, -np.inf, np.where(exponent == 0xFF, np.inf, found))
    invalid = np.isnan(x) | (x < 0) & (exponent > 0)
    return np.where(invalid, _NAN, _cut(found))


def _of_turns(x: Floats, quarter: int) -> Floats:
    """The sine of |x| turns plus a quarter or not, negated for a negative x if it is odd.

    The argument is cut off to 25 bits after the point; in every second quarter the 23 bits within it are
    complemented. Even the exact multiples of a quarter turn come out of the polynomial.
    """
    exponent, _ = _fields(x)
    known = np.isfinite(x) & (exponent > 0)
    size = np.abs(np.where(known, x, np.float32(0)))
    turns = (np.fmod(size, np.float32(1)) * np.float32(1 << _TURN)).astype(np.int32)
    which = (turns >> _FRACTION) + quarter
    within = (turns ^ -(which & 1)) & (1 << _FRACTION) - 1
    negative = which & 2 != 0
    if not quarter:
        negative = negative ^ np.signbit(x)
    found = _cut(_of_fraction("SIN", within))
    return np.where(np.isfinite(x), np.where(negative, -found, found), _NAN)


def sine(x: Floats) -> Floats:
    """Of an angle in full turns."""
    return _of_turns(x, 0)


def cosine(x: Floats) -> Floats:
    """Of an angle in full turns."""
    return _of_turns(x, 1)


def tangent(x: Floats) -> Floats:
    """The hyperbolic one: below 2**-8 its argument, from 8 on 1."""
    exponent, fraction = _fields(x)
    power = np.clip(exponent - 119, 0, len(_TANGENT_DROPS) - 1)
    first = entries(_TANGENT_SEGMENTS, power)
    kept = fraction >> entries(_TANGENT_DROPS, power)
    size = _cut(_interpolated("TANH", first + (kept >> _BITS), kept & (1 << _BITS) - 1))
    size = np.where(exponent >= 130, np.float32(1), size)
    found = np.where(exponent < 119, x, np.copysign(size, x))
    return np.where(np.isnan(x), _NAN, found)


#: By the modifier of `MUFU`.
FUNCTIONS: Final[dict[str, Callable[[Floats], Floats]]] = {
    "RCP": reciprocal,
    "RSQ": reciprocal_root,
    "SQRT": root,
    "EX2": power_of_two,
    "LG2": logarithm,
    "SIN": sine,
    "COS": cosine,
    "TANH": tangent,
}


def _high_fields(high: Integers) -> tuple[Integers, Integers, Integers]:
    """Sign, exponent with its bias, and the fraction's 20 bits as 23, of the high word of a float64."""
    high = high & 0xFFFFFFFF
    return high >> 31, high >> 20 & 0x7FF, (high & 0xFFFFF) << 3


def _high_word(value: Doubles, power: Integers) -> Integers:
    """The high word of a positive value times 2**power, cut off; 0 or infinity for no normal one."""
    fraction, exponent = np.frexp(value)
    exponent = exponent + power + 1022
    word = (exponent << 20) + (np.floor(np.ldexp(fraction, 21)).astype(np.int64) - (1 << 20))
    return np.where(exponent <= 0, 0, np.where(exponent >= 0x7FF, _INFINITE_HIGH, word))


def reciprocal_of_high(high: Integers) -> Integers:
    """`RCP64H`: from the high word of a float64, as an integer, to that of an estimate of its reciprocal."""
    sign, exponent, fraction = _high_fields(high)
    found = _high_word(_reciprocal(fraction), 1023 - exponent)
    found = np.where(exponent == 0, _INFINITE_HIGH, np.where(exponent == 0x7FF, 0, found)) | sign << 31
    return np.where((exponent == 0x7FF) & (fraction > 0), _NAN_HIGH, found)


def reciprocal_root_of_high(high: Integers) -> Integers:
    """`RSQ64H`: as `reciprocal_of_high`, of the reciprocal of the root."""
    sign, exponent, fraction = _high_fields(high)
    found = _high_word(_root_of("RSQ", exponent - 1023, fraction), -(exponent - 1023 >> 1))
    found = np.where(exponent == 0, _INFINITE_HIGH | sign << 31, np.where(exponent == 0x7FF, 0, found))
    invalid = (sign == 1) & (exponent > 0) | (exponent == 0x7FF) & (fraction > 0)
    return np.where(invalid, _NAN_HIGH, found)


#: By the modifier of `MUFU`.
OF_HIGH: Final[dict[str, Callable[[Integers], Integers]]] = {
    "RCP64H": reciprocal_of_high,
    "RSQ64H": reciprocal_root_of_high,
}


# --- the instruction -------------------------------------------------------------------------


_TRAITS = {
    **{"": Trait.APPROXIMATES, "RCP": Trait.RECIPROCAL, "RSQ": Trait.ROOT, "FTZ": Trait.ALTERS},
    **{"RCP64H": Trait.RECIPROCAL_64, "RSQ64H": Trait.ROOT_64},
}


def is_approximate(op: Op) -> bool:
    """Is it an approximation?

    `MUFU.RSQ R0, -QNAN`, by which compilers make the result of an invalid division, is none.
    """
    return Trait.APPROXIMATES in op.traits and not is_nan(op.form.operands[-1])


def is_nan(operand: Operand) -> bool:
    """Is it a constant float32 that is not a number?"""
    if not isinstance(operand, Immediate):
        return False
    value = operand.value
    return math.isnan(value) if isinstance(value, float) else value & 0x7FFFFFFF > 0x7F800000


@executes(" ".join(f"MUFU.{name}" for name in FUNCTIONS), "W <- F", "FTZ", traits=_TRAITS)
def function_of_float(form: BoundForm, read: FloatReader) -> Compute:
    function = FUNCTIONS[form.modifiers[0]]
    return lambda r: function(read(r))


@executes("MUFU.EX2.F16 MUFU.EX2.BF16 MUFU.TANH.F16 MUFU.TANH.BF16", "W <- R", traits=_TRAITS)
def function_of_half(form: BoundForm, operand: Register) -> Compute:
    """The upper half of the result is 0."""
    function, bf16 = FUNCTIONS[form.modifiers[0]], "BF16" in form.given
    require(operand.part in ("", "H0", "H1"))
    read = form.binder.halves(replace(operand, part=""), bf16)
    which = int(operand.part == "H1")
    infinite_from = np.inf if bf16 else 65_536.0

    def compute(r: Registers) -> Results:
        found = function(read(r)[which].astype(np.float32)).astype(np.float64)
        found = np.where(found >= infinite_from, np.inf, found)
        return from_array(to_bits(found, bf16, "rz"))  # towards zero

    return compute


@executes(" ".join(f"MUFU.{name}" for name in OF_HIGH), "W <- V", traits=_TRAITS)
def high_of_double(form: BoundForm, operand: Operand) -> Compute:
    """The high word of a float64 estimate, from the high word of a float64."""
    if isinstance(operand, Immediate) and isinstance(operand.value, float):
        bits = struct.unpack("<q", struct.pack("<d", operand.value))[0]  # printed as float64
        operand = Immediate(bits >> 32)
    word, function = form.binder.word(operand), OF_HIGH[form.modifiers[0]]
    return lambda r: fit(from_array(function(to_array(word(r)))), 32)


define("MUFU", "W <- V", None, traits=_TRAITS)  # others are not executed
