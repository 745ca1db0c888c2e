"""Integer minimum and maximum: `VIMNMX IMNMX VIMNMX3 VIADDMNMX` and their uniform forms.

Semantics: compiled CUDA code, run on an H100 and an H200 (docs/model.md).
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from memsim.isa.comparisons import compare
from memsim.isa.definitions import BoundForm, Compute, executes
from memsim.isa.op import Immediate
from memsim.isa.pairs import halved
from memsim.isa.readers import IntReader, PredicateReader, Registers
from memsim.isa.unsupported import require
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


_NAMES = ("VIMNMX", "IMNMX", "UIMNMX", "UVIMNMX")


@executes(" ".join(f"{name}.{kind}" for name in _NAMES for kind in ("S64", "U64")), "PPD <- DDPP")
def min_max_of_pairs(
    form: BoundForm, x: IntReader, y: IntReader, least: PredicateReader, _: object
) -> Compute:
    """From sm_120 on; what the predicates before the result tell is not known."""
    require(all(getattr(one, "slot", 0) is None for one in (*form.results[:2], form.sources[3])))
    for source in form.sources[:2]:  # whether a larger one is sign-extended is unknown
        if isinstance(source, Immediate):
            require(isinstance(source.value, int) and 0 <= source.value < 1 << 31)
    signed = "S64" in form.given
    return lambda r: (True, True, *halved(pick_lesser(x(r), y(r), least(r), signed, 64)))


@executes("VIADDMNMX VIMNMX3", "W <- WWWP", "U32 S32 RELU S16x2 U16x2")
@executes(" ".join(_NAMES), "W P?P? <- WWP", "U32 S32 RELU S16x2 U16x2")
def min_max(form: BoundForm, *sources: Any) -> Compute:
    """Of two or three words, of a sum and a word, or of the halves of these. Predicates tell for each half,
    lower first, whether the first operand was picked.
    """
    *reads, smaller = sources
    given, adds = form.given, form.opcode == "VIADDMNMX"
    tells = any(one is not None for one in form.results[1:])
    signed, bits = not given & {"U32", "U16x2"}, 16 if given & {"S16x2", "U16x2"} else 32
    require(bits == 16 or all(getattr(one, "slot", None) is None for one in form.results[1:]))

    def compute(r: Registers) -> Any:
        least = smaller(r)
        words = [fit(read(r), 32) for read in reads]
        pieces = [words] if bits == 32 else zip(*(map(from_array, fields(word, True, 16)) for word in words))
        found, first = [], []
        for x, y, *z in pieces:
            numbers = [fit(plus(x, y), bits), *z] if adds else [x, y, *z]
            picked = reduce(lambda p, q: pick_lesser(p, q, least, signed, bits), numbers)
            if tells:
                first.append(compare(picked, x, "EQ"))
            found.append(pick_lesser(picked, 0, False, True) if "RELU" in given else picked)
        value = found[0] if bits == 32 else packed([to_array(one) for one in found], 16)
        return (value, *first, True)[: len(form.results)] if len(form.results) > 1 else value

    return compute
