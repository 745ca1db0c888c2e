"""Integer comparisons: `ISETP UISETP`; decided by bounds where possible.

Semantics: compiled CUDA code, run on an H100 and an H200 (docs/model.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any, Protocol

import numpy as np

from memsim.isa.op import Form, Immediate, Operand
from memsim.isa.readers import Binder, IntReader, PredicateReader, Registers
from memsim.isa.registry import opcode, require
from memsim.state.parts import Part
from memsim.state.predicates import both, either, from_bools, invert
from memsim.state.registers import bounds, from_array, to_array
from memsim.state.sums import Int

_COMPARE: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "EQ": np.equal,
    "NE": np.not_equal,
}


def compare(a: Int, b: Int, how: str) -> bool | Part:
    """`a how b`, decided by bounds if possible."""
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


#: Some of the registers that an instruction reads, the lanes in which they decide its results alone, and the
#: results there.
Deciding = tuple[list[int], PredicateReader, Callable[[Registers], Any]]


class DecidedByLane(Protocol):
    """What computes results of which some lanes are known where not all operands are."""

    def __call__(self, r: Registers) -> Any: ...

    def decided(self, reads: Sequence[int]) -> Iterator[Deciding]:
        """What decides the results alone; `reads` are the slots that the instruction reads."""


COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "AND": both,
    "OR": either,
    "XOR": lambda a, b: either(both(a, invert(b)), both(invert(a), b)),
}


class Combined:
    """A comparison, and its inverse, combined with a predicate; in some lanes one of the two decides alone.

    holds: the comparison. other: the predicate, in slot `joined`.
    """

    def __init__(
        self, name: str, form: Form, binder: Binder, holds: Callable[[Registers], bool | Part]
    ) -> None:
        self.name, self.combine = name, COMBINE[name]
        self.other = binder.predicate(form.operands[4])
        self.joined = getattr(form.operands[4], "slot", None)
        self.holds = holds
        self.has_inverse = getattr(form.operands[1], "slot", 0) is not None

    def __call__(self, r: Registers) -> Any:
        found, added = self.holds(r), self.other(r)
        return self.combine(found, added), self.combine(invert(found), added)

    def decided(self, reads: Sequence[int]) -> Iterator[Deciding]:
        """The predicate alone, and the comparison alone, where they decide both results.

        The lanes are those for which it holds (`OR`), or does not (`AND`).
        """
        if self.name not in ("AND", "OR"):
            return
        value = self.name == "OR"
        for slots, half in (
            ([slot for slot in reads if slot == self.joined], self.other),
            ([slot for slot in reads if slot != self.joined], None if self.has_inverse else self.holds),
        ):
            if half is not None:
                yield slots, half if value else inverse(half), lambda r: (value, value)


def inverse(half: PredicateReader) -> PredicateReader:
    """The lanes for which a predicate does not hold."""
    return lambda r: invert(half(r))


def _compared(form: Form) -> dict[int, int]:
    """Of 64 bits: forms of Blackwell."""
    return {2: 2, 3: 2} if {"S64", "U64"} & set(form.modifiers) else {}


@opcode("ISETP", "UISETP", results="PP", widths=_compared)
def build_isetp(form: Form, binder: Binder) -> Combined:
    how, *rest = form.modifiers
    given = set(rest)
    name = next((name for name in rest if name in COMBINE), "")
    require(how in {*_COMPARE, "F", "T"} and name and given <= {"U32", "S64", "U64", "EX", *COMBINE})
    a, b, _, *lower = form.operands[2:]
    x, y = (_number(binder, operand, given) for operand in (a, b))
    below = binder.predicate(lower[0]) if "EX" in given else None

    def comparison(r: Registers) -> bool | Part:
        p, q = x(r), y(r)
        found = compare(p, q, how)
        return found if below is None else extended(p, q, how, found, below(r))

    return Combined(name, form, binder, comparison)


def _number(binder: Binder, operand: Operand, given: Set[str]) -> IntReader:
    """An operand of 32 or 64 bits; of 64 unsigned bits less 2^63, so that a signed comparison orders them."""
    if "U64" in given:
        if isinstance(operand, Immediate):
            require(isinstance(operand.value, int) and 0 <= operand.value < 1 << 31)
        read = binder.pair(operand)
        return lambda r: from_array(to_array(read(r)) ^ np.int64(-1 << 63))
    if "S64" in given:
        return binder.pair(operand)
    return binder.unsigned_word(operand) if "U32" in given else binder.word(operand)


def extended(p: Int, q: Int, how: str, found: bool | Part, below: bool | Part) -> bool | Part:
    """A comparison of high words, given the result for the low words."""
    if how == "EQ":
        return both(found, below)
    if how == "NE":
        return either(found, below)
    strict = compare(p, q, {"LE": "LT", "GE": "GT"}.get(how, how))
    return either(strict, both(compare(p, q, "EQ"), below))
