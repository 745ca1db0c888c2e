"""Packed 16-bit floats: `HADD2 HMUL2 HFMA2 HMNMX2 VHMNMX HSETP2 HSET2`.

Each half is rounded to nearest; NaN is 0x7fff. Computed in float64 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from memsim.isa.comparisons import COMBINE
from memsim.isa.float_formats import NAN, to_bits
from memsim.isa.integer import packed
from memsim.isa.op import Form, Predicate
from memsim.isa.readers import Binder, Registers
from memsim.isa.registry import Compute, Unsupported, opcode
from memsim.isa.single import ordering, pick, signed, with_signs
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


def on_halves(form: Form, binder: Binder, count: int, operation: Callable[..., Array]) -> Compute:
    """Apply an operation to both halves of `count` sources."""
    given = frozenset(form.modifiers)
    if given - {"MMA", "BF16_V2", "F32", "SAT", "RELU", "FTZ"}:
        raise Unsupported(form.name)
    bf16 = "BF16_V2" in given
    if bf16 and "FTZ" in given:
        raise Unsupported(form.name)
    sources = [binder.halves(operand, bf16) for operand in form.operands[1 : 1 + count]]
    if len(sources) != count:
        raise Unsupported(form.name)
    to_single = "F32" in given
    prepare = flushed if "FTZ" in given else (lambda value: value)

    def compute(r: Registers) -> Any:
        halves = [source(r) for source in sources]
        low, high = (
            finished(operation(*(prepare(pair[i].astype(np.float64)) for pair in halves)), given)
            for i in (0, 1)
        )
        if to_single:
            return np.where(np.isnan(low), NAN, low.astype(np.float32))
        return joined(low, high, bf16)

    return compute


@opcode("HADD2")
def build_add(form: Form, binder: Binder) -> Compute:
    return on_halves(form, binder, 2, odd_sum)


@opcode("HMUL2")
def build_multiply(form: Form, binder: Binder) -> Compute:
    return on_halves(form, binder, 2, np.multiply)


@opcode("HFMA2")
def build_fma(form: Form, binder: Binder) -> Compute:
    return on_halves(form, binder, 3, lambda a, b, c: odd_sum(a * b, c))


@opcode("HMNMX2")
def build_min_max(form: Form, binder: Binder) -> Compute:
    given = frozenset(form.modifiers)
    bf16 = "BF16_V2" in given
    if given - {"BF16_V2", "NAN", "FTZ", "XORSIGN"} or (bf16 and "FTZ" in given):
        raise Unsupported(form.name)
    a, b = (binder.halves(operand, bf16) for operand in form.operands[1:3])
    signs = [binder.halves(signed(operand), bf16) for operand in form.operands[1:3]]
    smaller = binder.predicate(form.operands[3])
    prepare = flushed if "FTZ" in given else (lambda value: value)

    def compute(r: Registers) -> Any:
        least = smaller(r)
        low, high = (
            pick(prepare(x.astype(np.float64)), prepare(y.astype(np.float64)), least, given)
            for x, y in zip(a(r), b(r))
        )
        if "XORSIGN" in given:
            (low_x, high_x), (low_y, high_y) = signs[0](r), signs[1](r)
            low, high = with_signs(low, low_x, low_y), with_signs(high, high_x, high_y)
        return joined(low, high, bf16)

    return compute


@opcode("VHMNMX")
def build_min_max_3(form: Form, binder: Binder) -> Compute:
    given = frozenset(form.modifiers)
    bf16 = "BF16_V2" in given
    if given - {"BF16_V2", "NAN"}:
        raise Unsupported(form.name)
    a, b, c = (binder.halves(operand, bf16) for operand in form.operands[1:4])
    smaller = binder.predicate(form.operands[4])

    def compute(r: Registers) -> Any:
        least = smaller(r)
        low, high = (
            pick(pick(x, y, least, given), z, least, given).astype(np.float64)
            for x, y, z in zip(a(r), b(r), c(r))
        )
        return joined(low, high, bf16)

    return compute


@opcode("HSETP2", results="PP")
def build_setp(form: Form, binder: Binder) -> Compute:
    bf16 = "BF16_V2" in form.modifiers
    how, *rest = (name for name in form.modifiers if name not in ("BF16_V2", "FTZ"))
    combine = next((COMBINE[name] for name in rest if name in COMBINE), None)
    if combine is None or len(rest) != 1:
        raise Unsupported(form.name)
    order = ordering(how, form)
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
