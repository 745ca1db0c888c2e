"""Lowering of `cvt`: between integer widths, integers and floats, and floating-point types.

Saturation of 64-bit integers and 8-bit floats are not lowered.
"""

from __future__ import annotations

from memsim.isa.op import Immediate, Register, Unsupported, require
from tests.ptx_front import program as ptx
from tests.ptx_front.lowering.assembler import RZ, Assembler, high
from tests.ptx_front.lowering.floats import MODES, read
from tests.ptx_front.lowering.lowered_opcodes import lowers
from tests.ptx_front.lowering.slots import bits_of
from tests.ptx_front.program import PtxInstruction

_INTEGERS = {f"{sign}{bits}" for sign in "us" for bits in (8, 16, 32, 64)}
_FLOATS = {"f16": "F16", "bf16": "BF16", "f32": "F32", "f64": "F64"}
_INTEGRAL = {"rni": "", "rzi": ".TRUNC", "rmi": ".FLOOR", "rpi": ".CEIL"}


@lowers("cvt")
def lower_convert(asm: Assembler, instruction: PtxInstruction) -> None:
    *given, target, source = instruction.modifiers
    to_int, from_int = target in _INTEGERS, source in _INTEGERS
    rounding = [name for name in given if name in MODES or name in _INTEGRAL or name == "rna"]
    rest = set(given) - set(rounding)
    mode = rounding[0] if rounding else ""
    require(len(rounding) <= 1)
    to, *sources = instruction.operands
    if target in ("f16x2", "bf16x2"):
        lower_pack(asm, instruction, mode, rest)
    elif to_int and from_int:
        integers(asm, to, sources[0], target, source, rest)
    elif to_int and source in _FLOATS and mode in _INTEGRAL and not rest - {"ftz"}:
        to_integer(asm, to, sources[0], target, source, _INTEGRAL[mode] + _flush(rest, source))
    elif from_int and target in _FLOATS and (not mode or mode in MODES) and not rest:
        from_integer(asm, to, sources[0], target, source, MODES.get(mode, ""))
    elif target in _FLOATS and source in _FLOATS:
        floats(asm, to, sources[0], target, source, mode, rest)
    else:
        raise Unsupported


def _flush(rest: set[str], source: str) -> str:
    return ".FTZ" if "ftz" in rest and source == "f32" else ""


def integers(
    asm: Assembler, to: ptx.Operand, a: ptx.Operand, target: str, source: str, rest: set[str]
) -> None:
    """Read with the source's width and sign, truncate to the target's width, extend to the register's."""
    require(rest <= {"sat"})
    if rest:
        clamp(asm, to, a, target, source)
        return
    if bits_of(target) > bits_of(source):
        extend(asm, to, a, source, target)
    elif bits_of(target) == 64:
        asm.move_pair(asm.target(to), a)
    else:
        asm.emit(
            "MOV", asm.target(to), asm.word(a, target if min(map(bits_of, (target, source))) < 32 else "b32")
        )
        widen(asm, to, target)


def clamp(asm: Assembler, to: ptx.Operand, a: ptx.Operand, target: str, source: str) -> None:
    """Saturate to the range of the target type."""
    (least, most), (lowest, highest) = limits(target), limits(source)
    wide = bits_of(source) == 64
    kind = f".{source[0].upper()}{64 if wide else 32}"
    found = asm.temporary(2)
    value = asm.pair(a) if wide else asm.word(a, source)
    asm.emit(f"IMAX{kind}", found, value, Immediate(max(least, lowest)))
    asm.emit(f"IMIN{kind}", found, found, Immediate(min(most, highest)))
    if not wide:
        extend_pair(asm, found, source[0] == "s")
    low = asm.target(to)
    asm.emit("MOV", low, found)
    if bits_of(target) == 64:
        asm.emit("MOV", high(low), high(found))
    else:
        widen(asm, to, target)


def limits(kind: str) -> tuple[int, int]:
    """The smallest and the largest value of an integer type."""
    bits = bits_of(kind)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)


def extend(asm: Assembler, to: ptx.Operand, a: ptx.Operand, source: str, target: str) -> None:
    """Extend a value to a wider register."""
    low = asm.target(to)
    asm.emit("MOV", low, asm.word(a, source))
    if bits_of(target) == 64:
        extend_pair(asm, low, source[0] == "s")
    else:
        widen(asm, to, target)


def extend_pair(asm: Assembler, low: Register, signed: bool) -> None:
    """The upper word of a pair: sign or zero extension of the lower one."""
    if signed:
        asm.emit("SHF.R.S32.HI", high(low), RZ, Immediate(31), low)
    else:
        asm.emit("MOV", high(low), RZ)


def widen(asm: Assembler, to: ptx.Operand, kind: str) -> None:
    """Extend a result to a register that is wider than its type, as the type says."""
    if not isinstance(to, ptx.PtxRegister) or to.name == "_":
        return
    bits, low = bits_of(kind), asm.target(to)
    if bits < 16 or (bits < 32 and asm.kind(to)[1:] != "16"):
        asm.emit("SGXT" if kind[0] == "s" else "SGXT.U32", low, low, Immediate(bits))
    fill_pair(asm, to, kind)


def fill_pair(asm: Assembler, to: ptx.Operand, kind: str) -> None:
    """Extend a word to a destination that is a pair, as the type says."""
    if bits_of(kind) < 64 and isinstance(to, ptx.PtxRegister) and to.name != "_" and asm.words(to.name) == 2:
        extend_pair(asm, asm.target(to), kind[0] == "s")


def to_integer(asm: Assembler, to: ptx.Operand, a: ptx.Operand, target: str, source: str, how: str) -> None:
    """Rounded, and saturated to the target's range."""
    asm.emit(f"F2I.{target.upper()}.{_FLOATS[source]}{how}", asm.target(to), read(asm, a, source))
    widen(asm, to, target)


def from_integer(asm: Assembler, to: ptx.Operand, a: ptx.Operand, target: str, source: str, how: str) -> None:
    """Rounded to nearest or in a direction."""
    operand = asm.registers(a, 64) if bits_of(source) == 64 else asm.register(a)
    asm.emit(f"I2F.{_FLOATS[target]}.{source.upper()}{how}", asm.target(to), operand)


def floats(
    asm: Assembler, to: ptx.Operand, a: ptx.Operand, target: str, source: str, mode: str, rest: set[str]
) -> None:
    """Between floating-point types, or to an integral value of the same type."""
    value = read(asm, a, source)
    flush = _flush(rest, source)
    require(rest <= {"ftz", "sat"} and mode != "rna")
    if "sat" in rest:
        require((target, source) == ("f32", "f32") and not mode)
        asm.emit(f"FADD.SAT{flush}", asm.target(to), value, Register(None, negated=True))
    elif target == source and mode in _INTEGRAL:
        asm.emit(f"FRND.{_FLOATS[target]}{_INTEGRAL[mode]}{flush}", asm.target(to), value)
    elif (
        mode in _INTEGRAL
        or (flush and target != "f32" and mode not in ("", "rn"))
        or ("ftz" in rest and target == "f32" and source == "f64")
    ):
        raise Unsupported
    else:
        asm.emit(
            f"F2F.{_FLOATS[target]}.{_FLOATS[source]}{MODES.get(mode, '')}{flush}", asm.target(to), value
        )


def lower_pack(asm: Assembler, instruction: PtxInstruction, mode: str, rest: set[str]) -> None:
    """Two float32 packed into one register, the first in the upper half."""
    target, source = instruction.modifiers[-2:]
    require(source == "f32" and mode in ("rn", "rz") and rest <= {"relu"} and len(instruction.operands) == 3)
    to, a, b = instruction.operands
    name = f"F2FP.{'RELU.' if rest else ''}{target[:-2].upper()}.F32.PACK_AB{MODES[mode]}"
    asm.emit(name, asm.target(to), read(asm, a, source), read(asm, b, source))
