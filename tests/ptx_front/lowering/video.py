"""Lowering of the video instructions, whose operands may be bytes or halves of registers.

Semantics: PTX ISA, "Video Instructions".
"""

from __future__ import annotations

from dataclasses import replace

from memsim.isa.op import Register, require
from tests.ptx_front import program as ptx
from tests.ptx_front.expanded_video import parsed
from tests.ptx_front.lowering.assembler import RZ, Assembler
from tests.ptx_front.lowering.lowered_opcodes import lowers
from tests.ptx_front.program import PtxInstruction

_WORDS = ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vset", "vshl", "vshr")
_PACKED = ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vset", "vavrg")


@lowers(*_WORDS, *(f"{name}{count}" for name in _PACKED for count in (2, 4)))
def lower_video(asm: Assembler, instruction: PtxInstruction) -> None:
    parsed((instruction.opcode, *instruction.modifiers))
    to, a, b, *c = instruction.operands
    part = to.selector if isinstance(to, ptx.Selected) else ""
    target = asm.target(to.register if isinstance(to, ptx.Selected) else to)
    require(len(c) <= 1)
    asm.emit(
        f"VIDEO.{instruction.name}",
        replace(target, part=part),
        _source(asm, a),
        _source(asm, b),
        asm.register(c[0]) if c else RZ,
    )


def _source(asm: Assembler, operand: ptx.Operand) -> Register:
    if isinstance(operand, ptx.Selected):
        return replace(asm.register(operand.register), part=operand.selector)
    return asm.register(operand)
