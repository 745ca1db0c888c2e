"""Which registers one PTX instruction reads and writes. Dependences through memory are not considered."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ptx_front.program import (
    CallTarget,
    Negated,
    Operand,
    PtxAddress,
    PtxInstruction,
    PtxPair,
    PtxRegister,
    Selected,
    TextureAddress,
    Vector,
)

# Opcodes whose first operand is a register but a source. (A leading address is recognized as such.)
_NO_DESTINATION = frozenset(
    {"bar", "barrier", "bra", "brx", "nanosleep", "ret", "exit", "trap", "st", "red", "stackrestore"}
    | {"setmaxnreg", "pmevent", "call", "discard", "prefetch", "prefetchu", "membar", "fence"}
)


def defs(instruction: PtxInstruction) -> tuple[str, ...]:
    """Names of the registers that the instruction writes.

    The destination is the first operand if it is a register, vector or pair, for known and unknown opcodes
    alike.
    """
    opcode, operands = instruction.opcode, instruction.operands
    if _has_destination(instruction):
        return tuple(_registers(operands[0]))
    if opcode == "call" and operands:
        target = operands[0]
        assert isinstance(target, CallTarget)
        return tuple(name for value in target.returns for name in _registers(value))
    return ()


def uses(instruction: PtxInstruction) -> tuple[str, ...]:
    """Names of the registers that the instruction reads, including its guard."""
    opcode, operands = instruction.opcode, instruction.operands
    # wgmma accumulates into its destination; every other destination is only written.
    first = 1 if _has_destination(instruction) and opcode != "wgmma" else 0
    read = [name for value in operands[first:] for name in _registers(value)]
    if opcode == "call" and operands:
        target = operands[0]
        assert isinstance(target, CallTarget)
        read = [name for value in (target.target, *target.arguments) for name in _registers(value)]
    if instruction.guard:
        read.append(instruction.guard.name)
    return tuple(read)


def _has_destination(instruction: PtxInstruction) -> bool:
    operands = instruction.operands
    if not operands or not isinstance(operands[0], (PtxRegister, Vector, PtxPair, Selected)):
        return False
    if instruction.opcode in ("bar", "barrier"):
        return "red" in instruction.modifiers
    if instruction.opcode == "tcgen05":
        return "ld" in instruction.modifiers
    return instruction.opcode not in _NO_DESTINATION


def _registers(operand: Operand) -> Iterator[str]:
    """Names of the registers in an operand, without the sink `_`."""
    if isinstance(operand, PtxRegister):
        if operand.name != "_":
            yield operand.name
    elif isinstance(operand, PtxAddress):
        if isinstance(operand.base, PtxRegister):
            yield operand.base.name
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from _registers(item)
    elif isinstance(operand, (Negated, Selected)):
        yield from _registers(operand.register)
    elif isinstance(operand, PtxPair):
        yield from _registers(operand.first)
        yield from _registers(operand.second)
    elif isinstance(operand, TextureAddress):
        for item in (*operand.handles, operand.coordinates):
            yield from _registers(item)
