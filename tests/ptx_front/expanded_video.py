"""Video instructions of PTX: `VIDEO`, with the PTX instruction's name as modifiers.

They work on bytes, halves or words of their operands, each with a sign of its own. The destination, `a` and
`b` are registers whose `part` is the selection (`b1`, `h32`, `b7654`); `c` is merged or accumulated. Chips
have few of these, and compilers expand the others. Semantics: PTX ISA, "Video Instructions".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from memsim.isa.definitions import BoundForm, Compute, executes
from memsim.isa.number_formats import fields, pack_fields
from memsim.isa.op import Register, operand_of_kind, require
from memsim.isa.readers import Binder, Registers
from memsim.state.registers import fit, from_array, to_array
from memsim.state.sums import Int

Numbers = list[np.ndarray]
Reader = Callable[[Registers], Numbers]
#: Of two arrays, exact in int64.
WORK: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vabsdiff": lambda a, b: np.abs(a - b),
    "vmin": np.minimum,
    "vmax": np.maximum,
    "vavrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
}
COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
SHIFTS = {"vshl": np.left_shift, "vshr": np.right_shift}
TYPES = ("s32", "u32")


@dataclass(frozen=True, slots=True)
class Name:
    """A video instruction. count: numbers in a word; types: of the result, a and b."""

    verb: str
    count: int
    types: tuple[str, str, str]
    rest: frozenset[str]


def parsed(modifiers: Sequence[str]) -> Name:
    """A video instruction from its name.

    Raises:
        Unsupported: none of this name is known.
    """
    opcode, *rest = modifiers
    count = int(opcode[-1]) if opcode[-1] in "24" else 1
    verb = opcode.rstrip("24")
    types = [name for name in rest if name in TYPES]
    given = frozenset(rest) - {*TYPES}
    if verb == "vset":
        types = ["u32", *types]
        require(len(given & COMPARISONS.keys()) == 1)
        others = given - COMPARISONS.keys()
    elif verb in SHIFTS:
        require(count == 1 and types[2:] == ["u32"] and len(given & {"wrap", "clamp"}) == 1)
        others = given - {"wrap", "clamp"}
    else:
        require(verb in WORK and (verb != "vavrg" or count > 1))
        others = given - {"sat"}
    require(len(types) == 3 and others <= {"add"})
    return Name(verb, count, (types[0], types[1], types[2]), given)


def field_size(part: str, count: int) -> int:
    """The bits of a number that a selection names."""
    return {"b": 8, "h": 16}.get(part[:1], 32) if count == 1 else 32 // count


def places_of(part: str, count: int, default: str) -> list[int]:
    """The bytes, halves or words that a selection names, the lowest first."""
    part = part or default
    require(count == 1 or part[0] == default[0])
    return [int(digit) for digit in reversed(part[1:])] or [0]


def source(binder: Binder, own: Register, whole: list[Register], kind: str, default: str) -> Reader:
    """Reads the numbers that `own` selects from whole registers."""
    count = max(1, len(default) - 1)
    places, size = places_of(own.part, count, default), field_size(own.part, count)
    require(len(places) == count and max(places) < len(whole) * 32 // size)
    reads = [binder.word(Register(one.slot)) for one in whole]

    def read(r: Registers) -> Numbers:
        numbers = [field for one in reads for field in fields(fit(one(r), 32), kind == "s32", size)]
        return [numbers[place] for place in places]

    return read


def saturated(value: np.ndarray, signed: bool, bits: int) -> np.ndarray:
    """The nearest number of the type."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return np.asarray(np.clip(value, low, high))


@executes("VIDEO", "W <- RRR", None)
def build_video(form: BoundForm, a: Register, b: Register, c: Register) -> Compute:
    name = parsed(form.modifiers)
    to, binder = operand_of_kind(form.results[0], Register), form.binder
    signed = name.types[0] == "s32"
    first, second = {1: ("", ""), 2: ("h10", "h32"), 4: ("b3210", "b7654")}[name.count]
    both = [a, b] if name.count > 1 else []
    left = source(binder, a, both or [a], name.types[1], first)
    right = source(binder, b, both or [b], name.types[2], second)
    old = binder.word(c)
    written = places_of(to.part, name.count, first)
    bits = field_size(to.part, name.count)
    require(max(written) < 32 // bits)
    work = _work(name)
    adds = "add" in name.rest
    if name.count == 1 and (to.part or "sat" in name.rest):
        require(to.part != "h1" and not adds)
        require("sat" not in name.rest or (signed and not to.part))

    def compute(r: Registers) -> Int:
        found = [work(x, y) for x, y in zip(left(r), right(r))]
        if "sat" in name.rest:
            found = [saturated(value, signed, bits) for value in found]
        kept = fit(old(r), 32)
        if adds:
            total = sum((found[place] for place in written[1:]), found[written[0]])
            return fit(from_array(total + to_array(kept)), 32)
        if bits == 32:
            return fit(from_array(found[0]), 32)
        parts = fields(kept, False, bits)
        for place in written:
            parts[place] = found[place if name.count > 1 else 0]
        return pack_fields(parts, bits)

    return compute


def _work(name: Name) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    if name.verb == "vset":
        compare = next(COMPARISONS[one] for one in name.rest if one in COMPARISONS)
        return lambda a, b: compare(a, b).astype(np.int64)
    if name.verb in SHIFTS:
        shift, wraps = SHIFTS[name.verb], "wrap" in name.rest
        return lambda a, b: shift(a, b & 31 if wraps else np.minimum(b, 32))
    return WORK[name.verb]
