"""Dot products and absolute differences of integers of 8, 16 and 32 bits: `IDP VABSDIFF VABSDIFF4`.

Semantics: compiled CUDA code, run on an H100 and an H200 (docs/model.md).
"""

from __future__ import annotations

import numpy as np

from memsim.isa.definitions import BoundForm, Compute, executes
from memsim.isa.readers import IntReader, Registers
from memsim.isa.unsupported import require
from memsim.isa.words import computes, fields, packed, readings
from memsim.state.registers import fit, from_array, plus
from memsim.state.sums import Int


@executes("IDP.4A IDP.2A", "W <- WWW", None)
def dot_product(form: BoundForm, a: IntReader, b: IntReader, c: IntReader) -> Compute:
    kind, *rest = form.modifiers
    start = 2 if "HI" in rest else 0
    named = [name for name in rest if name not in ("LO", "HI")]
    require(len(named) == 2 and set(named) <= {"S8", "U8", "S16", "U16"})
    left, right = named

    def compute(r: Registers) -> Int:
        x = fields(a(r), left.startswith("S"), 8 if kind == "4A" else 16)
        y = fields(b(r), right.startswith("S"), 8)[start:]
        return fit(plus(total([p * q for p, q in zip(x, y)]), c(r)), 32)

    return compute


def total(terms: list[np.ndarray]) -> Int:
    """A sum of terms, one or more."""
    return from_array(sum(terms[1:], start=terms[0]))


@computes("VABSDIFF", "W <- WWW", "U32")
def distance(given: frozenset[str], a: Int, b: Int, c: Int) -> Int:
    x, y = readings(a, b, "U32" not in given, 32)
    return plus(from_array(np.abs(x - y)), c)


@computes("VABSDIFF4", "W <- WWW", "U8 S8 ACC")
def byte_distances(given: frozenset[str], a: Int, b: Int, c: Int) -> Int:
    pairs = zip(*(fields(word, "U8" not in given, 8) for word in (a, b)))
    found = [np.abs(x - y) for x, y in pairs]
    return plus(total(found), c) if "ACC" in given else packed(found, 8)
