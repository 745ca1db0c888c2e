"""Lowering of instructions that permute, extract, count and find bits. Semantics: PTX ISA."""

from __future__ import annotations

from memsim.isa.op import Immediate
from memsim.isa.registry import require
from memsim.ptx.lowering.assembler import PT, RZ, Assembler, negated
from memsim.ptx.lowering.integers import ONES, expanded, halves, integer_kind, targets
from memsim.ptx.lowering.lowered_opcodes import lowers
from memsim.ptx.lowering.slots import bits_of
from memsim.ptx.program import PtxInstruction


@lowers("prmt")
def lower_permute(asm: Assembler, instruction: PtxInstruction) -> None:
    kind, *mode = instruction.modifiers
    require(kind == "b32" and set(mode) <= {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"})
    to, a, b, selector = instruction.operands
    name = ".".join(("PRMT", *(one.upper() for one in mode)))
    asm.emit(name, asm.target(to), asm.word(a), asm.word(selector), asm.word(b))


@lowers("szext", "bmsk")
def lower_mask(asm: Assembler, instruction: PtxInstruction) -> None:
    how, kind = instruction.modifiers
    to, a, b = instruction.operands
    require(how in ("wrap", "clamp") and kind in ("s32", "u32", "b32"))
    wraps = ".W" if how == "wrap" else ".C" if instruction.opcode == "bmsk" else ""
    if instruction.opcode == "bmsk":
        asm.emit(f"BMSK{wraps}", asm.target(to), asm.word(a), asm.word(b))
        return
    sign = "" if kind == "s32" else ".U32"
    asm.emit(f"SGXT{wraps}{sign}", asm.target(to), asm.word(a), asm.word(b))


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
