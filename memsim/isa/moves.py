"""Selection and moves: `SEL FSEL MOV RPCMOV PRMT P2R R2P` and their uniform forms.

Semantics: compiled CUDA code, run on an H100 and an H200 (docs/model.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from memsim.isa.comparisons import Deciding, inverse
from memsim.isa.integer import as_int
from memsim.isa.op import PREDICATE, UNIFORM_PREDICATE, Form, Immediate, Operand, Predicate, Register
from memsim.isa.pairs import halved
from memsim.isa.readers import Binder, PredicateReader, Registers, kept_word
from memsim.isa.registry import Compute, checked, known, opcode, require
from memsim.state.predicates import from_bools
from memsim.state.registers import choose, fit, from_array, plus, to_array, unsigned, wrap_int
from memsim.state.sums import Int, and_ints, low_bits, shift_left, shift_right, u64

#: Selectors by name and by the lowest two bits of the operand (PTX ISA, `prmt`).
_PICKS = {
    "F4E": (0x3210, 0x4321, 0x5432, 0x6543),
    "B4E": (0x5670, 0x6701, 0x7012, 0x0123),
    "RC8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ECL": (0x3210, 0x3211, 0x3222, 0x3333),
    "ECR": (0x0000, 0x1110, 0x2210, 0x3210),
    "RC16": (0x1010, 0x3232, 0x1010, 0x3232),
}


@opcode("PRMT", "UPRMT")
def build_permute(form: Form, binder: Binder) -> Compute:
    given = known(form, *_PICKS)
    a, selector, c = form.operands[1:4]
    x, s, y = kept_word(binder, a), binder.word(selector), kept_word(binder, c)
    require(len(given) <= 1)
    named = _PICKS[next(iter(given))] if given else None

    def compute(r: Registers) -> Int:
        choice = s(r)
        if named is not None:
            choice = from_array(np.array(named)[to_array(choice) & 3])
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


def _widths(form: Form) -> dict[int, int]:
    return {0: 2, 1: 2, 2: 2} if "64" in form.modifiers else {}


@opcode("SEL", "USEL", "FSEL", widths=_widths)
def build_select(form: Form, binder: Binder) -> Selection:
    bits = 64 if "64" in known(form, "FTZ", "64") else 32
    a, b, condition = form.operands[1:4]

    def wide(operand: Operand) -> Any:
        if isinstance(operand, Immediate) and isinstance(operand.value, int):
            number = wrap_int(operand.value, 64)  # as it is written: 0xfffff801, and -0x1
            return lambda r: number
        return binder.pair(operand)

    read: Callable[[Operand], Any] = wide if bits == 64 else binder.word
    read = binder.single if form.opcode == "FSEL" else read
    x, y, which = read(a), read(b), binder.predicate(condition)

    def finished(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value
        return halved(value) if bits == 64 else fit(value, 32)

    sides = [(_slots(operand, bits), read) for operand, read in ((a, x), (b, y))]
    return Selection(which, _slots(condition, 32), sides, finished)


def _slots(operand: Operand, bits: int) -> list[int]:
    """The registers of an operand."""
    slot = getattr(operand, "slot", None)
    return [] if slot is None else [slot + word for word in range(bits // 32)]


class Selection:
    """One of two values; in each lane only the one that is selected has to be known.

    which: where the first is selected; deciding: the slot of the predicate. sides: the slots of both, and
    their readers.
    """

    def __init__(
        self,
        which: PredicateReader,
        deciding: list[int],
        sides: Sequence[tuple[list[int], Callable[[Registers], Any]]],
        finished: Callable[[Any], Any],
    ) -> None:
        self.which, self.deciding, self.finished = which, deciding, finished
        self.sides = sides

    def __call__(self, r: Registers) -> Any:
        choice = self.which(r)
        x, y = (read for _, read in self.sides)
        if isinstance(choice, bool):
            return self.finished(x(r) if choice else y(r))
        return self.finished(choose(choice, x(r), y(r)))

    def decided(self, reads: Sequence[int]) -> Iterator[Deciding]:
        """Each side, where it is selected."""
        for (slots, read), where in zip(self.sides, (self.which, inverse(self.which))):
            yield [*self.deciding, *slots], where, self._side(read)

    def _side(self, read: Callable[[Registers], Any]) -> Callable[[Registers], Any]:
        return lambda r: self.finished(read(r))


@opcode("MOV", "UMOV", widths=_widths)
def build_move(form: Form, binder: Binder) -> Compute:
    given = known(form, "U32", "64")
    source = form.operands[1]
    if "64" in given:
        if isinstance(source, Immediate) and isinstance(source.value, int):
            number = halved(source.value)  # the instruction contains all 64 bits
            return lambda r: number
        pair = binder.pair(source)
        return lambda r: halved(pair(r))
    if (
        isinstance(source, Register)
        and source.slot is not None
        and not (source.negated or source.inverted or source.part)
    ):
        slot = source.slot
        return lambda r: r[slot]
    read = binder.word(source)
    return lambda r: fit(read(r), 32)


@opcode("RPCMOV")
def build_move_of_return_address(form: Form, binder: Binder) -> Compute:
    """To or from a half of Rpc, which compilers also use as two more registers."""
    require(form.modifiers == ("32",))
    return binder.word(form.operands[1])


@opcode("P2R", "UP2UR")
def build_predicates_to_register(form: Form, binder: Binder) -> Compute:
    known(form, "B0", "B1", "B2", "B3")
    target, _, base, mask = form.operands
    bits = binder.literal(mask) & 0x7F
    shift = 8 * part_number(target)
    first = PREDICATE if form.opcode == "P2R" else UNIFORM_PREDICATE
    kept = binder.word(base)
    readers = [(number, binder.predicate(Predicate(first + number))) for number in named_by(bits)]

    def compute(r: Registers) -> Int:
        total: Int = and_ints(fit(kept(r), 32), ~(bits << shift))
        for number, read in readers:
            total = plus(total, shift_left(as_int(read(r)), number + shift, 40))
        return fit(total, 32)

    return compute


def named_by(mask: int) -> list[int]:
    """The predicates in a mask, by number."""
    return [number for number in range(7) if mask >> number & 1]


def part_number(operand: Any) -> int:
    """The byte that a register operand names; 0 if none."""
    part = getattr(operand, "part", "")
    return int(part[1]) if part.startswith("B") and part[1:].isdigit() else 0


def _predicates_written(form: Form) -> list[int]:
    """The predicates in R2P's mask."""
    mask = form.operands[2]
    bits = mask.value if isinstance(mask, Immediate) and isinstance(mask.value, int) else 0x7F
    return [PREDICATE + number for number in named_by(bits)]


@opcode("R2P", results="", written=_predicates_written)
def build_register_to_predicates(form: Form, binder: Binder) -> Compute:
    known(form)
    _, source, mask = form.operands
    read = binder.word(Register(checked(source, Register).slot))
    shift = 8 * part_number(source)
    numbers = named_by(binder.literal(mask))

    def compute(r: Registers) -> Any:
        array = to_array(fit(read(r), 32))
        found = [from_bools(array >> number + shift & 1 == 1) for number in numbers]
        return tuple(found) if len(found) != 1 else found[0]

    return compute
