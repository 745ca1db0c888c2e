"""Integer arithmetic: `IADD3 IMAD LEA VIADD IABS` and their uniform forms.

Sums keep their block and thread parts (`memsim.state.sums`), including carries that bounds decide. Semantics:
compiled CUDA code, run on an H100 and an H200 (docs/model.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from memsim.isa.op import Form, Immediate, Operand, Predicate, Register
from memsim.isa.pairs import halved
from memsim.isa.readers import Binder, IntReader, PredicateReader, Registers, sources
from memsim.isa.registry import Compute, Unsupported, known, opcode, require
from memsim.isa.words import fields, packed, word_opcode
from memsim.state.parts import Part
from memsim.state.predicates import from_bools
from memsim.state.registers import bounds, fit, from_array, plus, times, to_array, unsigned
from memsim.state.sums import Int, product, shift_right

WORD = 1 << 32


def split_operands(form: Form) -> tuple[list[Operand], list[Operand]]:
    """(destination predicates next to the destination register, source operands)."""
    operands = list(form.operands)
    written: list[Operand] = []
    if isinstance(operands[0], Predicate):
        written.append(operands.pop(0))
        operands.pop(0)
        return written, operands
    operands.pop(0)
    while operands and isinstance(operands[0], Predicate):
        written.append(operands.pop(0))
    return written, operands


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


def _sum_widths(form: Form) -> dict[int, int]:
    return dict.fromkeys(range(len(form.operands)), 2) if "64" in form.modifiers else {}


@opcode("IADD", "UIADD", widths=_sum_widths)
def build_iadd(form: Form, binder: Binder) -> Compute:
    """With 64 bits, from sm_120 on."""
    require(form.modifiers == ("64",) and len(form.operands) == 3)
    for source in form.operands[1:]:
        if isinstance(source, Immediate) and not (
            isinstance(source.value, int) and -(1 << 31) <= source.value < 1 << 31
        ):
            raise Unsupported  # whether such a number is sign-extended is unknown
    a, b = (binder.pair(source) for source in form.operands[1:])
    return lambda r: halved(plus(a(r), b(r)))


@opcode("IADD3", "UIADD3", results="RP?P?", widths=_sum_widths)
def build_iadd3(form: Form, binder: Binder) -> Compute:
    given = known(form, "X", "64")
    extended = "X" in given
    carries, operands = split_operands(form)
    addends, carried = operands[:3], operands[3:]
    if "64" in given:
        unused = [isinstance(carry, Predicate) and carry.slot is None for carry in carries]
        require(not extended and all(unused) and not carried and len(addends) == 3)
        pairs = [binder.pair(source) for source in addends]
        return lambda r: (*halved(plus(plus(pairs[0](r), pairs[1](r)), pairs[2](r))), *unused)
    require(len(addends) == 3 and not any(isinstance(source, Predicate) for source in addends))
    if not carries and not carried:
        a, b, c = (binder.word(source) for source in addends)
        return lambda r: fit(plus(plus(a(r), b(r)), c(r)), 32)
    ins = [binder.predicate(operand) for operand in carried] if extended else []
    words = [carry_word(binder, source, extended) for source in addends]
    signed = [binder.word(source) for source in addends]

    def compute(r: Registers) -> Any:
        extra: Int = 0
        for read in ins:
            extra = plus(extra, as_int(read(r)))
        total = extra
        for word in signed:
            total = plus(total, word(r))
        result = fit(total, 32)
        if not carries:
            return result
        whole = extra
        for word in words:
            whole = plus(whole, word(r))
        return (result, *(at_least(whole, (number + 1) * WORD) for number in range(len(carries))))

    return compute


def carry_word(binder: Binder, operand: Operand, extended: bool) -> Callable[[Registers], Int]:
    """A source of a sum with carry out: -R is ~R + 1, each as unsigned."""
    if isinstance(operand, Register) and operand.negated and not extended:
        read = binder.word(Register(operand.slot, part=operand.part))
        return lambda r: plus(times(unsigned(read(r), 32), -1), WORD)  # (2**32 - 1 - R) + 1
    return binder.unsigned_word(operand)


@opcode("VIADD")
def build_viadd(form: Form, binder: Binder) -> Compute:
    if known(form, "16x2", "U8x4"):
        return add_pieces(form, binder)
    a, b = sources(binder.word, form, 2)
    return lambda r: fit(plus(a(r), b(r)), 32)


def add_pieces(form: Form, binder: Binder) -> Compute:
    """Sums of two halves or of four bytes; a negated operand is subtracted in each of them."""
    require(len(form.modifiers) == 1)
    size = 16 if "16x2" in form.modifiers else 8

    def reader(operand: Operand) -> IntReader:
        return binder.word(replace(operand, negated=False) if isinstance(operand, Register) else operand)

    reads = sources(reader, form, 2)
    signs = [-1 if getattr(operand, "negated", False) else 1 for operand in form.operands[1:3]]

    def compute(r: Registers) -> Int:
        x, y = (fields(read(r), False, size) for read in reads)
        return packed([signs[0] * p + signs[1] * q for p, q in zip(x, y)], size)

    return compute


def _product_widths(form: Form) -> dict[int, int]:
    """IMAD.WIDE writes a pair and adds one; IMAD.HI adds one."""
    wide, high = "WIDE" in form.modifiers, "HI" in form.modifiers
    if not (wide or high):
        return {}
    position = 1
    while isinstance(form.operands[position], Predicate):
        position += 1
    return {0: 2 if wide else 1, position + 2: 2}


@opcode("IMAD", "UIMAD", results="RP?", widths=_product_widths)
def build_imad(form: Form, binder: Binder) -> Compute:
    given = known(form, "MOV", "U32", "SHL", "IADD", "X", "WIDE", "HI")
    carries, operands = split_operands(form)
    a, b, c, *carried = operands
    require(not isinstance(c, Predicate))
    signed = "U32" not in given
    carry_in = [binder.predicate(operand) for operand in carried]
    if "WIDE" in given or "HI" in given:
        return wide_product(form, binder, signed, carries, carry_in)
    require(not carries)
    if isinstance(a, Register) and a.slot is None and not carry_in and not a.inverted:
        only = binder.word(c)  # IMAD.MOV: a move
        return lambda r: fit(only(r), 32)
    x, y, z = binder.word(a), binder.word(b), binder.word(c)
    if carry_in:
        carry = carry_in[0]
        return lambda r: fit(plus(plus(product(x(r), y(r)), z(r)), as_int(carry(r))), 32)
    if isinstance(b, Immediate) and b.value == 1:
        return lambda r: fit(plus(x(r), z(r)), 32)
    return lambda r: fit(plus(product(x(r), y(r)), z(r)), 32)


def wide_product(
    form: Form, binder: Binder, signed: bool, carries: Sequence[Operand], carry_in: Sequence[PredicateReader]
) -> Compute:
    """`a * b + c` in 64 bits: all of it, or its high word."""
    _, (a, b, c, *_) = split_operands(form)
    high_only = "HI" in form.modifiers
    x, y = (binder.word(operand) if signed else binder.unsigned_word(operand) for operand in (a, b))
    z = binder.pair(c, signed)

    def compute(r: Registers) -> Any:
        times_both = product(x(r), y(r))
        added = z(r)
        extra = as_int(carry_in[0](r)) if carry_in else 0
        total = plus(plus(times_both, added), extra)
        low, high = halved(total)
        words = (high,) if high_only else (low, high)
        if carries:
            return *words, carry_of_64(fit(times_both, 64), fit(added, 64), extra)
        return high if high_only else words

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


@opcode("LEA", "ULEA", results="RP?")
def build_lea(form: Form, binder: Binder) -> Compute:
    given = known(form, "HI", "X", "SX32")
    carries, operands = split_operands(form)
    if "HI" in given:
        return high_lea(form, binder, carries, operands)
    a, b, shift, *carried = operands
    amount = binder.literal(shift) & 31
    require(not carried or "X" not in given)
    x, y = binder.word(a), binder.word(b)
    if not carries:
        return lambda r: fit(plus(times(x(r), 1 << amount), y(r)), 32)
    negated = isinstance(a, Register) and a.negated
    plain = Register(a.slot, part=a.part) if isinstance(a, Register) and negated else a
    u, v = binder.word(plain), carry_word(binder, b, False)

    def compute(r: Registers) -> Any:
        result = fit(plus(times(x(r), 1 << amount), y(r)), 32)
        shifted = unsigned(fit(times(u(r), 1 << amount), 32), 32)
        if negated:  # of the shifted number: ~ and 1, as in a sum
            shifted = plus(times(shifted, -1), WORD)
        return result, at_least(plus(shifted, v(r)), WORD)

    return compute


def high_lea(form: Form, binder: Binder, carries: list[Operand], operands: list[Operand]) -> Compute:
    """The high word of `{c, a} << n`, plus b and a carry; `.SX32`: c is the sign of a."""
    carried = [operand for operand in operands if isinstance(operand, Predicate)]
    words = [operand for operand in operands if not isinstance(operand, Predicate)]
    extends = "SX32" in form.modifiers
    require(len(words) == (3 if extends else 4) and len(carries) <= 1)
    amount = binder.literal(words[-1]) & 31
    low, added = binder.word(words[0]), binder.word(words[1])
    whole = carry_word(binder, words[1], "X" in form.modifiers)
    upper = None if extends else binder.word(words[2])
    carry = binder.predicate(carried[0]) if carried and "X" in form.modifiers else None  # only .X reads it

    def shifted(r: Registers) -> Int:
        low_word = fit(low(r), 32)
        if upper is None:
            return shift_right(low_word, 32 - amount if amount else 31, True, 32)
        if amount == 0:
            return upper(r)
        return plus(times(upper(r), 1 << amount), shift_right(unsigned(low_word, 32), 32 - amount, False, 32))

    def compute(r: Registers) -> Any:
        high = shifted(r)
        extra = as_int(carry(r)) if carry is not None else 0
        result = fit(plus(plus(high, added(r)), extra), 32)
        if not carries:
            return result
        total = plus(plus(unsigned(fit(high, 32), 32), whole(r)), extra)
        return result, at_least(total, WORD)

    return compute


@word_opcode("IABS", count=1)
def absolute(given: frozenset[str], x: Int) -> Int:
    low, high = bounds(x)
    if low >= 0:
        return x
    return times(x, -1) if high <= 0 else from_array(np.abs(to_array(x)))
