"""Logic, shifts, selection and moves: `LOP3 PLOP3 SHF PRMT SEL MOV P2R R2P FLO POPC BREV BMSK`.

In: words and predicates as registers hold them. Out: the same.
Source of what each instruction does: compiled CUDA code, run on an H100 and an H200 (docs/model.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.isa.integer import as_int, known
from memsim.isa.op import PREDICATE, UNIFORM_PREDICATE, Form, Immediate, Operand, Predicate, Register
from memsim.isa.readers import Binder, IntReader
from memsim.isa.registry import Compute, Unsupported, opcode
from memsim.state.partial import or_zero
from memsim.state.registers import (
    Part,
    both,
    bounds,
    choose,
    either,
    fit,
    from_array,
    from_bools,
    invert,
    plus,
    to_array,
    unsigned,
)
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

Registers = list[Any]
ALL = 0xFFFFFFFF

# --- bitwise --------------------------------------------------------------------------------

#: Truth tables that keep sums in their parts: as functions of a, b, c.
_TABLES: dict[int, Any] = {
    0x00: lambda a, b, c: 0,
    0xFF: lambda a, b, c: -1,
    0xF0: lambda a, b, c: a,
    0xCC: lambda a, b, c: b,
    0xAA: lambda a, b, c: c,
    0x0F: lambda a, b, c: invert_bits(a),
    0x33: lambda a, b, c: invert_bits(b),
    0x55: lambda a, b, c: invert_bits(c),
    0xC0: lambda a, b, c: and_ints(a, b),
    0xA0: lambda a, b, c: and_ints(a, c),
    0x88: lambda a, b, c: and_ints(b, c),
    0xFC: lambda a, b, c: or_ints(a, b),
    0xFA: lambda a, b, c: or_ints(a, c),
    0xEE: lambda a, b, c: or_ints(b, c),
    0x3C: lambda a, b, c: xor_ints(a, b),
    0x5A: lambda a, b, c: xor_ints(a, c),
    0x66: lambda a, b, c: xor_ints(b, c),
    0x30: lambda a, b, c: and_ints(a, invert_bits(b)),
    0x0C: lambda a, b, c: and_ints(invert_bits(a), b),
    0x50: lambda a, b, c: and_ints(a, invert_bits(c)),
    0x0A: lambda a, b, c: and_ints(invert_bits(a), c),
    0x22: lambda a, b, c: and_ints(invert_bits(b), c),
    0x44: lambda a, b, c: and_ints(b, invert_bits(c)),
    0x80: lambda a, b, c: and_ints(and_ints(a, b), c),
    0xFE: lambda a, b, c: or_ints(or_ints(a, b), c),
    0x96: lambda a, b, c: xor_ints(xor_ints(a, b), c),
    0xF8: lambda a, b, c: or_ints(a, and_ints(b, c)),
    0xEA: lambda a, b, c: or_ints(and_ints(a, b), c),
    0xEC: lambda a, b, c: or_ints(and_ints(a, c), b),
    0xE0: lambda a, b, c: and_ints(a, or_ints(b, c)),
    0xC8: lambda a, b, c: and_ints(b, or_ints(a, c)),
    0xA8: lambda a, b, c: and_ints(c, or_ints(a, b)),
    0x78: lambda a, b, c: xor_ints(a, and_ints(b, c)),
    0x6C: lambda a, b, c: xor_ints(b, and_ints(a, c)),
    0x6A: lambda a, b, c: xor_ints(c, and_ints(a, b)),
    0x48: lambda a, b, c: and_ints(b, xor_ints(a, c)),
    0x60: lambda a, b, c: and_ints(a, xor_ints(b, c)),
    0x28: lambda a, b, c: and_ints(c, xor_ints(a, b)),
    0xF6: lambda a, b, c: or_ints(a, xor_ints(b, c)),
    0xBE: lambda a, b, c: or_ints(c, xor_ints(a, b)),
    0xDE: lambda a, b, c: or_ints(b, xor_ints(a, c)),
    0xF2: lambda a, b, c: or_ints(a, and_ints(invert_bits(b), c)),
    0xF4: lambda a, b, c: or_ints(a, and_ints(b, invert_bits(c))),
}


def by_table(table: int, a: Int, b: Int, c: Int) -> Int:
    """A bitwise function of three words by its truth table: bit a * 4 + b * 2 + c."""
    shortcut = _TABLES.get(table)
    if shortcut is not None:
        return shortcut(a, b, c)  # type: ignore[no-any-return]
    if all(type(value) is int for value in (a, b, c)):
        return _minterms(table, a, b, c, 0)  # type: ignore[no-any-return]
    x, y, z = (to_array(value) for value in (a, b, c))
    return from_array(_minterms(table, x, y, z, np.zeros((1, 1), np.int64)))


def _minterms(table: int, x: Any, y: Any, z: Any, nothing: Any) -> Any:
    for row in range(8):
        if table >> row & 1:
            nothing = nothing | ((x if row & 4 else ~x) & (y if row & 2 else ~y) & (z if row & 1 else ~z))
    return nothing


@opcode("LOP3", "ULOP3", results="P?R")
def build_lop3(form: Form, binder: Binder) -> Compute:
    known(form, "LUT")
    operands = list(form.operands)
    tests = isinstance(operands[0], Predicate)
    if tests:
        operands.pop(0)
    _, a, b, c, lut, *added = operands
    table = binder.literal(lut) & 0xFF
    x, y, z = binder.word(a), binder.word(b), binder.word(c)
    other = binder.predicate(added[0]) if added else (lambda r: False)

    def compute(r: Registers) -> Any:
        result = fit(by_table(table, fit(x(r), 32), fit(y(r), 32), fit(z(r), 32)), 32)
        if not tests:
            return result
        return either(is_not_zero(result), other(r)), result

    return compute


def is_not_zero(value: Int) -> bool | Part:
    """Where any bit is set."""
    low, high = bounds(value)
    if low > 0 or high < 0:
        return True
    if low == high == 0:
        return False
    return from_bools(to_array(value) != 0)


@opcode("PLOP3", "UPLOP3", results="PP")
def build_plop3(form: Form, binder: Binder) -> Compute:
    known(form, "LUT")
    a, b, c, first, second = form.operands[2:]
    x, y, z = (binder.predicate(operand) for operand in (a, b, c))
    tables = [binder.literal(operand) & 0xFF for operand in (first, second)]

    def compute(r: Registers) -> Any:
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


# --- shifts ---------------------------------------------------------------------------------


@opcode("SHF", "USHF")
def build_funnel(form: Form, binder: Binder) -> Compute:
    """A 64-bit shift of {third, first} by the second operand; one of the two words is kept."""
    given = known(form, "L", "R", "W", "U32", "S32", "U64", "S64", "HI")
    low, amount, high = form.operands[1:4]
    left, wraps, takes_high = "L" in given, "W" in given, "HI" in given
    wide, signed = bool(given & {"U64", "S64"}), bool(given & {"S32", "S64"})
    lo, by, hi = binder.word(low), binder.word(amount), binder.word(high)
    move = shifted_left if left else shifted_right

    def compute(r: Registers) -> Int:
        shift = by(r)
        size = most = 64 if wide else 32
        if type(shift) is int:
            shift = shift & (size - 1) if wraps else min(shift & ALL, most)
            return move(fit(lo(r), 32), fit(hi(r), 32), shift, takes_high, signed)
        many = to_array(unsigned(fit(shift, 32), 32))
        many = many & (size - 1) if wraps else np.minimum(many, most)
        return by_many(fit(lo(r), 32), fit(hi(r), 32), many, left, takes_high, signed)

    return compute


def shifted_left(lo: Int, hi: Int, by: int, takes_high: bool, signed: bool) -> Int:
    """A word of `{hi, lo} << by`."""
    if not takes_high:
        return shift_left(lo, by, 32)
    if by >= 32:
        return shift_left(lo, by - 32, 32)
    if by == 0:
        return hi
    return fit(plus(shift_left(hi, by, 32), shift_right(unsigned(lo, 32), 32 - by, False, 32)), 32)


def shifted_right(lo: Int, hi: Int, by: int, takes_high: bool, signed: bool) -> Int:
    """A word of `{hi, lo} >> by`."""
    if takes_high:
        return fit(shift_right(hi, by, signed, 32), 32)
    if by >= 32:
        return fit(shift_right(hi, by - 32, signed, 32), 32)
    if by == 0:
        return lo
    return fit(plus(shift_right(unsigned(lo, 32), by, False, 32), shift_left(hi, 32 - by, 32)), 32)


def by_many(lo: Int, hi: Int, by: np.ndarray, left: bool, takes_high: bool, signed: bool) -> Int:
    """The same with an amount that differs between lanes."""
    joined = to_array(unsigned(lo, 32)) | (to_array(hi) << 32)
    count = np.minimum(by, 63)
    if left:
        moved = np.where(by > 63, 0, joined << count)
        word = moved >> 32 if takes_high else moved
    elif takes_high:
        top = to_array(hi if signed else unsigned(hi, 32))
        word = top >> count
    else:
        below = s64(u64(joined) >> count.astype(np.uint64))
        word = joined >> count if signed else np.where(by > 63, 0, below)
    return fit(from_array(word), 32)


# --- bytes ----------------------------------------------------------------------------------


#: Selectors by name and by the lowest two bits of the operand (PTX ISA, `prmt`).
_PICKS = {
    "F4E": (0x3210, 0x4321, 0x5432, 0x6543),
    "B4E": (0x5670, 0x6701, 0x7012, 0x0123),
    "RC8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ECL": (0x3210, 0x3211, 0x3222, 0x3333),
    "ECR": (0x0000, 0x1110, 0x2210, 0x3210),
    "RC16": (0x1010, 0x3232, 0x1010, 0x3232),
}


def kept_word(binder: Binder, operand: Operand) -> IntReader:
    """A word of which a piece may be kept though nobody wrote it: compilers set 16-bit halves one by one.

    No program can depend on what was never written; it is taken as 0.
    """
    read = binder.word(operand)
    slot = operand.slot if isinstance(operand, Register) else None
    if slot is None:
        return read

    def or_nothing(r: Registers) -> Int:
        value = r[slot]
        r[slot] = or_zero(value)
        try:
            return read(r)
        finally:
            r[slot] = value

    return or_nothing


@opcode("PRMT", "UPRMT")
def build_permute(form: Form, binder: Binder) -> Compute:
    given = known(form, *_PICKS)
    a, selector, c = form.operands[1:4]
    x, s, y = kept_word(binder, a), binder.word(selector), kept_word(binder, c)
    if len(given) > 1:
        raise Unsupported(form.name)
    named = _PICKS[next(iter(given))] if given else None

    def compute(r: Registers) -> Int:
        choice = s(r)
        if named is not None:
            choice = (
                named[choice & 3]
                if type(choice) is int
                else from_array(np.array(named)[to_array(choice) & 3])
            )
        low, high = x(r), y(r)
        if choice == 0x3210 or (type(choice) is int and choice & 0xFFFF == 0x3210):
            return fit(low, 32)
        if type(choice) is int:
            return fit(by_constant(low, high, choice), 32)
        picks = to_array(choice)
        joined = u64(to_array(unsigned(fit(low, 32), 32)) | (to_array(fit(high, 32)) << 32))
        result: np.ndarray = np.zeros((1, 1), np.int64)
        for byte in range(4):
            pick = (picks >> (4 * byte)) & 15
            found = ((joined >> ((pick & 7) * 8).astype(np.uint64)) & np.uint64(255)).astype(np.int64)
            found = np.where(pick & 8, np.where(found & 128, 255, 0), found)
            result = result | (found << (8 * byte))
        return fit(from_array(result), 32)

    return compute


def by_constant(low: Int, high: Int, selector: int) -> Int:
    """Four bytes out of two words; bit 3 of a selector repeats the byte's sign."""
    words = [unsigned(fit(value, 32), 32) for value in (low, high)]
    total: Int = 0
    for byte in range(4):
        pick = selector >> (4 * byte) & 15
        word = words[pick >> 2 & 1]
        if type(word) is int and word == 0:
            continue
        found = low_bits(shift_right(word, 8 * (pick & 3), False, 32), 8)
        if pick & 8:
            found = from_array(np.where(to_array(found) & 128, 255, 0))
        total = plus(total, shift_left(found, 8 * byte, 40))
    return total


# --- selection and moves --------------------------------------------------------------------


@opcode("SEL", "USEL", "FSEL")
def build_select(form: Form, binder: Binder) -> Compute:
    known(form, "FTZ")
    a, b, condition = form.operands[1:4]
    if form.opcode == "FSEL":
        return float_select(form, binder)
    x, y, which = binder.word(a), binder.word(b), binder.predicate(condition)

    def compute(r: Registers) -> Any:
        choice = which(r)
        if choice is True:
            return fit(x(r), 32)
        if choice is False:
            return fit(y(r), 32)
        return choose(choice, fit(x(r), 32), fit(y(r), 32))

    return compute


def float_select(form: Form, binder: Binder) -> Compute:
    a, b, condition = form.operands[1:4]
    x, y, which = binder.single(a), binder.single(b), binder.predicate(condition)

    def compute(r: Registers) -> Any:
        choice = which(r)
        if choice is True:
            return x(r)
        if choice is False:
            return y(r)
        return choose(choice, x(r), y(r))

    return compute


@opcode("MOV", "UMOV")
def build_move(form: Form, binder: Binder) -> Compute:
    known(form, "U32")
    source = form.operands[1]
    if (
        isinstance(source, Register)
        and source.slot is not None
        and not (source.negated or source.inverted or source.part)
    ):
        slot = source.slot
        return lambda r: r[slot]
    read = binder.word(source)
    return lambda r: fit(read(r), 32)


@opcode("P2R", "UP2UR")
def build_predicates_to_register(form: Form, binder: Binder) -> Compute:
    known(form, "B0", "B1", "B2", "B3")
    target, _, base, mask = form.operands
    bits = binder.literal(mask) & 0x7F
    shift = 8 * part_number(target)
    first = PREDICATE if form.opcode == "P2R" else UNIFORM_PREDICATE
    kept = binder.word(base)
    readers = [
        (number, binder.predicate(Predicate(first + number))) for number in range(7) if bits >> number & 1
    ]

    def compute(r: Registers) -> Int:
        total: Int = and_ints(fit(kept(r), 32), ~(bits << shift))
        for number, read in readers:
            total = plus(total, shift_left(as_int(read(r)), number + shift, 40))
        return fit(total, 32)

    return compute


def part_number(operand: Any) -> int:
    """Which byte a register operand names; 0 without."""
    part = getattr(operand, "part", "")
    return int(part[1]) if part.startswith("B") and part[1:].isdigit() else 0


def _predicates_written(form: Form) -> list[int]:
    """The predicates that R2P's mask names."""
    mask = form.operands[2]
    bits = mask.value if isinstance(mask, Immediate) and isinstance(mask.value, int) else 0x7F
    return [PREDICATE + number for number in range(7) if bits >> number & 1]


@opcode("R2P", results="", written=_predicates_written)
def build_register_to_predicates(form: Form, binder: Binder) -> Compute:
    known(form)
    _, source, mask = form.operands
    if not isinstance(source, Register):
        raise Unsupported(form.name)
    read = binder.word(Register(source.slot))
    shift = 8 * part_number(source)
    bits = binder.literal(mask) & 0x7F
    numbers = [number for number in range(7) if bits >> number & 1]

    def compute(r: Registers) -> Any:
        value = fit(read(r), 32)
        if type(value) is int:
            found: tuple[Any, ...] = tuple(bool(value >> (number + shift) & 1) for number in numbers)
        else:
            array = to_array(value)
            found = tuple(from_bools((array >> (number + shift)) & 1 == 1) for number in numbers)
        return found if len(found) != 1 else found[0]

    return compute


# --- counting bits --------------------------------------------------------------------------


def highest_bit(array: np.ndarray) -> np.ndarray:
    """The number of the highest set bit of unsigned words, -1 where there is none."""
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
