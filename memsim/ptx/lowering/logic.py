"""Lowering of logic and shifts of bits and of predicates. Semantics: PTX ISA."""

from __future__ import annotations

from memsim.isa.op import Immediate, Predicate
from memsim.isa.registry import require
from memsim.ptx import program as ptx
from memsim.ptx.lowering.assembler import PT, RZ, Assembler
from memsim.ptx.lowering.integers import halves, integer_kind, targets
from memsim.ptx.lowering.lowered_opcodes import lowers
from memsim.ptx.lowering.slots import bits_of
from memsim.ptx.program import PtxInstruction

_AND, _OR, _XOR, _NOT = 0xC0, 0xFC, 0x3C, 0x0F


@lowers("and", "or", "xor", "not")
def lower_logic(asm: Assembler, instruction: PtxInstruction) -> None:
    kind = instruction.modifiers[-1]
    table = {"and": _AND, "or": _OR, "xor": _XOR, "not": _NOT}[instruction.opcode]
    to, a, *b = instruction.operands
    if kind == "pred":
        other = asm.predicate(b[0]) if b else PT
        logic(asm, asm.target_predicate(to), asm.predicate(a), other, table)
        return
    integer_kind(instruction)
    words = [halves(asm, operand, kind) for operand in (a, *b)]
    outs = targets(asm, to, kind)
    for i, target in enumerate(outs):
        sources = [*(operand[i] for operand in words), RZ, RZ][:3]
        asm.emit("LOP3.LUT", target, *sources, Immediate(table))


def logic(asm: Assembler, to: Predicate, a: Predicate, b: Predicate, table: int) -> None:
    """A function of two predicates, by its truth table."""
    asm.emit("PLOP3.LUT", to, PT, a, b, PT, Immediate(table), Immediate(0))


@lowers("cnot")
def lower_logical_not(asm: Assembler, instruction: PtxInstruction) -> None:
    kind = integer_kind(instruction)
    require(bits_of(kind) == 32)
    to, a = instruction.operands
    zero = asm.temporary_predicate()
    asm.emit("ISETP.EQ.AND", zero, PT, asm.word(a), RZ, PT)
    asm.emit("SEL", asm.target(to), Immediate(1), RZ, zero)


@lowers("lop3")
def lower_table(asm: Assembler, instruction: PtxInstruction) -> None:
    to, a, b, c, table = instruction.operands
    require(instruction.modifiers == ("b32",) and isinstance(table, ptx.PtxImmediate))
    asm.emit("LOP3.LUT", asm.target(to), *(asm.word(one) for one in (a, b, c, table)))


@lowers("shf")
def lower_funnel(asm: Assembler, instruction: PtxInstruction) -> None:
    way, how, kind = instruction.modifiers
    require(kind == "b32" and how in ("wrap", "clamp") and way in ("l", "r"))
    to, low, upper, by = instruction.operands
    wraps = ".W" if how == "wrap" else ""
    name = f"SHF.L{wraps}.U32.HI" if way == "l" else f"SHF.R{wraps}.U32"
    asm.emit(name, asm.target(to), asm.word(low), asm.word(by), asm.word(upper))
