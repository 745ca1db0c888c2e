"""Integer minimum and maximum: `VIMNMX IMNMX VIMNMX3 VIADDMNMX` and their uniform forms.

Semantics: compiled CUDA code, run on an H100 and an H200 (docs/model.md).
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from memsim.isa.comparisons import compare
from memsim.isa.integer import split_operands
from memsim.isa.op import Form, Immediate, Predicate
from memsim.isa.pairs import halved
from memsim.isa.readers import Binder, Registers
from memsim.isa.registry import Compute, known, opcode, require
from memsim.isa.words import fields, packed, readings
from memsim.state.parts import Part
from memsim.state.predicates import to_bools
from memsim.state.registers import bounds, fit, from_array, plus, to_array, unsigned
from memsim.state.sums import Int, s64


def pick_lesser(a: Int, b: Int, smaller: bool | Part, signed: bool, bits: int = 32) -> Int:
    """The smaller of two integers where `smaller` holds, else the larger; decided by bounds if possible."""
    x, y = (a, b) if signed or bits == 64 else (unsigned(a, bits), unsigned(b, bits))
    (x_low, x_high), (y_low, y_high) = bounds(x), bounds(y)
    if isinstance(smaller, bool) and (signed or bits < 64 or min(x_low, y_low) >= 0):
        if x_high <= y_low:
            return a if smaller else b
        if y_high <= x_low:
            return b if smaller else a
    p, q = readings(a, b, signed, bits)
    if isinstance(smaller, bool):
        picked = np.minimum(p, q) if smaller else np.maximum(p, q)
    else:
        picked = np.where(to_bools(smaller), np.minimum(p, q), np.maximum(p, q))
    return fit(from_array(s64(picked)), bits)


def _is_wide(form: Form) -> bool:
    return bool({"S64", "U64"} & set(form.modifiers))


def _widths(form: Form) -> dict[int, int]:
    """`IMNMX.U64 PT, PT, R2, R10, R6, !PT, !PT`, from sm_120 on."""
    return dict.fromkeys((2, 3, 4), 2) if _is_wide(form) else {}


def _wide(form: Form, binder: Binder) -> Compute:
    """Of 64 bits; what the predicates before the result tell is not known."""
    known(form, "S64", "U64")
    require(len(form.operands) == 7)
    first, second, _, a, b, smaller, _ = form.operands
    require(all(isinstance(p, Predicate) and p.slot is None for p in (first, second, form.operands[6])))
    for source in (a, b):  # whether a larger one is sign-extended is unknown
        if isinstance(source, Immediate):
            require(isinstance(source.value, int) and 0 <= source.value < 1 << 31)
    x, y, least, signed = binder.pair(a), binder.pair(b), binder.predicate(smaller), "S64" in form.modifiers
    return lambda r: (True, True, *halved(pick_lesser(x(r), y(r), least(r), signed, 64)))


@opcode("VIADDMNMX", "VIMNMX3")
@opcode("VIMNMX", "IMNMX", "UIMNMX", "UVIMNMX", results="P?P?RP?P?", widths=_widths)
def build_min_max(form: Form, binder: Binder) -> Compute:
    """Of two or three words, of a sum and a word, or of the halves of these. Predicates tell for each half,
    lower first, whether the first operand was picked.
    """
    if _is_wide(form):
        return _wide(form, binder)
    given = known(form, "U32", "S32", "RELU", "S16x2", "U16x2")
    require(not isinstance(form.operands[0], Predicate))
    count = 3 if form.opcode in ("VIADDMNMX", "VIMNMX3") else 2
    written, operands = split_operands(form)
    reads = [binder.word(operand) for operand in operands[:count]]
    smaller = binder.predicate(operands[count])
    adds, relu = form.opcode == "VIADDMNMX", "RELU" in given
    signed, bits = not given & {"U32", "U16x2"}, 16 if given & {"S16x2", "U16x2"} else 32
    require(bits == 16 or all(isinstance(p, Predicate) and p.slot is None for p in written))

    def compute(r: Registers) -> Any:
        least = smaller(r)
        words = [fit(read(r), 32) for read in reads]
        pieces = [words] if bits == 32 else zip(*(map(from_array, fields(word, True, 16)) for word in words))
        found, first = [], []
        for x, y, *z in pieces:
            numbers = [fit(plus(x, y), bits), *z] if adds else [x, y, *z]
            picked = reduce(lambda p, q: pick_lesser(p, q, least, signed, bits), numbers)
            first.append(compare(picked, x, "EQ"))
            found.append(pick_lesser(picked, 0, False, True) if relu else picked)
        value = found[0] if bits == 32 else packed([to_array(one) for one in found], 16)
        return (value, *first[: len(written)]) if written else value

    return compute
