"""Records back to PTX text, for the tests that read it again."""

from __future__ import annotations

import struct

from tests.ptx_front.program import (
    CallTarget,
    Negated,
    Operand,
    PtxAddress,
    PtxImmediate,
    PtxInstruction,
    PtxPair,
    PtxRegister,
    PtxSpecial,
    PtxSymbol,
    Selected,
    TextureAddress,
    Vector,
)


def instruction_text(instruction: PtxInstruction) -> str:
    """`@!%p1 add.s32 %r1, %r2, 3;`"""
    guard = ""
    if instruction.guard:
        guard = f"@{'!' if instruction.negated else ''}{instruction.guard.name} "
    operands = ", ".join(operand_text(operand) for operand in instruction.operands)
    return f"{guard}{instruction.name} {operands};"


def operand_text(operand: Operand) -> str:
    """One operand as PTX writes it."""
    if isinstance(operand, (PtxRegister, PtxSpecial)):
        return operand.name
    if isinstance(operand, PtxImmediate):
        return _constant(operand.value)
    if isinstance(operand, PtxSymbol):
        return operand.name + (f"+{operand.offset}" if operand.offset else "")
    if isinstance(operand, PtxAddress):
        return f"[{operand_text(operand.base)}" + (f"+{operand.offset}]" if operand.offset else "]")
    if isinstance(operand, Vector):
        return f"{{{', '.join(operand_text(item) for item in operand.items)}}}"
    if isinstance(operand, Selected):
        return f"{operand.register.name}.{operand.selector}"
    if isinstance(operand, Negated):
        return f"!{operand.register.name}"
    if isinstance(operand, PtxPair):
        return f"{operand_text(operand.first)}|{operand_text(operand.second)}"
    if isinstance(operand, TextureAddress):
        handles = (operand_text(item).strip("[]") for item in operand.handles)
        return f"[{', '.join(handles)}, {operand_text(operand.coordinates)}]"
    assert isinstance(operand, CallTarget)
    parts = [operand_text(operand.target)]
    if operand.returns:
        parts.insert(0, f"({', '.join(operand_text(item) for item in operand.returns)})")
    if operand.arguments:
        parts.append(f"({', '.join(operand_text(item) for item in operand.arguments)})")
    return ", ".join([*parts, *filter(None, [operand.prototype])])


def _constant(value: int | float) -> str:
    if isinstance(value, int):
        return str(value)
    return "0d" + struct.pack(">d", value).hex()
