"""Bit operations on words: `FLO POPC BREV BMSK SGXT` and their uniform forms.

Semantics: compiled CUDA code, run on an H100 and an H200 (docs/model.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.isa.definitions import BoundForm, Compute, executes
from memsim.isa.logic import shift_amount
from memsim.isa.readers import IntReader, Registers
from memsim.isa.words import computes
from memsim.state.predicates import from_bools
from memsim.state.registers import fit, from_array, to_array, unsigned
from memsim.state.sums import Int, low_bits, shift_left, shift_right


def highest_bit(array: np.ndarray) -> np.ndarray:
    """The index of the highest set bit of unsigned integers, -1 if there is none."""
    alone = array & ~(array >> 1)  # without the bit below the highest, so that no rounding carries
    found: np.ndarray = np.frexp(alone.astype(np.float64))[1].astype(np.int64) - 1
    return found


@executes("FLO UFLO", "W P? <- W", "U32 SH S32")
def find_leading_one(form: BoundForm, read: IntReader) -> Compute:
    signed, from_top = "U32" not in form.given, "SH" in form.given

    def compute(r: Registers) -> Any:
        word = fit(read(r), 32)
        array = to_array(word if signed else unsigned(word, 32))
        array = np.where(array < 0, ~array, array)
        found = highest_bit(array)
        if from_top:
            found = np.where(found < 0, -1, 31 - found)
        return from_array(found), from_bools(array != 0)

    return compute


@computes("POPC UPOPC", "W <- W")
def count_ones(given: frozenset[str], word: Int) -> Int:
    return from_array(np.bitwise_count(to_array(unsigned(word, 32))).astype(np.int64))


@computes("BREV UBREV", "W <- W")
def reverse(given: frozenset[str], word: Int) -> Int:
    pieces = to_array(word).astype("<i4").view(np.uint8)
    turned = np.packbits(np.unpackbits(pieces, axis=1, bitorder="little"), axis=1, bitorder="big")
    return from_array(turned.view(">i4").astype(np.int64))


@computes("BMSK UBMSK", "W <- WW", "W C")
def mask(given: frozenset[str], start: Int, length: Int) -> Int:
    at, count = (np.atleast_2d(shift_amount(word, 32, "W" in given)) for word in (start, length))
    return from_array(((1 << count) - 1) << at)


@computes("SGXT USGXT", "W <- WW", "U32 W")
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
