"""Dot products and absolute differences of integers of 8, 16 and 32 bits: `IDP VABSDIFF VABSDIFF4`.

Semantics: compiled CUDA code, run on an H100 and an H200 (docs/model.md).
"""

from __future__ import annotations

import numpy as np

from memsim.isa.op import Form
from memsim.isa.readers import Binder, Registers, sources
from memsim.isa.registry import Compute, opcode, require
from memsim.isa.words import fields, packed, readings, word_opcode
from memsim.state.registers import fit, from_array, plus
from memsim.state.sums import Int


@opcode("IDP")
def build_dot_product(form: Form, binder: Binder) -> Compute:
    kind, *rest = form.modifiers
    start = 2 if "HI" in rest else 0
    named = [name for name in rest if name not in ("LO", "HI")]
    require(kind in ("4A", "2A") and len(named) == 2 and set(named) <= {"S8", "U8", "S16", "U16"})
    left, right = named
    a, b, c = sources(binder.word, form, 3)

    def compute(r: Registers) -> Int:
        x = fields(a(r), left.startswith("S"), 8 if kind == "4A" else 16)
        y = fields(b(r), right.startswith("S"), 8)[start:]
        return fit(plus(total([p * q for p, q in zip(x, y)]), c(r)), 32)

    return compute


def total(terms: list[np.ndarray]) -> Int:
    """A sum of terms, one or more."""
    return from_array(sum(terms[1:], start=terms[0]))


@word_opcode("VABSDIFF", count=3, modifiers=("U32",))
def distance(given: frozenset[str], a: Int, b: Int, c: Int) -> Int:
    x, y = readings(a, b, "U32" not in given, 32)
    return plus(from_array(np.abs(x - y)), c)


@word_opcode("VABSDIFF4", count=3, modifiers=("U8", "S8", "ACC"))
def byte_distances(given: frozenset[str], a: Int, b: Int, c: Int) -> Int:
    pairs = zip(*(fields(word, "U8" not in given, 8) for word in (a, b)))
    found = [np.abs(x - y) for x, y in pairs]
    return plus(total(found), c) if "ACC" in given else packed(found, 8)
