"""Bit operations on words: `FLO POPC BREV BMSK SGXT` and their uniform forms.

Semantics: compiled CUDA code, run on an H100 and an H200 (docs/model.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.isa.logic import ALL
from memsim.isa.op import Form, Predicate
from memsim.isa.readers import Binder, Registers
from memsim.isa.registry import Compute, known, opcode
from memsim.state.registers import fit, from_array, from_bools, to_array, unsigned
from memsim.state.sums import Int, low_bits, shift_left, shift_right


def highest_bit(array: np.ndarray) -> np.ndarray:
    """The index of the highest set bit of unsigned words, -1 if there is none."""
    _, exponent = np.frexp(array.astype(np.float64))
    return np.where(array == 0, -1, exponent - 1).astype(np.int64)


@opcode("FLO", "UFLO", results="RP?")
def build_find_leading_one(form: Form, binder: Binder) -> Compute:
    given = known(form, "U32", "SH", "S32")
    rest = form.operands[1:]
    tests = isinstance(rest[0], Predicate)
    source = rest[1] if tests else rest[0]
    read = binder.word(source)
    signed = "U32" not in given

    def compute(r: Registers) -> Any:
        array = to_array(fit(read(r), 32))
        array = np.where(array < 0, ~array, array) if signed else array & ALL
        found = highest_bit(array)
        if "SH" in given:
            found = np.where(found < 0, -1, 31 - found)
        value = from_array(found)
        return (value, from_bools(array != 0)) if tests else value

    return compute


@opcode("POPC", "UPOPC")
def build_popc(form: Form, binder: Binder) -> Compute:
    known(form)
    read = binder.word(form.operands[1])

    def compute(r: Registers) -> Int:
        words = (to_array(fit(read(r), 32)) & ALL).astype(np.uint32)
        count = np.zeros(words.shape, np.int64)
        for bit in range(32):
            count += (words >> np.uint32(bit)) & np.uint32(1)
        return from_array(count)

    return compute


@opcode("BREV", "UBREV")
def build_reverse(form: Form, binder: Binder) -> Compute:
    known(form)
    read = binder.word(form.operands[1])

    def compute(r: Registers) -> Int:
        words = to_array(fit(read(r), 32)) & ALL
        result = np.zeros(words.shape, np.int64)
        for bit in range(32):
            result |= ((words >> bit) & 1) << (31 - bit)
        return fit(from_array(result), 32)

    return compute


@opcode("BMSK", "UBMSK")
def build_mask(form: Form, binder: Binder) -> Compute:
    given = known(form, "W", "C")
    start, count = (binder.word(operand) for operand in form.operands[1:3])
    wraps = "W" in given

    def compute(r: Registers) -> Int:
        at, length = (to_array(unsigned(fit(read(r), 32), 32)) for read in (start, count))
        if wraps:
            at, length = at & 31, length & 31
        else:
            at, length = np.minimum(at, 32), np.minimum(length, 32)
        bits = ((np.int64(1) << length) - 1) << at
        return fit(from_array(bits & ALL), 32)

    return compute


@opcode("SGXT", "USGXT")
def build_sign_extension(form: Form, binder: Binder) -> Compute:
    given = known(form, "U32", "W")
    a, count = binder.word(form.operands[1]), binder.word(form.operands[2])
    signed, wraps = "U32" not in given, "W" in given

    def compute(r: Registers) -> Int:
        x, bits = fit(a(r), 32), count(r)
        if type(bits) is not int:
            many = to_array(unsigned(fit(bits, 32), 32))
            many = many & 31 if wraps else np.minimum(many, 32)
            word = to_array(x) & ((np.int64(1) << many) - 1)
            sign = np.where(many > 0, np.int64(1) << np.maximum(many - 1, 0), 0)
            return fit(from_array((word ^ sign) - sign if signed else word), 32)
        bits = bits & 31 if wraps else min(bits & 0xFFFFFFFF, 32)
        if bits == 0:
            return 0
        low = low_bits(x, bits)
        return shift_right(shift_left(low, 32 - bits, 32), 32 - bits, True, 32) if signed else fit(low, 32)

    return compute
