"""Readers of operands: functions `registers -> value`, with the operand's sign, inversion or part applied.

Values are those of `memsim.state.registers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from memsim.isa.number_formats import double_of, join_words, of_bits, to_double
from memsim.isa.op import (
    Address,
    Constant,
    Immediate,
    Operand,
    Predicate,
    Register,
    Symbolic,
    Unsupported,
    operand_of_kind,
)
from memsim.state.address_spaces import ConstantBytes
from memsim.state.partial import Value, or_zero
from memsim.state.parts import Part
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import from_bools, invert, predicate
from memsim.state.registers import as_unsigned, bounds, floats, ints, plus, times, to_array, wrap_int
from memsim.state.sums import Int, invert_bits, low_bits, shift_right

Registers = list[Value]
IntReader = Callable[[Registers], Int]
FloatReader = Callable[[Registers], np.ndarray]
PredicateReader = Callable[[Registers], "bool | Part"]

Reader = TypeVar("Reader")

#: What readers may ask of a launch: bytes of a constant bank (bank, offset, size), a whole bank, or a symbol.
#: The answer is None if it is unknown.
Question = tuple[int, int, int] | int | str
Answers = dict[Question, "bytes | int | None"]
#: The question for all parameters.
PARAMETERS = -1

#: What the driver's constant is that groups of several warps read.
OF_GROUPS = (
    ", where the system keeps the barriers of cooperative groups of several warps (tiles of 64 and more)"
)


class Binder:
    """Creates readers.

    banks: bytes of constant banks by number. symbols: addresses by name. holes: ranges of bank 0 that are
    unknown. of_groups: as `memsim.arch.Front.of_groups`.

    asked: what readers were told of the launch; where all of it is the same, so are they.
    """

    def __init__(
        self,
        banks: Mapping[int, bytes],
        symbols: Mapping[str, int] | None = None,
        holes: Sequence[range] = (),
        parameters: bytes = b"",
        of_groups: int | None = None,
    ) -> None:
        self.banks = banks
        self.parameters = parameters
        self.symbols = symbols or {}
        self.holes = holes
        self.of_groups = of_groups
        self.asked: Answers = {}

    def anew(self) -> Binder:
        """A binder of the same launch that was asked nothing yet."""
        return Binder(self.banks, self.symbols, self.holes, self.parameters, self.of_groups)

    def agrees(self, asked: Answers) -> bool:
        """Whether the answers are those of this launch."""
        return all(self._look_up(question) == answer for question, answer in asked.items())

    def _look_up(self, question: Question) -> bytes | int | None:
        if isinstance(question, str):
            return self.symbols.get(question)
        if isinstance(question, int):
            return self.parameters if question == PARAMETERS else self.banks.get(question, b"")
        bank, offset, size = question
        end, content = offset + size, self.banks.get(bank, b"")
        hidden = bank == 0 and any(offset < hole.stop and hole.start < end for hole in self.holes)
        return None if hidden or offset < 0 or end > len(content) else content[offset:end]

    def _told(self, question: Question) -> bytes | int | None:
        answer = self.asked[question] = self._look_up(question)
        return answer

    # --- constants ----------------------------------------------------------------------

    def constant(self, bank: int, offset: int, size: int, signed: bool = True) -> int:
        """Bytes of a constant bank as a number.

        Raises:
            Poisoned: they are unknown.
        """
        content = self._told((bank, offset, size))
        if not isinstance(content, bytes):
            told = OF_GROUPS if bank == 0 and offset == self.of_groups else ""
            raise Poisoned(Poison(f"c[{bank:#x}][{offset:#x}] is unknown{told}", None))
        return int.from_bytes(content, "little", signed=signed)

    def whole(self, bank: int) -> ConstantBytes:
        """All bytes of a constant bank, for an index."""
        return ConstantBytes(self._bytes(bank))

    def window(self) -> ConstantBytes:
        """What generic addresses of constants lead to: bank 3, then the parameters."""
        return ConstantBytes(self._bytes(3), self._bytes(PARAMETERS))

    def _bytes(self, question: int) -> bytes:
        content = self._told(question)
        assert isinstance(content, bytes)
        return content

    # --- integers -----------------------------------------------------------------------

    def word(self, operand: Operand) -> IntReader:
        """A 32-bit integer, signed, with sign and inversion applied (possibly one bit wider)."""
        if isinstance(operand, Register):
            return _changed(self._bits(operand), operand)
        if isinstance(operand, Constant):
            return _changed(self._word_of_bank(operand), operand)
        value = self.symbol(operand) if isinstance(operand, Symbolic) else self.literal(operand)
        return lambda r: value

    def symbol(self, operand: Symbolic) -> int:
        """A word of a symbol's address.

        Raises:
            Poisoned: it has none.
        """
        address = self._told(operand.symbol)
        if not isinstance(address, int):
            raise Poisoned(Poison(f"the address of {operand.symbol} is unknown", None))
        return wrap_int(address >> 32 if operand.high else address, 32)

    def unsigned_word(self, operand: Operand) -> IntReader:
        """A 32-bit unsigned integer."""
        read = self.word(operand)
        return lambda r: as_unsigned(read(r), 32)

    def literal(self, operand: Operand) -> int:
        """An immediate, as 32 bits.

        Raises:
            Unsupported: it is not an immediate.
        """
        if isinstance(operand, Immediate) and isinstance(operand.value, int):
            return wrap_int(operand.value, 32)
        if isinstance(operand, Immediate) and isinstance(operand.value, float):
            return int(np.float32(operand.value).view(np.int32))
        raise Unsupported(f"operand {operand}")

    def _bits(self, register: Register) -> IntReader:
        """A register's 32 bits."""
        slot = register.slot
        if slot is None:
            return lambda r: 0
        if register.part:
            return _piece(slot, register.part)
        return lambda r: ints(r[slot])

    def _word_of_bank(self, operand: Constant) -> IntReader:
        if operand.part:
            raise Unsupported(f"part {operand.part} of a constant")
        return self._of_bank(operand)

    def _of_bank(self, operand: Constant, size: int = 4) -> IntReader:
        """Bytes of a constant bank at a fixed place."""
        if operand.register is not None and operand.register.slot is not None:
            raise Unsupported("a constant with an index")
        try:
            value = self.constant(operand.bank, operand.offset, size)
        except Poisoned as unknown:
            poison = unknown.poison

            def fail(r: Registers) -> Int:
                raise Poisoned(poison)

            return fail
        return lambda r: value

    def pair(self, operand: Operand, signed: bool = True) -> IntReader:
        """A 64-bit integer: a register pair, a constant's 8 bytes, or an immediate."""
        if isinstance(operand, Register):
            if operand.slot is None:
                return _changed(lambda r: 0, operand)
            low = operand.slot
            return _changed(lambda r: join_words(ints(r[low]), ints(r[low + 1])), operand)
        if isinstance(operand, Constant):
            return _changed(self._of_bank(operand, 8), operand)
        if isinstance(operand, Immediate) and isinstance(operand.value, int):
            number = wrap_int(operand.value, 32)
            number = number if signed else number & 0xFFFFFFFF
            return lambda r: number
        raise Unsupported(f"operand {operand}")

    def kept_word(self, operand: Operand) -> IntReader:
        """A word of which a part may be undefined: compilers set halves, or bits for predicates, one by one.

        No program can depend on undefined bits; they are taken as 0.
        """
        read = self.word(operand)
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

    def unsigned_pair(self, operand: Operand) -> IntReader:
        """As `pair`, but an immediate is not sign-extended."""
        return self.pair(operand, False)

    # --- addresses ----------------------------------------------------------------------

    def address(self, operand: Operand) -> IntReader:
        """`[base + uniform + offset]` in 64 bits."""
        at = operand_of_kind(operand, Address)
        terms: list[IntReader] = []
        if at.base is not None and at.base.slot is not None:
            is_pair = at.pair or at.uniform is None
            terms.append(self.pair(at.base) if is_pair else self.unsigned_word(at.base))
        if at.uniform is not None and at.uniform.slot is not None:
            terms.append(self.pair(at.uniform))
        return _sum(terms, at.offset)

    def short_address(self, operand: Operand) -> IntReader:
        """`[base * scale + uniform + offset]` in 32 bits."""
        at = operand_of_kind(operand, Address)
        terms: list[IntReader] = []
        if at.base is not None and at.base.slot is not None:
            word = self.word(at.base)
            terms.append(word if at.scale == 1 else lambda r: times(word(r), at.scale))
        if at.uniform is not None and at.uniform.slot is not None:
            terms.append(self.word(at.uniform))
        return _sum(terms, at.offset)

    # --- floats -------------------------------------------------------------------------

    def single(self, operand: Operand) -> FloatReader:
        """A float32."""
        if isinstance(operand, Immediate):
            return _fixed(operand.value, np.float32)
        if isinstance(operand, Constant):
            bits = self._word_of_bank(operand)
            return _signed(lambda r: floats(bits(r), np.float32), operand)
        if not isinstance(operand, Register):
            raise Unsupported(f"operand {operand}")
        slot = operand.slot
        if slot is None:
            return _signed(_fixed(0.0, np.float32), operand)
        if operand.part in ("H0_H0", "H1_H1"):
            half = self.halves(operand)
            return lambda r: half(r)[0].astype(np.float32)
        if operand.part:
            raise Unsupported(f"part {operand.part} of a float")
        return _signed(lambda r: floats(r[slot], np.float32), operand)

    def double(self, operand: Operand) -> FloatReader:
        """A float64: a register pair, or the float64 nearest to an immediate."""
        if isinstance(operand, Immediate):
            return _fixed(operand.value, np.float64)
        if not isinstance(operand, (Register, Constant)):
            raise Unsupported(f"operand {operand}")
        if isinstance(operand, Register) and operand.slot is not None:
            low, high = operand.slot, operand.slot + 1
            return _signed(lambda r: double_of(r[low], r[high]), operand)
        bits = self.pair(_bare(operand))
        return _signed(lambda r: to_double(bits(r)), operand)

    def halves(
        self, operand: Operand, bf16: bool = False
    ) -> Callable[[Registers], tuple[np.ndarray, np.ndarray]]:
        """Two 16-bit floats (low, high) as float32 arrays, exactly.

        `.H0_H0` and `.H1_H1` read one of them twice.
        """
        if isinstance(operand, Immediate):
            if isinstance(operand.value, int):
                both = _halves(np.array([[operand.value]], np.int64), bf16)
            else:
                low = operand.value if operand.second is None else operand.second
                both = np.array([[low]], np.float32), np.array([[operand.value]], np.float32)
            return lambda r: both
        if not isinstance(operand, (Register, Constant)):
            raise Unsupported(f"operand {operand}")
        part = operand.part
        if part not in ("", "H0_H0", "H1_H1", "H1_H0"):
            raise Unsupported(f"part {part} of two halves")
        bits = self.word(_bare(operand))

        def read(r: Registers) -> tuple[np.ndarray, np.ndarray]:
            low, high = _halves(to_array(bits(r)), bf16)
            if part == "H0_H0":
                high = low
            elif part == "H1_H1":
                low = high
            if operand.absolute:
                low, high = np.abs(low), np.abs(high)
            return (-low, -high) if operand.negated else (low, high)

        return read

    def bfloat_halves(self, operand: Operand) -> Callable[[Registers], tuple[np.ndarray, np.ndarray]]:
        """As `halves`, of two bfloat16."""
        return self.halves(operand, True)

    # --- predicates ---------------------------------------------------------------------

    def predicate(self, operand: Operand) -> PredicateReader:
        """A predicate, possibly negated; for `R2.SIGN`, the sign of a register."""
        if isinstance(operand, Register) and operand.part == "SIGN":
            read = self.word(_bare(operand))
            return lambda r: invert(is_negative(read(r))) if operand.inverted else is_negative(read(r))
        if not isinstance(operand, Predicate):
            raise Unsupported(f"operand {operand}")
        slot, negated = operand.slot, operand.negated
        if slot is None:
            return lambda r: not negated
        if negated:
            return lambda r: invert(predicate(r[slot]))
        return lambda r: predicate(r[slot])

    def guard(self, operand: Predicate | None) -> PredicateReader | None:
        """A guard; None if it is always true."""
        if operand is None or (operand.slot is None and not operand.negated):
            return None
        return self.predicate(operand)


def _sum(terms: Sequence[IntReader], offset: int) -> IntReader:
    if len(terms) == 1:
        only = terms[0]
        return lambda r: plus(only(r), offset) if offset else only(r)

    def read(r: Registers) -> Int:
        total: Int = offset
        for term in terms:
            total = plus(total, term(r))
        return total

    return read


def is_negative(value: Int) -> bool | Part:
    """The sign of a word, decided by bounds if possible."""
    low, high = bounds(value)
    return high < 0 if (low < 0) == (high < 0) else from_bools(to_array(value) < 0)


def _fixed(value: int | float, dtype: type) -> FloatReader:
    """A constant; an integer is the upper word of its bits."""
    number: np.ndarray = np.array([[value]], dtype)
    if isinstance(value, int):
        size = number.itemsize
        number = np.array([[(value & 0xFFFFFFFF) << 8 * (size - 4)]], f"u{size}").view(dtype)
    return lambda r: number


def _bare(operand: Register | Constant) -> Register | Constant:
    """An operand without sign, inversion and part."""
    if isinstance(operand, Register):
        return Register(operand.slot)
    return Constant(operand.bank, operand.offset, operand.register)


def _changed(read: IntReader, operand: Register | Constant) -> IntReader:
    """With the operand's sign or inversion applied."""
    if operand.absolute:
        raise Unsupported("the absolute value of an integer operand")
    if operand.negated:
        return lambda r: times(read(r), -1)
    if operand.inverted:
        return lambda r: invert_bits(read(r))
    return read


def _signed(read: FloatReader, operand: Register | Constant) -> FloatReader:
    """With the operand's absolute value and sign applied, in that order."""
    if operand.inverted:
        raise Unsupported("an inverted float operand")
    if operand.absolute and operand.negated:
        return lambda r: -np.abs(read(r))
    if operand.absolute:
        return lambda r: np.abs(read(r))
    if operand.negated:
        return lambda r: -read(r)
    return read


_PIECES = {
    **{f"B{i}": (8 * i, 8) for i in range(4)},
    "H0": (0, 16),
    "H1": (16, 16),
    "H0_H0": (0, 16),
    "H1_H1": (16, 16),
}


def _piece(slot: int, part: str) -> IntReader:
    """A byte or half of a register, unsigned."""
    if part not in _PIECES:
        raise Unsupported(f"part {part} of a register")
    start, bits = _PIECES[part]
    return lambda r: low_bits(shift_right(as_unsigned(ints(r[slot]), 32), start, False, 32), bits)


def _halves(words: np.ndarray, bf16: bool) -> tuple[np.ndarray, np.ndarray]:
    """The low and high 16 bits of int64 words as floats."""
    return of_bits(words & 0xFFFF, bf16), of_bits(words >> 16 & 0xFFFF, bf16)
