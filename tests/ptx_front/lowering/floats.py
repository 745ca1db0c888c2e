"""Lowering of floating-point arithmetic.

Exact divisions and roots become one instruction of `expanded_floats`; approximations become MUFU,
as ptxas does it. 8-bit floats are not lowered, nor directed rounding of anything but sum, product and
quotient.
"""

from __future__ import annotations

from memsim.isa.op import Immediate, Operand, Predicate, Register, Unsupported, require
from tests.ptx_front import program as ptx
from tests.ptx_front.lowering.assembler import RZ, Assembler, negated
from tests.ptx_front.lowering.integers import halves, targets
from tests.ptx_front.lowering.lowered_opcodes import lowers
from tests.ptx_front.program import PtxInstruction

MODES = {"rn": "", "rz": ".RZ", "rm": ".RM", "rp": ".RP"}
HALVES = {"f16": "", "f16x2": "", "bf16": ".BF16_V2", "bf16x2": ".BF16_V2"}
_OPCODES = {"add": "ADD", "sub": "ADD", "mul": "MUL", "fma": "FMA", "mad": "FMA"}


def read(asm: Assembler, operand: ptx.Operand, kind: str) -> Operand:
    """A floating-point source of any type."""
    if kind == "f64":
        return asm.double(operand)
    found = asm.word(operand, "f32" if kind == "f32" else "b32")
    if kind in ("f16", "bf16") and isinstance(found, Register):
        return Register(found.slot, part="H0_H0")  # the upper half may hold anything
    return found


def flags(instruction: PtxInstruction, **names: str) -> str:
    """The modifiers between opcode and type in machine spelling."""
    given = instruction.modifiers[:-1]
    require(set(given) <= set(names))
    return "".join(names[name] for name in dict.fromkeys(given))


@lowers("add", "sub", "mul", "fma", "mad", floats=True)
def lower_arithmetic(asm: Assembler, instruction: PtxInstruction) -> None:
    """Add, multiply and fused multiply-add."""
    kind, name = instruction.modifiers[-1], _OPCODES[instruction.opcode]
    to, *sources = instruction.operands
    reads = [read(asm, operand, kind) for operand in sources]
    if instruction.opcode == "sub":
        require(not isinstance(reads[1], Immediate) or isinstance(reads[1].value, float))
        reads[1] = negated(reads[1])
    if kind in HALVES:
        given = flags(instruction, rn="", ftz=".FTZ", sat=".SAT", relu=".RELU") + HALVES[kind]
        asm.emit(f"H{name}2{given}", asm.target(to), *(in_register(asm, one) for one in reads))
    elif kind == "f64":
        asm.emit(f"D{name}{flags(instruction, **MODES)}", asm.target(to), *reads)
    elif kind == "f32":
        opcode = "FFMA" if name == "FMA" else f"F{name}"
        asm.emit(f"{opcode}{flags(instruction, **MODES, ftz='.FTZ', sat='.SAT')}", asm.target(to), *reads)
    else:
        raise Unsupported


def in_register(asm: Assembler, operand: Operand) -> Operand:
    """An immediate for two halves, as bits in a register; the machine would read a number as floats."""
    if not isinstance(operand, Immediate) or isinstance(operand.value, float):
        return operand
    moved = asm.temporary()
    asm.emit("MOV", moved, operand)
    return moved


@lowers("rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos")
def lower_function(asm: Assembler, instruction: PtxInstruction) -> None:
    kind, opcode = instruction.modifiers[-1], instruction.opcode
    to, a = instruction.operands
    always = opcode not in ("rcp", "sqrt")
    require(kind in ("f32", "f64") and (not always or "approx" in instruction.modifiers))
    name = f"{'F' if kind == 'f32' else 'D'}{'RSQ' if opcode == 'rsqrt' else opcode.upper()}"
    given = flags(instruction, **MODES, approx=".APPROX" if kind == "f32" else "", ftz=".FTZ")
    asm.emit(name + given, asm.target(to), read(asm, a, kind))


@lowers("div", floats=True)
def lower_divide(asm: Assembler, instruction: PtxInstruction) -> None:
    """Division; an approximate one gives the nearest float."""
    kind = instruction.modifiers[-1]
    require(kind in ("f32", "f64"))
    given = flags(instruction, **MODES, ftz=".FTZ", approx=".APPROX", full=".APPROX")
    to, a, b = instruction.operands
    name = "FDIV" if kind == "f32" else "DDIV"
    asm.emit(name + given, asm.target(to), read(asm, a, kind), read(asm, b, kind))


@lowers("abs", "neg", floats=True)
def lower_sign(asm: Assembler, instruction: PtxInstruction) -> None:
    """`neg` and `abs`: flip or clear the sign bit."""
    kind, turns = instruction.modifiers[-1], instruction.opcode == "neg"
    to, a = instruction.operands
    if kind == "f32" and "ftz" in instruction.modifiers:
        source = asm.register(a, kind)
        changed = Register(source.slot, negated=turns, absolute=not turns)
        asm.emit("FADD.FTZ", asm.target(to), changed, negated(RZ))
        return
    require(not set(instruction.modifiers[:-1]) and kind != "f8")
    bits = {"f16": 0x8000, "bf16": 0x8000, "f16x2": 0x80008000, "bf16x2": 0x80008000}.get(kind, 1 << 31)
    mask, table = (bits, 0x3C) if turns else (bits ^ 0xFFFFFFFF, 0xC0)
    words, outs = halves(asm, a, kind), targets(asm, to, kind)
    if len(words) == 2:
        asm.emit("MOV", outs[0], words[0])
    asm.emit("LOP3.LUT", outs[-1], words[-1], Immediate(mask), RZ, Immediate(table))


@lowers("copysign")
def lower_copy_sign(asm: Assembler, instruction: PtxInstruction) -> None:
    kind = instruction.modifiers[-1]
    to, signed, sized = instruction.operands
    x, y, outs = halves(asm, signed, kind), halves(asm, sized, kind), targets(asm, to, kind)
    if len(y) == 2:
        asm.emit("MOV", outs[0], y[0])
    asm.emit("LOP3.LUT", outs[-1], x[-1], Immediate(-(1 << 31)), y[-1], Immediate(0xE2))


@lowers("min", "max", floats=True)
def lower_min_max(asm: Assembler, instruction: PtxInstruction) -> None:
    """The minimum or maximum of two."""
    kind, which = instruction.modifiers[-1], Predicate(None, instruction.opcode != "min")
    to, *sources = instruction.operands
    require(len(sources) == 2)
    reads = [read(asm, one, kind) for one in sources]
    if kind == "f64" and len(instruction.modifiers) == 1:
        asm.emit("DMNMX", asm.target(to), *reads, which)
    elif kind == "f32":
        asm.emit(f"FMNMX{flags(instruction, ftz='.FTZ', NaN='.NAN')}", asm.target(to), *reads, which)
    elif kind in HALVES:
        given = flags(instruction, ftz=".FTZ", NaN=".NAN") + HALVES[kind]
        asm.emit(f"HMNMX2{given}", asm.target(to), *(in_register(asm, one) for one in reads), which)
    else:
        raise Unsupported
