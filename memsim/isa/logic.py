"""Logic, shifts and bits: `LOP3 PLOP3 SHF FLO POPC BREV BMSK SGXT` and their uniform forms.

Semantics: compiled CUDA code, run on an H100 and an H200 (docs/model.md).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import product
from operator import itemgetter
from typing import TypeVar

import numpy as np

from memsim.isa.definitions import BoundForm, Compute, Results, computes, executes
from memsim.isa.op import Immediate, Operand, Trait
from memsim.isa.readers import IntReader, PredicateReader, Registers
from memsim.state.parts import Part
from memsim.state.predicates import both, either, from_bools, invert
from memsim.state.registers import as_unsigned, bounds, fit, from_array, plus, to_array
from memsim.state.sums import (
    Int,
    and_ints,
    invert_bits,
    low_bits,
    or_ints,
    s64,
    shift_left,
    shift_right,
    u64,
    xor_ints,
)

#: Truth tables of `a & b` and `a | b`: with a number, compilers set bits that stand for predicates.
AND, OR = 0xC0, 0xFC
#: A function of three words: its truth table, of bit a * 4 + b * 2 + c, and its value.
Function = tuple[int, Callable[[Sequence[Int]], Int]]

_OPERATIONS = ((operator.and_, and_ints), (operator.or_, or_ints), (operator.xor, xor_ints))


def _combined(lefts: Sequence[Function], rights: Sequence[Function]) -> Iterator[Function]:
    for (p, left), (q, right), (on_tables, on_words) in product(lefts, rights, _OPERATIONS):
        yield on_tables(p, q), partial(lambda f, x, y, words: f(x(words), y(words)), on_words, left, right)


@cache
def _shortcuts() -> dict[int, Callable[[Sequence[Int]], Int]]:
    """By truth table: `p`, `p op q` and `p op (q op r)` of operands and their complements, which preserve the
    parts of sums.
    """
    operands: list[Function] = [(0xF0, itemgetter(0)), (0xCC, itemgetter(1)), (0xAA, itemgetter(2))]
    inverted = [
        (table ^ 0xFF, partial(lambda of, words: invert_bits(of(words)), of)) for table, of in operands
    ]
    terms = operands + inverted
    pairs = list(_combined(terms, terms))
    found: dict[int, Callable[[Sequence[Int]], Int]] = {0x00: lambda words: 0, 0xFF: lambda words: -1}
    for table, value in (*terms, *pairs, *_combined(terms, pairs)):
        found.setdefault(table, value)
    return found


def by_table(table: int, a: Int, b: Int, c: Int) -> Int:
    """A bitwise function of three words by its truth table."""
    shortcut = _shortcuts().get(table)
    if shortcut is not None:
        return shortcut((a, b, c))
    if type(a) is type(b) is type(c) is int:
        return _minterms(table, a, b, c, 0)
    return from_array(_minterms(table, to_array(a), to_array(b), to_array(c), np.zeros((1, 1), np.int64)))


Bits = TypeVar("Bits", int, np.ndarray)


def _minterms(table: int, x: Bits, y: Bits, z: Bits, nothing: Bits) -> Bits:
    for row in range(8):
        if table >> row & 1:
            nothing = nothing | ((x if row & 4 else ~x) & (y if row & 2 else ~y) & (z if row & 1 else ~z))
    return nothing


@executes("LOP3 ULOP3", "W <- VWWI P?", "LUT", traits={"": Trait.MOVES_BITS})
@executes("LOP3 ULOP3", "PW <- VWWI P?", "LUT", traits={"": Trait.TESTS, "LUT": Trait.MOVES_BITS})
def bitwise(
    form: BoundForm, a: Operand, y: IntReader, z: IntReader, lut: int, other: PredicateReader | None
) -> Compute:
    """A predicate before the result tells whether any bit is set, or the other predicate holds."""
    table, tests = lut & 0xFF, len(form.results) == 2
    changes_bits = form.results[-1] == a and isinstance(form.sources[1], Immediate) and table in (AND, OR)
    x = form.binder.kept_word(a) if changes_bits else form.binder.word(a)

    def compute(r: Registers) -> Results:
        result = fit(by_table(table, fit(x(r), 32), fit(y(r), 32), fit(z(r), 32)), 32)
        if not tests:
            return result
        return either(is_not_zero(result), other(r) if other is not None else False), result

    return compute


def is_not_zero(value: Int) -> bool | Part:
    """Whether any bit is set."""
    low, high = bounds(value)
    if low > 0 or high < 0:
        return True
    if low == high == 0:
        return False
    return from_bools(to_array(value) != 0)


@executes("PLOP3 UPLOP3", "PP <- PPPII", "LUT")
def of_three_predicates(
    form: BoundForm, x: PredicateReader, y: PredicateReader, z: PredicateReader, *luts: int
) -> Compute:
    tables = [lut & 0xFF for lut in luts]

    def compute(r: Registers) -> Results:
        p, q, s = x(r), y(r), z(r)
        return tuple(predicate_by_table(table, p, q, s) for table in tables)

    return compute


def predicate_by_table(table: int, a: bool | Part, b: bool | Part, c: bool | Part) -> bool | Part:
    """A function of three predicates by its truth table."""
    found: bool | Part = False
    for row in range(8):
        if table >> row & 1:
            term = both(
                both(a if row & 4 else invert(a), b if row & 2 else invert(b)), c if row & 1 else invert(c)
            )
            found = either(found, term)
    return found


@executes("SHF USHF", "W <- WWW", "L R W U32 S32 U64 S64 HI", traits={"": Trait.MOVES_BITS})
def funnel_shift(form: BoundForm, lo: IntReader, by: IntReader, hi: IntReader) -> Compute:
    """A 64-bit shift of {third, first} by the second operand; the result is one of the two words."""
    given = form.given
    left, wraps, takes_high = "L" in given, "W" in given, "HI" in given
    wide, signed = bool(given & {"U64", "S64"}), bool(given & {"S32", "S64"})
    move = shifted_left if left else shifted_right

    def compute(r: Registers) -> Int:
        shift = shift_amount(by(r), 64 if wide else 32, wraps)
        if not isinstance(shift, int):
            return by_many(fit(lo(r), 32), fit(hi(r), 32), shift, left, takes_high, signed)
        return move(fit(lo(r), 32), fit(hi(r), 32), shift, takes_high, signed)

    return compute


def shift_amount(word: Int, size: int, wraps: bool) -> int | np.ndarray:
    """An amount of bits, unsigned: modulo `size`, or at most `size`."""
    amount = as_unsigned(word, 32)
    if type(amount) is int:
        return amount & (size - 1) if wraps else min(amount, size)
    many = to_array(amount)
    return many & (size - 1) if wraps else np.minimum(many, size)


def shifted_left(lo: Int, hi: Int, by: int, takes_high: bool, signed: bool) -> Int:
    """A word of `{hi, lo} << by`."""
    if not takes_high:
        return shift_left(lo, by, 32)
    if by >= 32:
        return shift_left(lo, by - 32, 32)
    if by == 0:
        return hi
    return fit(plus(shift_left(hi, by, 32), shift_right(as_unsigned(lo, 32), 32 - by, False, 32)), 32)


def shifted_right(lo: Int, hi: Int, by: int, takes_high: bool, signed: bool) -> Int:
    """A word of `{hi, lo} >> by`."""
    if takes_high:
        return fit(shift_right(hi, by, signed, 32), 32)
    if by >= 32:
        return fit(shift_right(hi, by - 32, signed, 32), 32)
    if by == 0:
        return lo
    return fit(plus(shift_right(as_unsigned(lo, 32), by, False, 32), shift_left(hi, 32 - by, 32)), 32)


def by_many(lo: Int, hi: Int, by: np.ndarray, left: bool, takes_high: bool, signed: bool) -> Int:
    """As above, with an amount that differs between lanes."""
    joined = to_array(as_unsigned(lo, 32)) | (to_array(hi) << 32)
    count = np.minimum(by, 63)
    if left:
        moved = np.where(by > 63, 0, joined << count)
        word = moved >> 32 if takes_high else moved
    elif takes_high:
        top = to_array(hi if signed else as_unsigned(hi, 32))
        word = top >> count
    else:
        below = s64(u64(joined) >> count.astype(np.uint64))
        word = joined >> count if signed else np.where(by > 63, 0, below)
    return fit(from_array(word), 32)


# --- bits of words ---------------------------------------------------------------------------


def highest_bit(array: np.ndarray) -> np.ndarray:
    """The index of the highest set bit of unsigned integers, -1 if there is none."""
    alone = array & ~(array >> 1)  # without the bit below the highest, so that no rounding carries
    found: np.ndarray = np.frexp(alone.astype(np.float64))[1].astype(np.int64) - 1
    return found


@executes("FLO UFLO", "W P? <- W", "U32 SH S32")
def find_leading_one(form: BoundForm, read: IntReader) -> Compute:
    signed, from_top = "U32" not in form.given, "SH" in form.given

    def compute(r: Registers) -> Results:
        word = fit(read(r), 32)
        array = to_array(word if signed else as_unsigned(word, 32))
        array = np.where(array < 0, ~array, array)
        found = highest_bit(array)
        if from_top:
            found = np.where(found < 0, -1, 31 - found)
        return from_array(found), from_bools(array != 0)

    return compute


@computes("POPC UPOPC", "W <- W")
def count_ones(given: frozenset[str], word: Int) -> Int:
    return from_array(np.bitwise_count(to_array(as_unsigned(word, 32))).astype(np.int64))


#: Pieces of a word that change places: their bits, and the lower one of each two.
_HALVES = ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0x0000FFFF))


@computes("BREV UBREV", "W <- W")
def reverse(given: frozenset[str], word: Int) -> Int:
    found = to_array(as_unsigned(word, 32))
    for size, lower in _HALVES:
        found = (found & lower) << size | found >> size & lower
    return from_array(found)


@computes("BMSK UBMSK", "W <- WW", "W C")
def mask(given: frozenset[str], start: Int, length: Int) -> Int:
    at, count = (np.atleast_2d(shift_amount(word, 32, "W" in given)) for word in (start, length))
    return from_array(((1 << count) - 1) << at)


@computes("SGXT USGXT", "W <- WW", "U32 W")
def extend(given: frozenset[str], word: Int, count: Int) -> Int:
    """The low `count` bits, sign- or zero-extended."""
    signed, bits = "U32" not in given, shift_amount(count, 32, "W" in given)
    if not isinstance(bits, int):
        low = to_array(word) & ((1 << bits) - 1)
        sign = np.where(bits > 0, 1 << np.maximum(bits - 1, 0), 0)
        return from_array((low ^ sign) - sign if signed else low)
    if not signed or not bits:
        return low_bits(word, bits)
    return shift_right(shift_left(word, 32 - bits, 32), 32 - bits, True, 32)
