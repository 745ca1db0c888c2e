"""Integer comparisons, minima and maxima: `ISETP IMNMX VIMNMX VIMNMX3 VIADDMNMX`; by bounds where possible.

Semantics: compiled CUDA code, run on an H100 and an H200 (docs/model.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any, Protocol

import numpy as np

from memsim.isa.definitions import BoundForm, Compute, Results, executes
from memsim.isa.number_formats import fields, pack_fields, readings, split_words
from memsim.isa.op import Immediate, Trait, require
from memsim.isa.readers import IntReader, PredicateReader, Registers
from memsim.state.parts import Mask, Part
from memsim.state.predicates import both, either, from_bools, invert, to_bools
from memsim.state.registers import as_unsigned, bounds, fit, from_array, plus, to_array
from memsim.state.sums import Int, s64

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
Deciding = tuple[list[int], PredicateReader, Compute]


class DecidedByLane(Protocol):
    """What computes results of which some lanes are known where not all operands are."""

    def __call__(self, r: Registers) -> Results: ...

    def decided(self, reads: Sequence[int]) -> Iterator[Deciding]:
        """What decides the results alone; `reads` are the slots that the instruction reads."""


COMBINE: dict[str, Callable[[Mask, Mask], Mask]] = {
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
        self, name: str, form: BoundForm, other: PredicateReader, holds: Callable[[Registers], bool | Part]
    ) -> None:
        self.name, self.combine = name, COMBINE[name]
        self.other, self.holds = other, holds
        self.joined = getattr(form.sources[2], "slot", None)
        self.has_inverse = getattr(form.results[-1], "slot", None) is not None

    def __call__(self, r: Registers) -> tuple[Mask, Mask]:
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
def integer_comparison(
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
        return found if below is None else comparison_of_upper_words(p, q, how, found, below(r))

    return Combined(name, form, joined, comparison)


@executes("ISETP.U64 UISETP.U64", "PP <- DDP P?", COMPARED, traits=_OF_COMPARISONS)
def compared_unsigned(form: BoundForm, x: IntReader, y: IntReader, *predicates: PredicateReader) -> Combined:
    """Each less 2^63, so that a signed comparison orders them."""
    for operand in form.sources[:2]:
        if isinstance(operand, Immediate):
            require(isinstance(operand.value, int) and 0 <= operand.value < 1 << 31)
    a, b = (partial(_less_half, read) for read in (x, y))
    return integer_comparison(form, a, b, *predicates)


def _less_half(read: IntReader, r: Registers) -> Int:
    return from_array(to_array(read(r)) ^ np.int64(-1 << 63))


def comparison_of_upper_words(
    p: Int, q: Int, how: str, found: bool | Part, below: bool | Part
) -> bool | Part:
    """A comparison of high words, given the result for the low words."""
    if how == "EQ":
        return both(found, below)
    if how == "NE":
        return either(found, below)
    strict = compare(p, q, {"LE": "LT", "GE": "GT"}.get(how, how))
    return either(strict, both(compare(p, q, "EQ"), below))


# --- minima and maxima -----------------------------------------------------------------------


def pick_lesser(a: Int, b: Int, smaller: bool | Part, signed: bool, bits: int = 32) -> Int:
    """The smaller of two integers where `smaller` holds, else the larger; decided by bounds if possible."""
    x, y = (a, b) if signed or bits == 64 else (as_unsigned(a, bits), as_unsigned(b, bits))
    (x_low, x_high), (y_low, y_high) = bounds(x), bounds(y)
    if isinstance(smaller, bool) and (signed or bits < 64 or min(x_low, y_low) >= 0):
        if x_high <= y_low:
            return a if smaller else b
        if y_high <= x_low:
            return b if smaller else a
    p, q = readings(a, b, signed, bits)
    if isinstance(smaller, bool):
        picked = np.minimum(p, q) if smaller else np.maximum(p, q)
    else:
        picked = np.where(to_bools(smaller), np.minimum(p, q), np.maximum(p, q))
    return fit(from_array(s64(picked)), bits)


_NAMES = ("VIMNMX", "IMNMX", "UIMNMX", "UVIMNMX")


@executes(" ".join(f"{name}.{kind}" for name in _NAMES for kind in ("S64", "U64")), "PPD <- DDPP")
def min_max_of_pairs(
    form: BoundForm, x: IntReader, y: IntReader, least: PredicateReader, _: object
) -> Compute:
    """From sm_120 on; what the predicates before the result tell is not known."""
    require(all(getattr(one, "slot", 0) is None for one in (*form.results[:2], form.sources[3])))
    for source in form.sources[:2]:  # whether a larger one is sign-extended is unknown
        if isinstance(source, Immediate):
            require(isinstance(source.value, int) and 0 <= source.value < 1 << 31)
    signed = "S64" in form.given
    return lambda r: (True, True, *split_words(pick_lesser(x(r), y(r), least(r), signed, 64)))


@executes("VIADDMNMX VIMNMX3", "W <- WWWP", "U32 S32 RELU S16x2 U16x2")
@executes(" ".join(_NAMES), "W P?P? <- WWP", "U32 S32 RELU S16x2 U16x2 U8x4")
def min_max(form: BoundForm, *sources: Any) -> Compute:
    """Of two or three words, of a sum and a word, or of the halves or bytes of these. Predicates tell for
    each half, lower first, whether the first operand was picked.
    """
    *reads, smaller = sources
    given, adds = form.given, form.opcode == "VIADDMNMX"
    tells = any(one is not None for one in form.results[1:])
    signed = not given & {"U32", "U16x2", "U8x4"}
    bits = 8 if "U8x4" in given else 16 if given & {"S16x2", "U16x2"} else 32
    require(bits == 16 or all(getattr(one, "slot", None) is None for one in form.results[1:]))

    def compute(r: Registers) -> Results:
        least = smaller(r)
        words = [fit(read(r), 32) for read in reads]
        pieces = (
            [words] if bits == 32 else zip(*(map(from_array, fields(word, True, bits)) for word in words))
        )
        found, first = [], []
        for x, y, *z in pieces:
            numbers = [fit(plus(x, y), bits), *z] if adds else [x, y, *z]
            picked = reduce(lambda p, q: pick_lesser(p, q, least, signed, bits), numbers)
            if tells:
                first.append(compare(picked, x, "EQ"))
            found.append(pick_lesser(picked, 0, False, True) if "RELU" in given else picked)
        value = found[0] if bits == 32 else pack_fields([to_array(one) for one in found], bits)
        return (value, *first, True)[: len(form.results)] if len(form.results) > 1 else value

    return compute
