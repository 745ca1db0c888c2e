"""The table of what the emulator executes: one short function for each opcode.

`@alu("add", "sub", sources=2)` registers a function that reads an instruction's modifiers once
and gives back `compute(*sources) -> value`, a pure function of register values. An opcode that
means something else for floats, predicates or with the carry bit has a function for each kind.
A function that does not know a form raises `Unsupported`; then the emulator poisons what the
instruction writes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memsim.ptx.program import Instruction, Pair, Register, Vector

Compute = Callable[..., Any]
Builder = Callable[[Instruction], Compute]

FLOATS = frozenset(("f16", "f16x2", "bf16", "bf16x2", "f32", "f64"))
INTEGERS = {f"{sign}{bits}": (sign == "s", bits) for sign in "sub" for bits in (8, 16, 32, 64)}
_CARRY_READERS = frozenset(("addc", "subc", "madc"))


class Unsupported(Exception):
    """This form of the instruction is not executed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A builder, how many source operands its instructions have, and whether `p|q` may be written."""

    builder: Builder
    sources: tuple[int, ...]
    pair: bool


#: (opcode, kind) -> what executes it.
ALU: dict[tuple[str, str], Entry] = {}


def alu(
    *opcodes: str, sources: int | tuple[int, ...], kind: str = "integer", pair: bool = False
) -> Callable[[Builder], Builder]:
    """Register a builder for instructions that only turn register values into values.

    `kind`: what it works on, one of `kind_of`. `pair`: it may write two predicates, `p|q`; then
    `compute` gives a pair.
    """

    def register(builder: Builder) -> Builder:
        counts = sources if isinstance(sources, tuple) else (sources,)
        for opcode in opcodes:
            ALU[opcode, kind] = Entry(builder, counts, pair)
        return builder

    return register


def build(instruction: Instruction) -> Compute:
    """What the instruction computes from its sources (and the carry bit, if it reads that).

    Raises:
        Unsupported: this form of it is not executed.
    """
    entry = ALU.get((instruction.opcode, kind_of(instruction)))
    if entry is None or len(instruction.operands) - 1 not in entry.sources:
        raise Unsupported(instruction.name)
    if not (entry.pair or isinstance(instruction.operands[0], Register)):
        raise Unsupported(instruction.name)
    return entry.builder(instruction)


def kind_of(instruction: Instruction) -> str:
    """What the instruction works on: integer, packed (two 16-bit integers), float, predicate, or carry."""
    name = scalar_type(instruction)
    if name in FLOATS:
        return "float"
    if instruction.opcode in _CARRY_READERS or "cc" in instruction.modifiers:
        return "carry"
    return {"pred": "predicate", "u16x2": "packed", "s16x2": "packed"}.get(name, "integer")


def scalar_type(instruction: Instruction) -> str:
    """The last modifier: the type that the instruction works on (`s32`)."""
    if not instruction.modifiers:
        raise Unsupported(instruction.name)
    return instruction.modifiers[-1]


def integer_type(instruction: Instruction) -> tuple[bool, int]:
    """(is signed, bits) of an integer or untyped instruction."""
    name = scalar_type(instruction)
    if name not in INTEGERS:
        raise Unsupported(instruction.name)
    return INTEGERS[name]


def options(instruction: Instruction, *known: str) -> frozenset[str]:
    """The modifiers before the type; all of them have to be known."""
    found = frozenset(instruction.modifiers[:-1])
    if not found <= set(known):
        raise Unsupported(instruction.name)
    return found


def mode(instruction: Instruction, *choices: str) -> str:
    """The only modifier before the type, which has to be one of these."""
    if len(instruction.modifiers) != 2 or instruction.modifiers[0] not in choices:
        raise Unsupported(instruction.name)
    return instruction.modifiers[0]


def expect(
    instruction: Instruction, *, operands: int, modifiers: int | None = None, results: tuple[int, ...] = (1,)
) -> None:
    """Does the instruction have so many modifiers and operands, and write so many registers?

    Raises:
        Unsupported: it does not.
    """
    if len(instruction.operands) != operands or modifiers not in (None, len(instruction.modifiers)):
        raise Unsupported(instruction.name)
    target = instruction.operands[0]
    written = len(target.items) if isinstance(target, Vector) else 2 if isinstance(target, Pair) else 1
    if written not in results:
        raise Unsupported(instruction.name)
