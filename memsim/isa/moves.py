"""Selection and moves: `SEL FSEL MOV RPCMOV PRMT P2R R2P` and their uniform forms; reads of special registers
and of the program counter: `S2R S2UR CS2R CS2UR LEPC`.

Semantics: compiled CUDA code, run on an H100 and an H200 (docs/model.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from memsim.isa.comparisons import Deciding, inverse
from memsim.isa.definitions import BoundForm, Compute, Results, executes
from memsim.isa.integer import as_int
from memsim.isa.machine_protocol import Warps
from memsim.isa.number_formats import split_words
from memsim.isa.op import (
    PREDICATE,
    UNIFORM_PREDICATE,
    Effect,
    Form,
    Immediate,
    Label,
    Operand,
    Predicate,
    Register,
    Special,
    Trait,
    Unsupported,
    require,
)
from memsim.isa.readers import FloatReader, IntReader, PredicateReader, Registers
from memsim.state.parts import entries
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import from_bools
from memsim.state.registers import as_unsigned, choose, fit, from_array, plus, to_array, wrap_int
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
_TRAITS = {"": Trait.PICKS_BYTES, **dict.fromkeys(_PICKS, Trait.BY_PATTERN)}


@executes("PRMT UPRMT", "W <- KWK", " ".join(_PICKS), traits=_TRAITS)
def permute(form: BoundForm, x: IntReader, s: IntReader, y: IntReader) -> Compute:
    """Four bytes out of two words."""
    given = form.given
    require(len(given) <= 1)
    named = _PICKS[next(iter(given))] if given else None

    def compute(r: Registers) -> Int:
        choice = s(r)
        if named is not None:
            choice = from_array(entries(np.array(named), to_array(choice) & 3))
        low, high = x(r), y(r)
        if type(choice) is int:
            if choice & 0xFFFF == 0x3210:
                return fit(low, 32)
            return fit(by_constant(low, high, choice), 32)
        picks = to_array(choice)
        joined = u64(to_array(as_unsigned(fit(low, 32), 32)) | (to_array(fit(high, 32)) << 32))
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
    words = [as_unsigned(fit(value, 32), 32) for value in (low, high)]
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


@executes("SEL USEL", "W <- WWP", "FTZ", traits={"": Trait.SELECTS})
def select(form: BoundForm, x: IntReader, y: IntReader, which: PredicateReader) -> Selection:
    return Selection(form, (x, y), which, lambda value: fit(value, 32))


@executes("SEL.64 USEL.64 FSEL.64", "D <- XXP", "FTZ", traits={"": Trait.SELECTS})
def select_pair(form: BoundForm, a: Operand, b: Operand, which: PredicateReader) -> Selection:
    return Selection(form, (whole(form, a), whole(form, b)), which, split_words)


@executes("FSEL", "W <- FFP", "FTZ", traits={"": Trait.MONOTONE})
def select_float(form: BoundForm, x: FloatReader, y: FloatReader, which: PredicateReader) -> Selection:
    return Selection(form, (x, y), which, lambda value: value)


def whole(form: BoundForm, operand: Operand) -> IntReader:
    """64 bits; an immediate has all of them as it is written: 0xfffff801, and -0x1."""
    if isinstance(operand, Immediate) and isinstance(operand.value, int):
        number = wrap_int(operand.value, 64)
        return lambda r: number
    return form.binder.pair(operand)


class Selection:
    """One of two values; in each lane only the one that is selected has to be known.

    reads: of both. which: where the first is selected. finished: makes a result of a value.
    """

    def __init__(
        self,
        form: BoundForm,
        reads: tuple[IntReader | FloatReader, IntReader | FloatReader],
        which: PredicateReader,
        finished: Callable[[Any], Results],
    ) -> None:
        self.which, self.finished, self.reads = which, finished, reads
        words = 2 if "64" in form.given else 1
        self.slots = [_slots(operand, words) for operand in form.sources[:2]]
        self.deciding = _slots(form.sources[2], 1)

    def __call__(self, r: Registers) -> Results:
        choice = self.which(r)
        x, y = self.reads
        if isinstance(choice, bool):
            return self.finished(x(r) if choice else y(r))
        return self.finished(choose(choice, x(r), y(r)))

    def decided(self, reads: Sequence[int]) -> Iterator[Deciding]:
        """Each side, where it is selected."""
        for slots, read, where in zip(self.slots, self.reads, (self.which, inverse(self.which))):
            yield [*self.deciding, *slots], where, self._side(read)

    def _side(self, read: IntReader | FloatReader) -> Compute:
        return lambda r: self.finished(read(r))


def _slots(operand: Operand | None, words: int) -> list[int]:
    """The registers of an operand."""
    slot = getattr(operand, "slot", None)
    return [] if slot is None else [slot + word for word in range(words)]


@executes("MOV UMOV", "W <- W", "U32", traits={"": Trait.MOVES})
def move(form: BoundForm, read: IntReader) -> Compute:
    (source,) = form.sources
    if (
        isinstance(source, Register)
        and source.slot is not None
        and not (source.negated or source.inverted or source.part)
    ):
        slot = source.slot
        return lambda r: r[slot]
    return lambda r: fit(read(r), 32)


@executes("MOV.64 UMOV.64", "D <- X", "U32")
def move_pair(form: BoundForm, source: Operand) -> Compute:
    if isinstance(source, Immediate) and isinstance(source.value, int):
        number = split_words(source.value)  # the instruction contains all 64 bits
        return lambda r: number
    pair = form.binder.pair(source)
    return lambda r: split_words(pair(r))


@executes("RPCMOV.32", "W <- W")
def move_return_address(form: BoundForm, read: IntReader) -> Compute:
    """To or from a half of Rpc, which compilers also use as two more registers."""
    return read


@executes("P2R UP2UR", "W <- QWI", "B0 B1 B2 B3")
def predicates_to_register(form: BoundForm, _: object, kept: IntReader, mask: int) -> Compute:
    """Those in the mask, in the byte that the result names; the other bits are kept."""
    bits = mask & 0x7F
    shift = 8 * part_number(form.results[0])
    first = PREDICATE if form.opcode == "P2R" else UNIFORM_PREDICATE
    readers = [(number, form.binder.predicate(Predicate(first + number))) for number in named_by(bits)]

    def compute(r: Registers) -> Int:
        total: Int = and_ints(fit(kept(r), 32), ~(bits << shift))
        for number, read in readers:
            total = plus(total, shift_left(as_int(read(r)), number + shift, 40))
        return fit(total, 32)

    return compute


def named_by(mask: int) -> list[int]:
    """The predicates in a mask, by number."""
    return [number for number in range(7) if mask >> number & 1]


def part_number(operand: object) -> int:
    """The byte that a register operand names; 0 if none."""
    part = getattr(operand, "part", "")
    return int(part[1]) if part.startswith("B") and part[1:].isdigit() else 0


def _predicates_written(form: Form) -> list[int]:
    """The predicates in R2P's mask."""
    mask = form.operands[-1] if form.operands else None
    bits = mask.value if isinstance(mask, Immediate) and isinstance(mask.value, int) else 0x7F
    return [PREDICATE + number for number in named_by(bits)]


@executes("R2P", "<- SRI", written=_predicates_written)
def register_to_predicates(form: BoundForm, _: object, source: Register, mask: int) -> Compute:
    """Those in the mask, from the byte that the source names."""
    read = form.binder.word(Register(source.slot))
    shift = 8 * part_number(source)
    numbers = named_by(mask)

    def compute(r: Registers) -> Results:
        array = to_array(fit(read(r), 32))
        found = [from_bools(array >> number + shift & 1 == 1) for number in numbers]
        return tuple(found) if len(found) != 1 else found[0]

    return compute


# --- special registers and the program counter -----------------------------------------------


@executes("S2R S2UR CS2UR CS2R.32", "W <- S", "32 64", effect=Effect.LANES)
@executes("CS2R", "D <- S", "64", effect=Effect.LANES)
def special_register(form: BoundForm, source: Special) -> Compute:
    name, wide = source.name, form.opcode == "CS2R" and "32" not in form.given

    def compute(r: Registers, warps: Warps) -> Results:
        value = 0 if name == "SRZ" else warps.special(name)
        if isinstance(value, Poison):
            raise Poisoned(value)
        return split_words(value) if wide else fit(value, 32)

    return compute


@executes("LEPC", "D <- L")
def program_counter(form: BoundForm, label: Label) -> Compute:
    if label.address is None:
        raise Unsupported
    pair = split_words(label.address)
    return lambda r: pair
