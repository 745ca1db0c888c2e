"""Lowering of matrix and texture instructions: `ldmatrix stmatrix mma tex`.

Fragments are moved through consecutive registers. `wmma`, `wgmma`, integer and sparse products, and textures
other than `tex1Dfetch<float4>` are not lowered.
"""

from __future__ import annotations

from memsim.isa.op import Immediate, Register, Special
from memsim.ptx import program as ptx
from memsim.ptx.lowering.assembler import RZ, Assembler
from memsim.ptx.lowering.lowered_opcodes import lowers
from memsim.ptx.lowering.memory import address, gathered, items_of, space_of, spread
from memsim.ptx.lowering.slots import NotLowered
from memsim.ptx.program import PtxInstruction


@lowers("ldmatrix", "stmatrix")
def lower_matrix_access(asm: Assembler, instruction: PtxInstruction) -> None:
    names = instruction.modifiers
    counts = {"x1": "", "x2": ".2", "x4": ".4"}
    count = next((counts[name] for name in names if name in counts), None)
    if count is None or names[-1] != "b16" or "m8n8" not in names or space_of(instruction) != "shared":
        raise NotLowered(instruction.name)
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
    shape = {"m16n8k16": "16816", "m16n8k8": "1688", "m16n8k4": "1684"}.get(names[0])
    if shape is None or len(names) != 5 or "row" not in instruction.modifiers:
        raise NotLowered(instruction.name)
    _, result, a, b, added = names
    if result != added or a != b or result not in ("f32", "f16") or a not in ("f16", "bf16", "tf32"):
        raise NotLowered(instruction.name)
    to, *sources = instruction.operands
    rows = [gathered(asm, items_of(one), "b32", 32) for one in sources]
    target = asm.consecutive(items_of(to), 1)
    row = target or asm.temporary(len(items_of(to)))
    kind = "" if a == "f16" else f".{a.upper()}"
    asm.emit(f"HMMA.{shape}.{result.upper()}{kind}", row, *rows)
    spread(asm, row, items_of(to), "b32", 32)


@lowers("tex")
def lower_fetch(asm: Assembler, instruction: PtxInstruction) -> None:
    """`tex1Dfetch<float4>`."""
    to, where = instruction.operands
    known = instruction.modifiers == ("1d", "v4", "f32", "s32") and isinstance(where, ptx.TextureAddress)
    if not known or not isinstance(where, ptx.TextureAddress) or len(where.handles) != 1:
        raise NotLowered(instruction.name)
    index = items_of(where.coordinates)[0]
    handle = asm.pair(where.handles[0])
    upper, lower = asm.temporary(2), asm.temporary(2)
    asm.emit("TLD.LZ", upper, lower, asm.register(index), handle, Immediate(0), Special("1D"))
    assert upper.slot is not None and lower.slot is not None
    found = [lower.slot, lower.slot + 1, upper.slot, upper.slot + 1]
    for item, slot in zip(items_of(to), found):
        if asm.target(item) != RZ:
            asm.emit("MOV", asm.target(item), Register(slot))
