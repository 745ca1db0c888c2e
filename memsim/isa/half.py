"""Packed 16-bit floats: `HADD2 HMUL2 HFMA2 HMNMX2 VHMNMX HSETP2 HSET2`.

Each half is rounded to nearest; NaN is 0x7fff. Computed in float64 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from memsim.isa.comparisons import COMBINE
from memsim.isa.float_formats import NAN, to_bits
from memsim.isa.op import Form, Operand, Predicate
from memsim.isa.readers import Binder, Registers, sources
from memsim.isa.registry import Compute, known, opcode, require
from memsim.isa.single import ordering, pick, signed, with_signs
from memsim.isa.words import packed
from memsim.state.predicates import from_bools, to_bools
from memsim.state.rounding import Array, narrow, odd_sum

#: The smallest normal float16.
TINY = 2.0**-14


def joined(low: Array, high: Array, bf16: bool) -> Any:
    """Two float64 arrays as a word of two 16-bit floats."""
    return packed([to_bits(value, bf16) for value in (low, high)], 16)


def flushed(value: Array) -> Array:
    """Subnormal float16 numbers flushed to zero, keeping the sign."""
    return np.where(np.abs(value) < TINY, np.copysign(0.0, value), value)


def flushed_result(value: Array) -> Array:
    """Results that would be subnormal if rounded with unbounded exponents, flushed to zero."""
    size = np.abs(narrow(value / TINY, np.float16))
    return np.where(size < 1, np.copysign(0.0, value), value)


def finished(value: Array, given: frozenset[str]) -> Array:
    """`.FTZ`, `.SAT` and `.RELU`."""
    if "FTZ" in given:
        value = flushed_result(value)
    if "SAT" in given:
        value = np.where(value > 0, np.minimum(value, 1.0), 0.0)
    if "RELU" in given:
        value = np.where(value <= 0, 0.0, value)
    return value


#: Opcode -> what it does, on how many sources.
_ARITHMETIC: dict[str, tuple[Callable[..., Array], int]] = {
    "HADD2": (odd_sum, 2),
    "HMUL2": (np.multiply, 2),
    "HFMA2": (lambda a, b, c: odd_sum(a * b, c), 3),
}


@opcode(*_ARITHMETIC)
def build_arithmetic(form: Form, binder: Binder) -> Compute:
    given = known(form, "MMA", "BF16_V2", "F32", "SAT", "RELU", "FTZ")
    require(not given >= {"BF16_V2", "FTZ"})
    operation, count = _ARITHMETIC[form.opcode]
    bf16, reads = "BF16_V2" in given, numbers(form, binder, given, count)

    def compute(r: Registers) -> Any:
        low, high = (finished(operation(*values), given) for values in zip(*(read(r) for read in reads)))
        if "F32" in given:
            return np.where(np.isnan(low), NAN, low.astype(np.float32))
        return joined(low, high, bf16)

    return compute


def numbers(
    form: Form, binder: Binder, given: frozenset[str], count: int
) -> list[Callable[[Registers], list[Array]]]:
    """Readers of the halves of so many sources as float64; of subnormal numbers with `.FTZ` as zeros."""

    def reader(operand: Operand) -> Callable[[Registers], list[Array]]:
        halves = binder.halves(operand, "BF16_V2" in given)
        prepare = flushed if "FTZ" in given else (lambda value: value)
        return lambda r: [prepare(half.astype(np.float64)) for half in halves(r)]

    return sources(reader, form, count)


@opcode("HMNMX2", "VHMNMX")
def build_min_max(form: Form, binder: Binder) -> Compute:
    """Of two numbers, or with VHMNMX of three."""
    count = 3 if form.opcode == "VHMNMX" else 2
    given = known(form, "BF16_V2", "NAN", *(("FTZ", "XORSIGN") if count == 2 else ()))
    require(not given >= {"BF16_V2", "FTZ"})
    bf16, reads = "BF16_V2" in given, numbers(form, binder, given, count)
    signs = [binder.halves(signed(operand), bf16) for operand in form.operands[1:3]]
    smaller = binder.predicate(form.operands[1 + count])

    def compute(r: Registers) -> Any:
        least = smaller(r)
        found = [
            reduce(lambda x, y: pick(x, y, least, given), values)
            for values in zip(*(read(r) for read in reads))
        ]
        if "XORSIGN" in given:
            found = [with_signs(size, *of) for size, of in zip(found, zip(*(sign(r) for sign in signs)))]
        return joined(found[0], found[1], bf16)

    return compute


@opcode("HSETP2", results="PP")
def build_setp(form: Form, binder: Binder) -> Compute:
    bf16 = "BF16_V2" in form.modifiers
    how, *rest = (name for name in form.modifiers if name not in ("BF16_V2", "FTZ"))
    require(len(rest) == 1 and rest[0] in COMBINE)
    combine = COMBINE[rest[0]]
    order = ordering(how)
    a, b = (binder.halves(operand, bf16) for operand in form.operands[2:4])
    joined = binder.predicate(form.operands[4])

    def compute(r: Registers) -> Any:
        added = joined(r)
        low, high = (from_bools(order(x, y)) for x, y in zip(a(r), b(r)))
        return combine(low, added), combine(high, added)

    return compute


@opcode("HSET2")
def build_set(form: Form, binder: Binder) -> Compute:
    bf16 = "BF16_V2" in form.modifiers
    floats = "BF" in form.modifiers
    how, *rest = (name for name in form.modifiers if name not in ("BF16_V2", "FTZ", "BF"))
    inner = Form("HSETP2", (*(("BF16_V2",) if bf16 else ()), how, *rest), (Predicate(None), *form.operands))
    compare = build_setp(inner, binder)

    def compute(r: Registers) -> Any:
        low, high = (to_bools(found) for found in compare(r))
        if floats:
            return joined(low.astype(np.float64), high.astype(np.float64), bf16)
        return packed([np.where(holds, 0xFFFF, 0) for holds in (low, high)], 16)

    return compute
