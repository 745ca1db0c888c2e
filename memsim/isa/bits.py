"""Bit operations on words: `FLO POPC BREV BMSK SGXT` and their uniform forms.

Semantics: compiled CUDA code, run on an H100 and an H200 (docs/model.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.isa.logic import shift_amount
from memsim.isa.op import Form, Predicate
from memsim.isa.readers import Binder, Registers
from memsim.isa.registry import Compute, known, opcode
from memsim.isa.words import word_opcode
from memsim.state.predicates import from_bools
from memsim.state.registers import fit, from_array, to_array, unsigned
from memsim.state.sums import Int, low_bits, shift_left, shift_right


def highest_bit(array: np.ndarray) -> np.ndarray:
    """The index of the highest set bit of unsigned integers, -1 if there is none."""
    alone = array & ~(array >> 1)  # without the bit below the highest, so that no rounding carries
    found: np.ndarray = np.frexp(alone.astype(np.float64))[1].astype(np.int64) - 1
    return found


@opcode("FLO", "UFLO", results="RP?")
def build_find_leading_one(form: Form, binder: Binder) -> Compute:
    given = known(form, "U32", "SH", "S32")
    rest = form.operands[1:]
    tests = isinstance(rest[0], Predicate)
    read = binder.word(rest[1] if tests else rest[0])
    signed = "U32" not in given

    def compute(r: Registers) -> Any:
        word = fit(read(r), 32)
        array = to_array(word if signed else unsigned(word, 32))
        array = np.where(array < 0, ~array, array)
        found = highest_bit(array)
        if "SH" in given:
            found = np.where(found < 0, -1, 31 - found)
        value = from_array(found)
        return (value, from_bools(array != 0)) if tests else value

    return compute


@word_opcode("POPC", "UPOPC", count=1)
def count_ones(given: frozenset[str], word: Int) -> Int:
    return from_array(np.bitwise_count(to_array(unsigned(word, 32))).astype(np.int64))


@word_opcode("BREV", "UBREV", count=1)
def reverse(given: frozenset[str], word: Int) -> Int:
    pieces = to_array(word).astype("<i4").view(np.uint8)
    turned = np.packbits(np.unpackbits(pieces, axis=1, bitorder="little"), axis=1, bitorder="big")
    return from_array(turned.view(">i4").astype(np.int64))


@word_opcode("BMSK", "UBMSK", count=2, modifiers=("W", "C"))
def mask(given: frozenset[str], start: Int, length: Int) -> Int:
    at, count = (np.atleast_2d(shift_amount(word, 32, "W" in given)) for word in (start, length))
    return from_array(((1 << count) - 1) << at)


@word_opcode("SGXT", "USGXT", count=2, modifiers=("U32", "W"))
def extend(given: frozenset[str], word: Int, count: Int) -> Int:
    """The low `count` bits, sign- or zero-extended."""
    signed, bits = "U32" not in given, shift_amount(count, 32, "W" in given)
    if isinstance(bits, np.ndarray):
        low = to_array(word) & ((1 << bits) - 1)
        sign = np.where(bits > 0, 1 << np.maximum(bits - 1, 0), 0)
        return from_array((low ^ sign) - sign if signed else low)
    if not signed or not bits:
        return low_bits(word, bits)
    return shift_right(shift_left(word, 32 - bits, 32), 32 - bits, True, 32)
