"""Integer comparisons: `ISETP UISETP`; decided by bounds where possible.

Semantics: compiled CUDA code, run on an H100 and an H200 (docs/model.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from memsim.isa.definitions import BoundForm, executes
from memsim.isa.op import Immediate, Trait
from memsim.isa.readers import IntReader, PredicateReader, Registers
from memsim.isa.unsupported import require
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


#: Modifiers of comparisons of integers, with those of the type.
COMPARED = " ".join((*_COMPARE, *COMBINE, "F", "T", "EX"))


class Combined:
    """A comparison, and its inverse, combined with a predicate; in some lanes one of the two decides alone.

    holds: the comparison. other: the predicate, in slot `joined`.
    """

    def __init__(
        self,
        name: str,
        form: BoundForm,
        other: PredicateReader,
        holds: Callable[[Registers], bool | Part],
    ) -> None:
        self.name, self.combine = name, COMBINE[name]
        self.other, self.holds = other, holds
        self.joined = getattr(form.sources[2], "slot", None)
        self.has_inverse = getattr(form.results[-1], "slot", None) is not None

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


_OF_COMPARISONS = {"": Trait.COMPARES, "EQ": Trait.EQUALITY, "NE": Trait.EQUALITY}


@executes("ISETP UISETP", "PP <- WWP P?", COMPARED, traits=_OF_COMPARISONS)
@executes("ISETP.U32 UISETP.U32", "PP <- UUP P?", COMPARED, traits=_OF_COMPARISONS)
@executes("ISETP.S64 UISETP.S64", "PP <- DDP P?", COMPARED, traits=_OF_COMPARISONS)
def compared(
    form: BoundForm, x: IntReader, y: IntReader, joined: PredicateReader, lower: PredicateReader | None
) -> Combined:
    """A comparison, and its inverse. `.EX`: of high words, with the result for the low ones."""
    how, *rest = form.modifiers
    name = next((name for name in rest if name in COMBINE), "")
    require(how in {*_COMPARE, "F", "T"} and name and ("EX" not in rest or lower is not None))
    below = lower if "EX" in rest else None

    def comparison(r: Registers) -> bool | Part:
        p, q = x(r), y(r)
        found = compare(p, q, how)
        return found if below is None else extended(p, q, how, found, below(r))

    return Combined(name, form, joined, comparison)


@executes("ISETP.U64 UISETP.U64", "PP <- DDP P?", COMPARED, traits=_OF_COMPARISONS)
def compared_unsigned(form: BoundForm, x: IntReader, y: IntReader, *predicates: Any) -> Combined:
    """Each less 2^63, so that a signed comparison orders them."""
    for operand in form.sources[:2]:
        if isinstance(operand, Immediate):
            require(isinstance(operand.value, int) and 0 <= operand.value < 1 << 31)
    a, b = (partial(_less_half, read) for read in (x, y))
    return compared(form, a, b, *predicates)


def _less_half(read: IntReader, r: Registers) -> Int:
    return from_array(to_array(read(r)) ^ np.int64(-1 << 63))


def extended(p: Int, q: Int, how: str, found: bool | Part, below: bool | Part) -> bool | Part:
    """A comparison of high words, given the result for the low words."""
    if how == "EQ":
        return both(found, below)
    if how == "NE":
        return either(found, below)
    strict = compare(p, q, {"LE": "LT", "GE": "GT"}.get(how, how))
    return either(strict, both(compare(p, q, "EQ"), below))
