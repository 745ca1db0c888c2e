"""Dot products and absolute differences of integers of 8, 16 and 32 bits: `IDP VABSDIFF VABSDIFF4`.

Semantics: compiled CUDA code, run on an H100 and an H200 (docs/model.md).
"""

from __future__ import annotations

import numpy as np

from memsim.isa.integer import fields
from memsim.isa.op import Form
from memsim.isa.readers import Binder, Registers
from memsim.isa.registry import Compute, Unsupported, known, opcode
from memsim.state.registers import fit, from_array, plus, to_array, unsigned
from memsim.state.sums import Int


@opcode("IDP")
def build_dot_product(form: Form, binder: Binder) -> Compute:
    kind, *rest = form.modifiers
    start = 2 if "HI" in rest else 0
    named = [name for name in rest if name not in ("LO", "HI")]
    if kind not in ("4A", "2A") or len(named) != 2 or set(named) - {"S8", "U8", "S16", "U16"}:
        raise Unsupported(form.name)
    left, right = named
    a, b, c = (binder.word(source) for source in form.operands[1:4])
    four = kind == "4A"

    def compute(r: Registers) -> Int:
        x = fields(a(r), left.startswith("S"), 8 if four else 16)
        y = fields(b(r), right.startswith("S"), 8)[start:]
        total: np.ndarray = sum((p * q for p, q in zip(x, y)), start=np.zeros((1, 1), np.int64))
        return fit(plus(from_array(total), c(r)), 32)

    return compute


@opcode("VABSDIFF")
def build_distance(form: Form, binder: Binder) -> Compute:
    signed = "U32" not in known(form, "U32")
    a, b, c = (binder.word(source) for source in form.operands[1:4])

    def compute(r: Registers) -> Int:
        x, y = (fit(read(r), 32) for read in (a, b))
        p, q = (to_array(value if signed else unsigned(value, 32)) for value in (x, y))
        return fit(plus(from_array(np.abs(p - q)), c(r)), 32)

    return compute


@opcode("VABSDIFF4")
def build_byte_distances(form: Form, binder: Binder) -> Compute:
    given = known(form, "U8", "S8", "ACC")
    a, b, c = (binder.word(source) for source in form.operands[1:4])

    def compute(r: Registers) -> Int:
        pairs = zip(*(fields(fit(read(r), 32), "U8" not in given, 8) for read in (a, b)))
        found = [np.abs(x - y) for x, y in pairs]
        if "ACC" in given:
            return fit(plus(from_array(sum(found, start=np.zeros((1, 1), np.int64))), c(r)), 32)
        packed = sum(
            ((value & 0xFF) << (8 * i) for i, value in enumerate(found)), start=np.zeros((1, 1), np.int64)
        )
        return fit(from_array(packed), 32)

    return compute
