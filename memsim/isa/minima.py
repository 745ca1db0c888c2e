"""Integer minimum and maximum: `VIMNMX IMNMX VIMNMX3 VIADDMNMX` and their uniform forms.

Semantics: compiled CUDA code, run on an H100 and an H200 (docs/model.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.isa.integer import fields, parted
from memsim.isa.op import Form
from memsim.isa.readers import Binder, IntReader, PredicateReader, Registers
from memsim.isa.registry import Compute, Unsupported, known, opcode
from memsim.state.registers import (
    Part,
    bounds,
    fit,
    from_array,
    from_bools,
    plus,
    to_array,
    to_bools,
    unsigned,
)
from memsim.state.sums import Int


@opcode("VIADDMNMX")
def build_add_min_max(form: Form, binder: Binder) -> Compute:
    given = known(form, "U32", "RELU", "S16x2", "U16x2")
    a, b, c = (binder.word(source) for source in form.operands[1:4])
    smaller = binder.predicate(form.operands[4])
    signed, relu = "U32" not in given, "RELU" in given
    if given & {"S16x2", "U16x2"}:
        return on_pairs(form, a, b, smaller, c)

    def compute(r: Registers) -> Int:
        total = fit(plus(a(r), b(r)), 32)
        found = pick_lesser(total, fit(c(r), 32), smaller(r), signed)
        return pick_lesser(found, 0, False, True) if relu else found

    return compute


def pick_lesser(a: Int, b: Int, smaller: bool | Part, signed: bool) -> Int:
    """The smaller of two words where `smaller` holds, else the larger."""
    x, y = (a, b) if signed else (unsigned(a, 32), unsigned(b, 32))
    (x_low, x_high), (y_low, y_high) = bounds(x), bounds(y)
    if isinstance(smaller, bool):
        if x_high <= y_low:
            return a if smaller else b
        if y_high <= x_low:
            return b if smaller else a
    p, q = to_array(x), to_array(y)
    least, most = np.minimum(p, q), np.maximum(p, q)
    return fit(from_array(np.where(to_bools(smaller), least, most)), 32)


@opcode("VIMNMX", "IMNMX", "UIMNMX", "UVIMNMX", results="RP?P?")
def build_min_max(form: Form, binder: Binder) -> Compute:
    given = known(form, "U32", "S32", "RELU", "S16x2", "U16x2")
    written, operands = parted(form)
    a, b = (binder.word(source) for source in operands[:2])
    smaller = binder.predicate(operands[2])
    signed, relu = "U32" not in given, "RELU" in given
    if given & {"S16x2", "U16x2"}:
        return on_pairs(form, a, b, smaller, asked=len(written))
    if written:
        raise Unsupported(form.name)

    def compute(r: Registers) -> Int:
        found = pick_lesser(fit(a(r), 32), fit(b(r), 32), smaller(r), signed)
        return pick_lesser(found, 0, False, True) if relu else found

    return compute


@opcode("VIMNMX3")
def build_min_max_3(form: Form, binder: Binder) -> Compute:
    given = known(form, "U32", "RELU", "S16x2", "U16x2")
    a, b, c = (binder.word(source) for source in form.operands[1:4])
    smaller = binder.predicate(form.operands[4])
    signed, relu = "U32" not in given, "RELU" in given
    if given & {"S16x2", "U16x2"}:
        return on_pairs(form, a, b, smaller, c, adds=False)

    def compute(r: Registers) -> Int:
        least = smaller(r)
        found = pick_lesser(
            pick_lesser(fit(a(r), 32), fit(b(r), 32), least, signed), fit(c(r), 32), least, signed
        )
        return pick_lesser(found, 0, False, True) if relu else found

    return compute


def on_pairs(
    form: Form,
    a: IntReader,
    b: IntReader,
    smaller: PredicateReader,
    c: IntReader | None = None,
    adds: bool = True,
    asked: int = 0,
) -> Compute:
    """Minimum or maximum of packed 16-bit numbers; of a + b and c, or of all three if it does not add.

    asked: for how many halves, lower first, it also returns whether a was picked.
    """
    signed, relu = "S16x2" in form.modifiers, "RELU" in form.modifiers

    def compute(r: Registers) -> Any:
        least = to_bools(smaller(r))
        words = [fields(fit(read(r), 32), signed, 16) for read in (a, b) if read is not None]
        third = fields(fit(c(r), 32), signed, 16) if c is not None else [None, None]
        found, first = [], []
        for x, y, z in zip(*words, third):
            if z is not None and adds:
                x, y = wrapped(x + y, signed), z
            picked = np.where(least, np.minimum(x, y), np.maximum(x, y))
            first.append(from_bools(np.where(least, x <= y, x >= y)))
            if z is not None and not adds:
                picked = np.where(least, np.minimum(picked, z), np.maximum(picked, z))
            found.append((np.maximum(picked, 0) if relu else picked) & 0xFFFF)
        value = fit(from_array(found[0] | (found[1] << 16)), 32)
        return (value, *first[:asked]) if asked else value

    return compute


def wrapped(array: np.ndarray, signed: bool) -> np.ndarray:
    """Modulo 2**16."""
    return ((array + 0x8000) & 0xFFFF) - 0x8000 if signed else array & 0xFFFF
