"""Lowering of matrix instructions: `ldmatrix stmatrix mma`.

Fragments are moved through consecutive registers. `wmma`, `wgmma`, integer and sparse products are not
lowered.
"""

from __future__ import annotations

from memsim.isa.op import require
from tests.ptx_front.lowering.assembler import Assembler
from tests.ptx_front.lowering.lowered_opcodes import lowers
from tests.ptx_front.lowering.memory import address, gathered, items_of, space_of, spread
from tests.ptx_front.program import PtxInstruction


@lowers("ldmatrix", "stmatrix")
def lower_matrix_access(asm: Assembler, instruction: PtxInstruction) -> None:
    names = instruction.modifiers
    (count,) = (number for name, number in {"x1": "", "x2": ".2", "x4": ".4"}.items() if name in names)
    require(names[-1] == "b16" and "m8n8" in names and space_of(instruction) == "shared")
    loads = instruction.opcode == "ldmatrix"
    register, where = instruction.operands if loads else reversed(instruction.operands)
    items = items_of(register)
    at = address(asm, where, "shared")
    name = f"{'LDSM' if loads else 'STSM'}.16.{'MT88' if 'trans' in names else 'M88'}{count}"
    row = asm.consecutive(items, 1)
    if loads:
        row = row or asm.temporary(len(items))
        asm.emit(name, row, at)
        spread(asm, row, items, "b32", 32)
        return
    asm.emit(name, at, row or gathered(asm, items, "b32", 32))


@lowers("mma")
def lower_product(asm: Assembler, instruction: PtxInstruction) -> None:
    """`mma.sync` of 16-bit floats and TF32."""
    names = [name for name in instruction.modifiers if name not in ("sync", "aligned", "row", "col")]
    shape = {"m16n8k16": "16816", "m16n8k8": "1688", "m16n8k4": "1684"}[names[0]]
    require(len(names) == 5 and "row" in instruction.modifiers)
    _, result, a, b, added = names
    require(result == added and a == b and result in ("f32", "f16") and a in ("f16", "bf16", "tf32"))
    to, *sources = instruction.operands
    rows = [gathered(asm, items_of(one), "b32", 32) for one in sources]
    target = asm.consecutive(items_of(to), 1)
    row = target or asm.temporary(len(items_of(to)))
    kind = "" if a == "f16" else f".{a.upper()}"
    asm.emit(f"HMMA.{shape}.{result.upper()}{kind}", row, *rows)
    spread(asm, row, items_of(to), "b32", 32)
