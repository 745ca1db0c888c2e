"""The table of what the emulator executes: one short function for each opcode.

`@alu("add", "sub")` registers a function that reads an instruction's modifiers once and gives
back `compute(*sources) -> value`, a pure function of register values. An instruction whose
modifiers it does not know raises `Unsupported`; then the emulator poisons what it writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memsim.ptx.program import Instruction

Compute = Callable[..., Any]
Builder = Callable[[Instruction], Compute]

ALU: dict[str, Builder] = {}


class Unsupported(Exception):
    """This form of the instruction is not executed."""


def alu(*opcodes: str) -> Callable[[Builder], Builder]:
    """Register a builder for instructions that only turn register values into one value."""

    def register(builder: Builder) -> Builder:
        for opcode in opcodes:
            ALU[opcode] = builder
        return builder

    return register


def scalar_type(instruction: Instruction) -> str:
    """The last modifier: the type that the instruction works on (`s32`)."""
    if not instruction.modifiers:
        raise Unsupported(instruction.name)
    return instruction.modifiers[-1]


def integer_type(instruction: Instruction) -> tuple[bool, int]:
    """(is signed, bits) of an integer or untyped instruction."""
    name = scalar_type(instruction)
    if name[:1] not in ("s", "u", "b") or not name[1:].isdigit():
        raise Unsupported(instruction.name)
    return name[0] == "s", int(name[1:])


def is_float(instruction: Instruction) -> bool:
    """Does the instruction work on floats?"""
    name = scalar_type(instruction)
    return name in ("f16", "f16x2", "f32", "f64", "bf16", "bf16x2", "f32x2")
