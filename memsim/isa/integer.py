"""Integer arithmetic: `IADD3 IMAD LEA VIADD IABS VIMNMX ISETP IDP SGXT` and their uniform twins.

In: words as registers hold them. Out: the same. Sums of a block's and a thread's part stay such
(`memsim.state.sums`), carries included wherever bounds decide them.
Source of what each instruction does: compiled CUDA code, run on an H100 and an H200 (docs/model.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from memsim.isa.op import Form, Immediate, Operand, Predicate, Register
from memsim.isa.readers import Binder, IntReader, PredicateReader, halved
from memsim.isa.registry import Compute, Unsupported, opcode
from memsim.state.registers import (
    Part,
    both,
    bounds,
    either,
    fit,
    from_array,
    from_bools,
    invert,
    plus,
    times,
    to_array,
    to_bools,
    unsigned,
)
from memsim.state.sums import Int, low_bits, product, shift_left, shift_right

Registers = list[Any]
WORD = 1 << 32


def known(form: Form, *modifiers: str) -> frozenset[str]:
    """The form's modifiers; all of them have to be among these."""
    found = frozenset(form.modifiers)
    if not found <= set(modifiers):
        raise Unsupported(form.name)
    return found


def parted(form: Form) -> tuple[list[Operand], list[Operand]]:
    """(predicates that are written behind or before the register, the operands that are read)."""
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
    """`value >= bound`, decided by bounds where they can."""
    low, high = bounds(value)
    if low >= bound:
        return True
    if high < bound:
        return False
    return from_bools(to_array(value) >= bound)


# --- sums -----------------------------------------------------------------------------------


def _sum_widths(form: Form) -> dict[int, int]:
    return dict.fromkeys(range(len(form.operands)), 2) if "64" in form.modifiers else {}


@opcode("IADD3", "UIADD3", results="RP?P?", widths=_sum_widths)
def build_iadd3(form: Form, binder: Binder) -> Compute:
    given = known(form, "X", "64")
    extended = "X" in given
    carries, operands = parted(form)
    sources, carried = operands[:3], operands[3:]
    if "64" in given:
        if extended or carries or carried or len(sources) != 3:
            raise Unsupported(form.name)
        pairs = [binder.pair(source) for source in sources]
        return lambda r: halved(plus(plus(pairs[0](r), pairs[1](r)), pairs[2](r)))
    if len(sources) != 3 or any(isinstance(source, Predicate) for source in sources):
        raise Unsupported(form.name)
    if not carries and not carried:
        a, b, c = (binder.word(source) for source in sources)
        return lambda r: fit(plus(plus(a(r), b(r)), c(r)), 32)
    ins = [binder.predicate(operand) for operand in carried] if extended else []
    words = [carry_word(binder, source, extended) for source in sources]
    signed = [binder.word(source) for source in sources]

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
    """A source of a sum that gives a carry: -R is ~R + 1, each in its unsigned reading."""
    if isinstance(operand, Register) and operand.negated and not extended:
        read = binder.word(Register(operand.slot, part=operand.part))
        return lambda r: plus(times(unsigned(read(r), 32), -1), WORD)  # (2**32 - 1 - R) + 1
    return binder.unsigned_word(operand)


@opcode("VIADD")
def build_viadd(form: Form, binder: Binder) -> Compute:
    given = known(form, "16x2")
    if given:
        return add_pairs(form, binder)
    a, b = (binder.word(source) for source in form.operands[1:3])
    return lambda r: fit(plus(a(r), b(r)), 32)


def add_pairs(form: Form, binder: Binder) -> Compute:
    """Two 16-bit sums; a negated operand is subtracted in each half."""
    signs = [-1 if getattr(operand, "negated", False) else 1 for operand in form.operands[1:3]]
    sources = [
        binder.word(replace(o, negated=False) if isinstance(o, Register) else o) for o in form.operands[1:3]
    ]

    def compute(r: Registers) -> Int:
        x, y = (fields(fit(read(r), 32), False, 16) for read in sources)
        low, high = ((signs[0] * p + signs[1] * q) & 0xFFFF for p, q in zip(x, y))
        return fit(from_array(low | (high << 16)), 32)

    return compute


@opcode("VIADDMNMX")
def build_add_min_max(form: Form, binder: Binder) -> Compute:
    given = known(form, "U32", "RELU", "S16x2", "U16x2")
    a, b, c = (binder.word(source) for source in form.operands[1:4])
    smaller = binder.predicate(form.operands[4])
    signed, relu = "U32" not in given, "RELU" in given
    if given & {"S16x2", "U16x2"}:
        return on_pairs(form, a, b, smaller, c)

    def compute(r: Registers) -> Int:
        total = fit(plus(a(r), b(r)), 32)
        found = pick_lesser(total, fit(c(r), 32), smaller(r), signed)
        return pick_lesser(found, 0, False, True) if relu else found

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
    carries, operands = parted(form)
    a, b, c, *carried = operands
    if isinstance(c, Predicate):
        raise Unsupported(form.name)
    signed = "U32" not in given
    carry_in = [binder.predicate(operand) for operand in carried]
    if "WIDE" in given or "HI" in given:
        return wide_product(form, binder, signed, carries, carry_in)
    if carries:
        raise Unsupported(form.name)
    if isinstance(a, Register) and a.slot is None and not carry_in and not a.inverted:
        only = binder.word(c)  # IMAD.MOV: a move
        return lambda r: fit(only(r), 32)
    x, y, z = binder.word(a), binder.word(b), binder.word(c)
    if carry_in:
        carry = carry_in[0]
        return lambda r: fit(plus(plus(product(x(r), y(r)), z(r)), as_int(carry(r))), 32)
    if isinstance(b, Immediate) and b.value == 1:
        return lambda r: fit(plus(x(r), z(r)), 32)
    return lambda r: fit(plus(narrow_product(x(r), y(r)), z(r)), 32)


def narrow_product(x: Int, y: Int) -> Int:
    """A product of which only the low 32 bits count."""
    return product(x, y)


def wide_product(
    form: Form, binder: Binder, signed: bool, carries: Sequence[Operand], carry_in: Sequence[PredicateReader]
) -> Compute:
    """`a * b + c` in 64 bits: all of it, or its high word."""
    _, (a, b, c, *_) = parted(form)
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
    """Whether the unsigned 64-bit sum of three goes beyond 64 bits."""
    if bounds(a)[0] >= 0 and bounds(b)[0] >= 0:
        return False
    x, y = (to_array(value).astype(np.uint64, copy=False).view(np.uint64) for value in (a, b))
    total = x + y
    first = total < x
    second = total + to_array(c).astype(np.uint64) < total
    return from_bools(first | second)


# --- scaled sums ----------------------------------------------------------------------------


@opcode("LEA", "ULEA", results="RP?")
def build_lea(form: Form, binder: Binder) -> Compute:
    given = known(form, "HI", "X", "SX32")
    carries, operands = parted(form)
    if "HI" in given:
        return high_lea(form, binder, carries, operands)
    a, b, shift, *carried = operands
    amount = binder.literal(shift) & 31
    if carried and "X" in given:
        raise Unsupported(form.name)
    x, y = binder.word(a), binder.word(b)
    if not carries:
        return lambda r: fit(plus(times(x(r), 1 << amount), y(r)), 32)
    u, v = binder.unsigned_word(a), carry_word(binder, b, False)

    def compute(r: Registers) -> Any:
        result = fit(plus(times(x(r), 1 << amount), y(r)), 32)
        shifted = unsigned(fit(times(u(r), 1 << amount), 32), 32)
        return result, at_least(plus(shifted, v(r)), WORD)

    return compute


def high_lea(form: Form, binder: Binder, carries: list[Operand], operands: list[Operand]) -> Compute:
    """The high word of `{c, a} << n`, plus b and a carry; `.SX32`: c is the sign of a."""
    carried = [operand for operand in operands if isinstance(operand, Predicate)]
    sources = [operand for operand in operands if not isinstance(operand, Predicate)]
    extends = "SX32" in form.modifiers
    if len(sources) != (3 if extends else 4) or len(carries) > 1:
        raise Unsupported(form.name)
    amount = binder.literal(sources[-1]) & 31
    low, added = binder.word(sources[0]), binder.word(sources[1])
    whole = carry_word(binder, sources[1], "X" in form.modifiers)
    upper = None if extends else binder.word(sources[2])
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


# --- order ----------------------------------------------------------------------------------


def pick_lesser(a: Int, b: Int, smaller: bool | Part, signed: bool) -> Int:
    """The smaller of two words where `smaller` holds, else the larger."""
    x, y = (a, b) if signed else (unsigned(a, 32), unsigned(b, 32))
    (x_low, x_high), (y_low, y_high) = bounds(x), bounds(y)
    if isinstance(smaller, bool):
        if x_high <= y_low:
            return a if smaller else b
        if y_high <= x_low:
            return b if smaller else a
    p, q = to_array(x), to_array(y)
    least, most = np.minimum(p, q), np.maximum(p, q)
    return fit(from_array(np.where(to_bools(smaller), least, most)), 32)


@opcode("VIMNMX", "IMNMX", "UIMNMX", "UVIMNMX", results="RP?P?")
def build_min_max(form: Form, binder: Binder) -> Compute:
    given = known(form, "U32", "S32", "RELU", "S16x2", "U16x2")
    written, operands = parted(form)
    a, b = (binder.word(source) for source in operands[:2])
    smaller = binder.predicate(operands[2])
    signed, relu = "U32" not in given, "RELU" in given
    if given & {"S16x2", "U16x2"}:
        return on_pairs(form, a, b, smaller, asked=len(written))
    if written:
        raise Unsupported(form.name)

    def compute(r: Registers) -> Int:
        found = pick_lesser(fit(a(r), 32), fit(b(r), 32), smaller(r), signed)
        return pick_lesser(found, 0, False, True) if relu else found

    return compute


@opcode("VIMNMX3")
def build_min_max_3(form: Form, binder: Binder) -> Compute:
    given = known(form, "U32", "RELU", "S16x2", "U16x2")
    a, b, c = (binder.word(source) for source in form.operands[1:4])
    smaller = binder.predicate(form.operands[4])
    signed, relu = "U32" not in given, "RELU" in given
    if given & {"S16x2", "U16x2"}:
        return on_pairs(form, a, b, smaller, c, adds=False)

    def compute(r: Registers) -> Int:
        least = smaller(r)
        found = pick_lesser(
            pick_lesser(fit(a(r), 32), fit(b(r), 32), least, signed), fit(c(r), 32), least, signed
        )
        return pick_lesser(found, 0, False, True) if relu else found

    return compute


def on_pairs(
    form: Form,
    a: IntReader,
    b: IntReader,
    smaller: PredicateReader,
    c: IntReader | None = None,
    adds: bool = True,
    asked: int = 0,
) -> Compute:
    """Minimum or maximum of two 16-bit numbers in a word; of a + b and c, or of all three where it does not
    add.

    asked: of how many halves, the lower first, it also tells whether a was picked.
    """
    signed, relu = "S16x2" in form.modifiers, "RELU" in form.modifiers

    def compute(r: Registers) -> Any:
        least = to_bools(smaller(r))
        words = [fields(fit(read(r), 32), signed, 16) for read in (a, b) if read is not None]
        third = fields(fit(c(r), 32), signed, 16) if c is not None else [None, None]
        found, first = [], []
        for x, y, z in zip(*words, third):
            if z is not None and adds:
                x, y = wrapped(x + y, signed), z
            picked = np.where(least, np.minimum(x, y), np.maximum(x, y))
            first.append(from_bools(np.where(least, x <= y, x >= y)))
            if z is not None and not adds:
                picked = np.where(least, np.minimum(picked, z), np.maximum(picked, z))
            found.append((np.maximum(picked, 0) if relu else picked) & 0xFFFF)
        value = fit(from_array(found[0] | (found[1] << 16)), 32)
        return (value, *first[:asked]) if asked else value

    return compute


def wrapped(array: np.ndarray, signed: bool) -> np.ndarray:
    """Modulo 2**16."""
    return ((array + 0x8000) & 0xFFFF) - 0x8000 if signed else array & 0xFFFF


@opcode("IABS")
def build_abs(form: Form, binder: Binder) -> Compute:
    known(form)
    a = binder.word(form.operands[1])

    def compute(r: Registers) -> Int:
        x = fit(a(r), 32)
        low, high = bounds(x)
        if low >= 0:
            return x
        if high <= 0:
            return fit(times(x, -1), 32)
        return fit(from_array(np.abs(to_array(x))), 32)

    return compute


_COMPARE: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "EQ": np.equal,
    "NE": np.not_equal,
}


def compare(a: Int, b: Int, how: str) -> bool | Part:
    """`a how b`, decided by bounds where they can."""
    if how == "F":
        return False
    if how == "T":
        return True
    if how in ("GT", "GE"):
        a, b, how = b, a, {"GT": "LT", "GE": "LE"}[how]
    (a_low, a_high), (b_low, b_high) = bounds(a), bounds(b)
    if how == "LT" and (a_high < b_low or a_low >= b_high):
        return a_high < b_low
    if how == "LE" and (a_high <= b_low or a_low > b_high):
        return a_high <= b_low
    if how in ("EQ", "NE"):
        if a_high < b_low or b_high < a_low:
            return how == "NE"
        if a_low == a_high == b_low == b_high:
            return how == "EQ"
    return from_bools(_COMPARE[how](to_array(a), to_array(b)))


COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "AND": both,
    "OR": either,
    "XOR": lambda a, b: either(both(a, invert(b)), both(invert(a), b)),
}


class Combined:
    """A comparison combined with a predicate, which alone decides in some lanes."""

    def __init__(self, name: str, other: Any, compute: Compute) -> None:
        self.name = name
        self.other = other
        self.compute = compute

    def __call__(self, r: Registers) -> Any:
        return self.compute(r)

    def decided(self, r: Registers) -> tuple[bool | Part, bool]:
        """(lanes in which the results do not depend on the comparison, what both are there).

        Raises:
            Poisoned: the predicate is not known.
        """
        if self.name == "OR":
            return self.other(r), True
        return invert(self.other(r)) if self.name == "AND" else False, False


@opcode("ISETP", "UISETP", results="PP")
def build_isetp(form: Form, binder: Binder) -> Compute:
    how, *rest = form.modifiers
    given = set(rest)
    name = next((name for name in rest if name in COMBINE), "")
    if how not in {*_COMPARE, "F", "T"} or not name or given - {"U32", "EX", *COMBINE}:
        raise Unsupported(form.name)
    combine = COMBINE[name]
    a, b, joined, *lower = form.operands[2:]
    read = binder.unsigned_word if "U32" in given else binder.word
    x, y, other = read(a), read(b), binder.predicate(joined)
    below = binder.predicate(lower[0]) if "EX" in given else None

    def compute(r: Registers) -> Any:
        p, q, added = x(r), y(r), other(r)
        found = compare(p, q, how)
        if below is not None:
            found = extended(p, q, how, found, below(r))
        return combine(found, added), combine(invert(found), added)

    return Combined(name, other, compute)


def extended(p: Int, q: Int, how: str, found: bool | Part, below: bool | Part) -> bool | Part:
    """A comparison of high words, with what that of the low words gave."""
    if how == "EQ":
        return both(found, below)
    if how == "NE":
        return either(found, below)
    strict = compare(p, q, {"LE": "LT", "GE": "GT"}.get(how, how))
    return either(strict, both(compare(p, q, "EQ"), below))


# --- pieces ---------------------------------------------------------------------------------


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


def fields(value: Int, signed: bool, size: int) -> list[np.ndarray]:
    """The numbers in a word, the lowest first."""
    array = to_array(value)
    picked = [(array >> shift) & ((1 << size) - 1) for shift in range(0, 32, size)]
    sign = 1 << (size - 1)
    return [(field ^ sign) - sign if signed else field for field in picked]
