"""Lowering of texture fetches: `tex tld4`, of one, two and three dimensions and of layers of two."""

from __future__ import annotations

from memsim.isa.op import Immediate, Register, Special, operand_of_kind, require
from tests.ptx_front import program as ptx
from tests.ptx_front.lowering.assembler import RZ, Assembler
from tests.ptx_front.lowering.lowered_opcodes import lowers
from tests.ptx_front.lowering.memory import gathered, items_of
from tests.ptx_front.program import PtxInstruction

#: What machine code calls a texture, and its coordinates, of layers with the layer first.
SHAPES = {"1d": ("1D", 1), "2d": ("2D", 2), "3d": ("3D", 3), "a2d": ("ARRAY_2D", 3)}
RESULTS = ("f32", "s32", "u32")


@lowers("tex")
def lower_fetch(asm: Assembler, instruction: PtxInstruction) -> None:
    """`tex1Dfetch` by a number, others at coordinates that are floats."""
    to, where = instruction.operands
    require(len(instruction.modifiers) == 4)
    shape, vector, result, kind = instruction.modifiers
    require(vector == "v4" and result in RESULTS and shape in SHAPES)
    if kind == "s32":
        require(shape == "1d")
        _emit(asm, "TLD.LZ", to, operand_of_kind(where, ptx.TextureAddress), "1D", 1, second=False)
        return
    require(kind == "f32")
    _emit(asm, "TEX.LL", to, operand_of_kind(where, ptx.TextureAddress), *SHAPES[shape], second=True)


@lowers("tld4")
def lower_gather(asm: Assembler, instruction: PtxInstruction) -> None:
    """`tex2Dgather`."""
    to, where = instruction.operands
    require(len(instruction.modifiers) == 5)
    channel, *rest, result, kind = instruction.modifiers
    require(channel in ("r", "g", "b", "a") and rest == ["2d", "v4"] and result in RESULTS and kind == "f32")
    texture = operand_of_kind(where, ptx.TextureAddress)
    _emit(asm, f"TLD4.{channel.upper()}", to, texture, "2D", 2, second=False)


def _emit(
    asm: Assembler,
    name: str,
    to: ptx.Operand,
    texture: ptx.TextureAddress,
    shape: str,
    coordinates: int,
    second: bool,
) -> None:
    """One fetch. second: it names a level of detail."""
    require(len(texture.handles) == 1)
    at = gathered(asm, items_of(texture.coordinates)[:coordinates], "b32", 32)
    handle = asm.pair(texture.handles[0])
    upper, lower = asm.temporary(2), asm.temporary(2)
    level = [RZ] if second else []
    asm.emit(name, upper, lower, at, *level, handle, Immediate(0), Special(shape))
    assert upper.slot is not None and lower.slot is not None
    found = [lower.slot, lower.slot + 1, upper.slot, upper.slot + 1]
    for item, slot in zip(items_of(to), found):
        if asm.target(item) != RZ:
            asm.emit("MOV", asm.target(item), Register(slot))
