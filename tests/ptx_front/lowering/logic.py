"""Lowering of logic of bits and of predicates, and of finding and reversing bits. Semantics: PTX ISA."""

from __future__ import annotations

from memsim.isa.op import Immediate, Predicate, require
from tests.ptx_front.lowering.assembler import PT, RZ, Assembler, negated
from tests.ptx_front.lowering.integers import ONES, expanded, halves, integer_kind, targets
from tests.ptx_front.lowering.lowered_opcodes import lowers
from tests.ptx_front.lowering.slots import bits_of
from tests.ptx_front.program import PtxInstruction

_TABLES = {"and": 0xC0, "or": 0xFC, "xor": 0x3C, "not": 0x0F}


@lowers("and", "or", "xor", "not")
def lower_logic(asm: Assembler, instruction: PtxInstruction) -> None:
    kind = instruction.modifiers[-1]
    table = _TABLES[instruction.opcode]
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


@lowers("bfind")
def lower_find(asm: Assembler, instruction: PtxInstruction) -> None:
    kind = integer_kind(instruction, "shiftamt")
    to, a = instruction.operands
    expanded(asm, "IBFIND", asm.target(to), (a,), kind)
    if "shiftamt" in instruction.modifiers:
        found = asm.temporary_predicate()
        asm.emit("ISETP.GE.AND", found, PT, asm.target(to), RZ, PT)
        away = asm.temporary()
        asm.emit("IADD3", away, Immediate(bits_of(kind) - 1), negated(asm.target(to)), RZ)
        asm.emit("SEL", asm.target(to), away, ONES, found)


@lowers("brev")
def lower_reverse(asm: Assembler, instruction: PtxInstruction) -> None:
    kind = integer_kind(instruction)
    to, a = instruction.operands
    words, outs = halves(asm, a, kind), targets(asm, to, kind)
    turned = [asm.temporary() for _ in words]
    for target, word in zip(reversed(turned), words):
        asm.emit("BREV", target, word)
    for target, word in zip(outs, turned):
        asm.emit("MOV", target, word)
