"""Packed 16-bit floats: `HADD2 HMUL2 HFMA2 HMNMX2 VHMNMX HSETP2 HSET2`.

Each half is rounded to nearest; NaN is 0x7fff. Computed in float64 and rounded once; sums and products of
float16 in float32, whose 24 bits are enough that to round them again gives the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from memsim.isa.comparisons import COMBINE
from memsim.isa.definitions import BoundForm, Compute, Results, executes
from memsim.isa.floats import COMPARED, comparison_by_name, pick, with_signs, without_absolute
from memsim.isa.number_formats import NAN, pack_fields, to_bits
from memsim.isa.op import require
from memsim.isa.readers import PredicateReader, Registers
from memsim.state.partial import Value
from memsim.state.parts import Mask
from memsim.state.predicates import from_bools, to_bools
from memsim.state.rounding import Array, narrow, odd_sum

#: The smallest normal float16.
TINY = 2.0**-14


def word_of_halves(low: Array, high: Array, bf16: bool) -> Value:
    """Two float64 arrays as a word of two 16-bit floats."""
    return pack_fields([to_bits(value, bf16) for value in (low, high)], 16)


def flush_halves(value: Array) -> Array:
    """Subnormal float16 numbers flushed to zero, keeping the sign."""
    return np.where(np.abs(value) < TINY, np.copysign(0.0, value), value)


def flushed_result(value: Array) -> Array:
    """Results that would be subnormal if rounded with unbounded exponents, flushed to zero."""
    size = np.abs(narrow(value / TINY, np.float16))
    return np.where(size < 1, np.copysign(0.0, value), value)


def with_modifiers(value: Array, given: frozenset[str]) -> Array:
    """`.FTZ`, `.SAT` and `.RELU`."""
    if "FTZ" in given:
        value = flushed_result(value)
    if "SAT" in given:
        value = np.where(value > 0, np.minimum(value, 1.0), 0.0)
    if "RELU" in given:
        value = np.where(value <= 0, 0.0, value)
    return value


_ARITHMETIC: dict[str, Callable[..., Array]] = {
    "HADD2": odd_sum,
    "HMUL2": np.multiply,
    "HFMA2": lambda a, b, c: odd_sum(a * b, c),
}
_IN_FLOAT32 = {"HADD2": np.add, "HMUL2": np.multiply}
#: A reader of two halves.
HalvesReader = Callable[[Registers], tuple[Array, Array]]


@executes("HADD2 HMUL2", "W <- HH", "MMA F32 SAT RELU FTZ")
@executes("HFMA2", "W <- HHH", "MMA F32 SAT RELU FTZ")
@executes("HADD2.BF16_V2 HMUL2.BF16_V2", "W <- JJ", "MMA F32 SAT RELU")
@executes("HFMA2.BF16_V2", "W <- JJJ", "MMA F32 SAT RELU")
def arithmetic(form: BoundForm, *sources: HalvesReader) -> Compute:
    given, bf16 = form.given, "BF16_V2" in form.given
    is_short = not bf16 and form.opcode in _IN_FLOAT32
    operation = _IN_FLOAT32[form.opcode] if is_short else _ARITHMETIC[form.opcode]
    reads = numbers(form, sources, np.float32 if is_short else np.float64)

    def compute(r: Registers) -> Results:
        low, high = (
            with_modifiers(operation(*values), given) for values in zip(*(read(r) for read in reads))
        )
        if "F32" in given:
            return np.where(np.isnan(low), NAN, low.astype(np.float32))
        return word_of_halves(low, high, bf16)

    return compute


def numbers(
    form: BoundForm, sources: Sequence[HalvesReader], dtype: type = np.float64
) -> list[Callable[[Registers], list[Array]]]:
    """Readers of halves as floats of a type; of subnormal numbers with `.FTZ` as zeros."""

    def reader(halves: HalvesReader) -> Callable[[Registers], list[Array]]:
        prepare = flush_halves if "FTZ" in form.given else (lambda value: value)
        return lambda r: [prepare(half.astype(dtype)) for half in halves(r)]

    return [reader(source) for source in sources]


@executes("HMNMX2", "W <- HHP", "NAN FTZ XORSIGN")
@executes("HMNMX2.BF16_V2", "W <- JJP", "NAN XORSIGN")
@executes("VHMNMX", "W <- HHHP", "NAN")
@executes("VHMNMX.BF16_V2", "W <- JJJP", "NAN")
def min_max(form: BoundForm, *sources: Any) -> Compute:
    """Of two numbers, or with VHMNMX of three."""
    *halves, smaller = sources
    given, reads = form.given, numbers(form, halves)
    bf16 = "BF16_V2" in given
    signs = [form.binder.halves(without_absolute(operand), bf16) for operand in form.sources[:2]]

    def compute(r: Registers) -> Results:
        least = smaller(r)
        found = [
            reduce(lambda x, y: pick(x, y, least, given), values)
            for values in zip(*(read(r) for read in reads))
        ]
        if "XORSIGN" in given:
            found = [with_signs(size, *of) for size, of in zip(found, zip(*(sign(r) for sign in signs)))]
        return word_of_halves(found[0], found[1], bf16)

    return compute


@executes("HSETP2", "PP <- HHP", COMPARED)
@executes("HSETP2.BF16_V2", "PP <- JJP", COMPARED.removesuffix(" FTZ"))
def comparison(
    form: BoundForm, a: HalvesReader, b: HalvesReader, other: PredicateReader
) -> Callable[[Registers], tuple[Mask, Mask]]:
    """Of both halves, each combined with the same predicate."""
    how, *rest = (one for one in form.modifiers if one not in ("BF16_V2", "FTZ", "BF"))
    require(len(rest) == 1 and rest[0] in COMBINE)
    combine, order = COMBINE[rest[0]], comparison_by_name(how)
    x, y = numbers(form, (a, b), np.float32)

    def compute(r: Registers) -> tuple[Mask, Mask]:
        added = other(r)
        low, high = (from_bools(order(*values)) for values in zip(x(r), y(r)))
        return combine(low, added), combine(high, added)

    return compute


@executes("HSET2", "W <- HHP", f"{COMPARED} BF")
@executes("HSET2.BF16_V2", "W <- JJP", f"{COMPARED.removesuffix(' FTZ')} BF")
def set_by_comparison(form: BoundForm, a: HalvesReader, b: HalvesReader, other: PredicateReader) -> Compute:
    """All ones or, with `.BF`, 1.0 in each half."""
    compare = comparison(form, a, b, other)
    bf16, floats = "BF16_V2" in form.given, "BF" in form.given

    def compute(r: Registers) -> Results:
        low, high = (to_bools(found) for found in compare(r))
        if floats:
            return word_of_halves(low.astype(np.float64), high.astype(np.float64), bf16)
        return pack_fields([np.where(holds, 0xFFFF, 0) for holds in (low, high)], 16)

    return compute
