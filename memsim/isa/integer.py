"""Integer arithmetic: `IADD3 IMAD LEA VIADD IABS` and their uniform forms; `IDP VABSDIFF VABSDIFF4`.

Sums keep their block and thread parts (`memsim.state.sums`), including carries that bounds decide. Semantics:
compiled CUDA code, run on an H100 and an H200 (docs/model.md).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from memsim.isa.definitions import BoundForm, Compute, Results, computes, executes
from memsim.isa.number_formats import fields, pack_fields, readings, split_words
from memsim.isa.op import Constant, Immediate, Operand, Register, Trait, require
from memsim.isa.readers import Binder, IntReader, PredicateReader, Registers
from memsim.state.parts import Part
from memsim.state.predicates import from_bools
from memsim.state.registers import as_unsigned, bounds, fit, from_array, plus, times, to_array
from memsim.state.sums import Int, product, shift_right

WORD = 1 << 32
_ADDS = {"": Trait.ADDS}


def as_int(condition: bool | Part) -> Int:
    """1 where it holds, else 0."""
    return from_array(condition.array.astype(np.int64)) if isinstance(condition, Part) else int(condition)


def at_least(value: Int, bound: int) -> bool | Part:
    """`value >= bound`, decided by bounds if possible."""
    low, high = bounds(value)
    if low >= bound:
        return True
    if high < bound:
        return False
    return from_bools(to_array(value) >= bound)


@executes("IADD.64 UIADD.64", "D <- DD", traits=_ADDS)
def sum_of_pairs(form: BoundForm, a: IntReader, b: IntReader) -> Compute:
    """From sm_120 on."""
    for source in form.sources:
        if isinstance(source, Immediate):  # whether a larger one is sign-extended is unknown
            require(isinstance(source.value, int) and -(1 << 31) <= source.value < 1 << 31)
    return lambda r: split_words(plus(a(r), b(r)))


@executes("IADD3.64 UIADD3.64", "D P?P? <- DDD")
def sum_of_three_pairs(form: BoundForm, a: IntReader, b: IntReader, c: IntReader) -> Compute:
    """Its carries are written in no known kernel."""
    require(all(getattr(carry, "slot", None) is None for carry in form.results[1:]))
    return lambda r: (*split_words(plus(plus(a(r), b(r)), c(r))), True, True)


@executes("IADD3 UIADD3", "W <- WWW", "X", traits=_ADDS)
def sum_of_three(form: BoundForm, a: IntReader, b: IntReader, c: IntReader) -> Compute:
    return lambda r: fit(plus(plus(a(r), b(r)), c(r)), 32)


@executes("IADD3 UIADD3", "W <- WWW PP?", traits=_ADDS)
@executes("IADD3 UIADD3", "W P <- WWW P?P?", traits=_ADDS)
@executes("IADD3 UIADD3", "W PP <- WWW P?P?", traits=_ADDS)
@executes("IADD3.X UIADD3.X", "W <- WWW PP?", traits=_ADDS)
@executes("IADD3.X UIADD3.X", "W P <- WWW P?P?", traits=_ADDS)
@executes("IADD3.X UIADD3.X", "W PP <- WWW P?P?", traits=_ADDS)
def sum_with_carries(
    form: BoundForm, a: IntReader, b: IntReader, c: IntReader, *carries: PredicateReader | None
) -> Compute:
    """Only `.X` reads predicates; the first that is written is whether the sum has 33 bits, the other 34."""
    extended = "X" in form.given
    ins = [read for read in carries if read is not None and extended]
    words = [carry_word(form.binder, operand, extended) for operand in form.sources[:3]]
    written = len(form.results) - 1

    def compute(r: Registers) -> Results:
        extra: Int = 0
        for read in ins:
            extra = plus(extra, as_int(read(r)))
        total = extra
        for word in (a, b, c):
            total = plus(total, word(r))
        result = fit(total, 32)
        if not written:
            return result
        whole = extra
        for word in words:
            whole = plus(whole, word(r))
        return (result, *(at_least(whole, (number + 1) * WORD) for number in range(written)))

    return compute


def carry_word(binder: Binder, operand: Operand | None, extended: bool) -> IntReader:
    """A source of a sum with carry out: -R is ~R + 1, each as unsigned."""
    if isinstance(operand, (Register, Constant)) and operand.negated and not extended:
        read = binder.word(replace(operand, negated=False))
        return lambda r: plus(times(as_unsigned(read(r), 32), -1), WORD)  # (2**32 - 1 - R) + 1
    assert operand is not None
    return binder.unsigned_word(operand)


@executes("VIADD", "W <- WW", traits=_ADDS)
def sum_of_two(form: BoundForm, a: IntReader, b: IntReader) -> Compute:
    return lambda r: fit(plus(a(r), b(r)), 32)


@executes("VIADD.16x2 VIADD.U8x4", "W <- VV")
def sum_of_pieces(form: BoundForm, *operands: Operand) -> Compute:
    """Sums of two halves or of four bytes; a negated operand is subtracted in each of them."""
    size = 16 if "16x2" in form.given else 8
    plain = [
        replace(one, negated=False) if isinstance(one, (Register, Constant)) else one for one in operands
    ]
    reads = [form.binder.word(operand) for operand in plain]
    signs = [-1 if getattr(operand, "negated", False) else 1 for operand in operands]

    def compute(r: Registers) -> Int:
        x, y = (fields(read(r), False, size) for read in reads)
        return pack_fields([signs[0] * p + signs[1] * q for p, q in zip(x, y)], size)

    return compute


@executes(
    "IMAD UIMAD", "W <- WWW", "MOV U32 SHL IADD X", traits={"MOV": Trait.MOVES, "SHL": Trait.MOVES_BITS}
)
def multiply_add(form: BoundForm, x: IntReader, y: IntReader, z: IntReader) -> Compute:
    a, b, _ = form.sources
    if isinstance(a, Register) and a.slot is None and not a.inverted:  # IMAD.MOV: a move
        return lambda r: fit(z(r), 32)
    if isinstance(b, Immediate) and b.value == 1:
        return lambda r: fit(plus(x(r), z(r)), 32)
    return lambda r: fit(plus(product(x(r), y(r)), z(r)), 32)


@executes("IMAD UIMAD", "W <- WWW P", "MOV U32 SHL IADD X")
def multiply_add_carry(
    form: BoundForm, x: IntReader, y: IntReader, z: IntReader, carry: PredicateReader
) -> Compute:
    return lambda r: fit(plus(plus(product(x(r), y(r)), z(r)), as_int(carry(r))), 32)


@executes("IMAD.WIDE UIMAD.WIDE", "D P? <- WWD P?", "X")
@executes("IMAD.WIDE.U32 UIMAD.WIDE.U32", "D P? <- UUE P?", "X")
@executes("IMAD.HI UIMAD.HI", "W P? <- WWD P?", "X")
@executes("IMAD.HI.U32 UIMAD.HI.U32", "W P? <- UUE P?", "X")
def wide_product(
    form: BoundForm, x: IntReader, y: IntReader, z: IntReader, carry_in: PredicateReader | None
) -> Compute:
    """`a * b + c` in 64 bits: all of it, or its high word."""
    high_only, carries = "HI" in form.given, form.results[1] is not None

    def compute(r: Registers) -> Results:
        times_both = product(x(r), y(r))
        added = z(r)
        extra = as_int(carry_in(r)) if carry_in is not None else 0
        low, high = split_words(plus(plus(times_both, added), extra))
        carry = carries and carry_of_64(fit(times_both, 64), fit(added, 64), extra)
        return (high, carry) if high_only else (low, high, carry)

    return compute


def carry_of_64(a: Int, b: Int, c: Int) -> bool | Part:
    """Whether the unsigned sum of three overflows 64 bits."""
    if bounds(a)[0] >= 0 and bounds(b)[0] >= 0:
        return False
    x, y = (to_array(value).astype(np.uint64, copy=False).view(np.uint64) for value in (a, b))
    total = x + y
    first = total < x
    second = total + to_array(c).astype(np.uint64) < total
    return from_bools(first | second)


@executes("LEA ULEA", "W <- WWI P?", "SX32")
@executes("LEA.X ULEA.X", "W <- WWI P")
def shifted_sum(
    form: BoundForm, x: IntReader, y: IntReader, shift: int, carry: PredicateReader | None
) -> Compute:
    """Only `.X` reads the predicate, the carry of a sum of lower words of which the first is 0."""
    factor = 1 << (shift & 31)
    if carry is None or "X" not in form.given:
        return lambda r: fit(plus(times(x(r), factor), y(r)), 32)
    return lambda r: fit(plus(plus(times(x(r), factor), y(r)), as_int(carry(r))), 32)


@executes("LEA ULEA", "W P <- WWI P?", "SX32")
def shifted_sum_with_carry(form: BoundForm, x: IntReader, y: IntReader, shift: int, _: object) -> Compute:
    a, b, _ = form.sources[:3]
    factor, negated = 1 << (shift & 31), isinstance(a, Register) and a.negated
    plain = form.binder.word(replace(a, negated=False)) if isinstance(a, Register) and negated else x
    added = carry_word(form.binder, b, False)

    def compute(r: Registers) -> Results:
        result = fit(plus(times(x(r), factor), y(r)), 32)
        shifted = as_unsigned(fit(times(plain(r), factor), 32), 32)
        if negated:  # of the shifted number: ~ and 1, as in a sum
            shifted = plus(times(shifted, -1), WORD)
        return result, at_least(plus(shifted, added(r)), WORD)

    return compute


@executes("LEA.HI ULEA.HI", "W P? <- WWWI P?", "X")
def high_shifted_sum(
    form: BoundForm,
    low: IntReader,
    added: IntReader,
    upper: IntReader | None,
    shift: int,
    carry: PredicateReader | None,
) -> Compute:
    """The high word of `{c, a} << n`, plus b and a carry; `.SX32`: c is the sign of a."""
    amount, carries = shift & 31, form.results[1] is not None
    whole = carry_word(form.binder, form.sources[1], "X" in form.given)
    carried = carry if "X" in form.given else None  # only .X reads it

    def shifted(r: Registers) -> Int:
        low_word = fit(low(r), 32)
        if upper is None:
            return shift_right(low_word, 32 - amount if amount else 31, True, 32)
        if amount == 0:
            return upper(r)
        return plus(
            times(upper(r), 1 << amount), shift_right(as_unsigned(low_word, 32), 32 - amount, False, 32)
        )

    def compute(r: Registers) -> Results:
        high = shifted(r)
        extra = as_int(carried(r)) if carried is not None else 0
        result = fit(plus(plus(high, added(r)), extra), 32)
        if not carries:
            return result, False
        total = plus(plus(as_unsigned(fit(high, 32), 32), whole(r)), extra)
        return result, at_least(total, WORD)

    return compute


@executes("LEA.HI.SX32 ULEA.HI.SX32", "W P? <- WWI P?", "X")
def high_sum_of_sign(
    form: BoundForm, low: IntReader, added: IntReader, shift: int, carry: PredicateReader | None
) -> Compute:
    return high_shifted_sum(form, low, added, None, shift, carry)


@computes("IABS", "W <- W")
def absolute(given: frozenset[str], x: Int) -> Int:
    low, high = bounds(x)
    if low >= 0:
        return x
    return times(x, -1) if high <= 0 else from_array(np.abs(to_array(x)))


# --- integers of 8 and 16 bits ---------------------------------------------------------------


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
    return plus(total(found), c) if "ACC" in given else pack_fields(found, 8)
