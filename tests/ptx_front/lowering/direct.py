"""Lowering of instructions that are one of the chip with the same operands, perhaps in another order.

Semantics: PTX ISA.
"""

from __future__ import annotations

from memsim.isa.op import Operand
from tests.ptx_front.lowering.assembler import PT, Assembler
from tests.ptx_front.lowering.lowered_opcodes import lowers
from tests.ptx_front.program import PtxInstruction

_WAYS = ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
#: PTX instruction -> machine instruction. Its operands: the destination (TO), those of PTX by number, or PT.
DIRECT = {
    "prmt.b32": "PRMT TO 1 3 2",
    **{f"prmt.b32.{way}": f"PRMT.{way.upper()} TO 1 3 2" for way in _WAYS},
    "lop3.b32": "LOP3.LUT TO 1 2 3 4",
    "shf.l.wrap.b32": "SHF.L.W.U32.HI TO 1 3 2",
    "shf.l.clamp.b32": "SHF.L.U32.HI TO 1 3 2",
    "shf.r.wrap.b32": "SHF.R.W.U32 TO 1 3 2",
    "shf.r.clamp.b32": "SHF.R.U32 TO 1 3 2",
    "szext.wrap.s32": "SGXT.W TO 1 2",
    "szext.clamp.s32": "SGXT TO 1 2",
    "szext.wrap.u32": "SGXT.W.U32 TO 1 2",
    "szext.clamp.u32": "SGXT.U32 TO 1 2",
    "bmsk.wrap.b32": "BMSK.W TO 1 2",
    "bmsk.clamp.b32": "BMSK.C TO 1 2",
    **{f"dp4a.{a}32.{b}32": f"IDP.4A.{a}8.{b}8 TO 1 2 3".upper() for a in "su" for b in "su"},
    **{f"dp2a.lo.{a}32.{b}32": f"IDP.2A.LO.{a}16.{b}8 TO 1 2 3".upper() for a in "su" for b in "su"},
    **{f"dp2a.hi.{a}32.{b}32": f"IDP.2A.HI.{a}16.{b}8 TO 1 2 3".upper() for a in "su" for b in "su"},
    "activemask.b32": "VOTE.ANY TO PT PT",
    "tanh.approx.f32": "MUFU.TANH TO 1",
    "nanosleep.u32": "NANOSLEEP 0",
    **dict.fromkeys(("ret", "ret.uni", "exit"), "EXIT"),
    "trap": "BPT.TRAP",
}


@lowers(*{name.partition(".")[0] for name in DIRECT})
def lower_direct(asm: Assembler, instruction: PtxInstruction) -> None:
    name, *places = DIRECT[instruction.name].split()
    operands = instruction.operands

    def operand(place: str) -> Operand:
        if place == "PT":
            return PT
        return asm.target(operands[0]) if place == "TO" else asm.word(operands[int(place)])

    asm.emit(name, *map(operand, places))
