"""Lowering of integer arithmetic.

32-bit operations become those of the chip; 16-bit operands are extended where they are read; 64-bit
operations are split into words where words are independent, and the rest uses `expanded_integers`.
Semantics: PTX ISA.
"""

from __future__ import annotations

from collections.abc import Sequence

from memsim.isa.op import Immediate, Operand, Predicate, Register, require
from tests.ptx_front import program as ptx
from tests.ptx_front.expanded_integers import EXPANDED
from tests.ptx_front.lowering.assembler import RZ, Assembler, high, negated
from tests.ptx_front.lowering.lowered_opcodes import lowers
from tests.ptx_front.lowering.slots import bits_of
from tests.ptx_front.program import PtxInstruction

ONES = Immediate(-1)


def integer_kind(instruction: PtxInstruction, *allowed: str) -> str:
    """The type; raises for modifiers other than the type and those allowed."""
    *given, kind = instruction.modifiers or ("",)
    require(kind[:1] in "bus" and kind[1:] in ("16", "32", "64") and not set(given) - set(allowed))
    return kind


def typed(kind: str) -> str:
    """A type in the spelling of `expanded_integers`."""
    return f".{'U' if kind[0] == 'b' else kind[0].upper()}{kind[1:]}"


def expanded(asm: Assembler, name: str, to: Register, sources: Sequence[ptx.Operand], kind: str) -> None:
    """An opcode of `expanded_integers`, which says which sources have the type and which are words."""
    kinds = zip(sources, EXPANDED[name].sources, strict=True)
    reads = [source(asm, one, kind) if of == "T" else asm.word(one) for one, of in kinds]
    asm.emit(name + typed(kind), to, *reads)


@lowers("div", "rem", "shl", "shr", "bfe", "bfi", "popc", "clz")
def lower_expanded(asm: Assembler, instruction: PtxInstruction) -> None:
    to, *sources = instruction.operands
    expanded(asm, f"I{instruction.opcode.upper()}", asm.target(to), sources, integer_kind(instruction))


def source(asm: Assembler, operand: ptx.Operand, kind: str) -> Operand:
    """A source of any width: a word or a pair."""
    return asm.pair(operand) if bits_of(kind) == 64 else asm.word(operand, f"b{bits_of(kind)}")


def number(asm: Assembler, operand: ptx.Operand, kind: str) -> Operand:
    """A source of at most 32 bits, extended according to its type."""
    return asm.word(operand, kind if kind[0] != "b" else f"u{kind[1:]}")


def halves(asm: Assembler, operand: ptx.Operand, kind: str) -> list[Operand]:
    """The words of a source, lower first."""
    if bits_of(kind) < 64:
        return [asm.word(operand)]
    if isinstance(operand, ptx.PtxImmediate) and isinstance(operand.value, int):
        return [asm.word(operand), asm.word(ptx.PtxImmediate(operand.value >> 32))]
    pair = asm.pair(operand)
    assert isinstance(pair, Register)
    return [pair, high(pair)]


def targets(asm: Assembler, operand: ptx.Operand, kind: str) -> list[Register]:
    """The words of the destination."""
    low = asm.target(operand)
    return [low] if bits_of(kind) < 64 else [low, high(low)]


# --- sums and products ----------------------------------------------------------------------


@lowers("add", "sub", "addc", "subc")
def lower_add(asm: Assembler, instruction: PtxInstruction) -> None:
    kind = instruction.modifiers[-1]
    if kind in ("s16x2", "u16x2"):
        packed(asm, instruction, "VIADD.16x2")
        return
    opcode, to = instruction.opcode, instruction.operands[0]
    subtracts = opcode.startswith("sub")
    if instruction.modifiers == ("sat", "s32"):
        require(opcode in ("add", "sub"))
        words = (asm.register(operand) for operand in instruction.operands[1:3])
        asm.emit(f"VIDEO.v{opcode}.s32.s32.s32.sat", asm.target(to), *words, RZ)
        return
    integer_kind(instruction, "cc")
    if opcode.endswith("c") or "cc" in instruction.modifiers:
        carried(asm, instruction, kind, subtracts)
        return
    a, b = (source(asm, operand, kind) for operand in instruction.operands[1:3])
    add(asm, kind, asm.target(to), a, negated(b) if subtracts else b)


def add(asm: Assembler, kind: str, to: Register, a: Operand, b: Operand) -> None:
    """A sum of words or of pairs."""
    asm.emit("IADD3.64" if bits_of(kind) == 64 else "IADD3", to, a, b, RZ)


def carried(asm: Assembler, instruction: PtxInstruction, kind: str, subtracts: bool) -> None:
    """Add and subtract with carry in, carry out or both."""
    a, b = (halves(asm, operand, kind) for operand in instruction.operands[1:3])
    to = targets(asm, instruction.operands[0], kind)
    bit = asm.carry("borrow" if subtracts else "carry")
    if subtracts:
        b = [_inverted(word) for word in b]
    carry = bit if instruction.opcode.endswith("c") else Predicate(None, not subtracts)
    chain(asm, to, a, b, carry, bit if "cc" in instruction.modifiers else None)


def chain(
    asm: Assembler,
    to: list[Register],
    a: list[Operand],
    b: list[Operand],
    carry: Predicate,
    out: Predicate | None,
) -> None:
    """A sum word by word, with a carry in; out: what gets the carry out.

    A difference is the sum with the complement and a carry of 1, as IADD3 does it.
    """
    between = out or asm.temporary_predicate()
    for target, x, y in zip(to, a, b):
        outs = [between] if out is not None or target is not to[-1] else []
        asm.emit("IADD3.X", target, *outs, x, y, RZ, carry, Predicate(None, True))
        carry = between


def _inverted(word: Operand) -> Operand:
    if isinstance(word, Immediate):
        return Immediate(~int(word.value))
    assert isinstance(word, Register)
    return Register(word.slot, inverted=True)


@lowers("mul", "mad", "madc")
def lower_multiply(asm: Assembler, instruction: PtxInstruction) -> None:
    names = instruction.modifiers
    kind = integer_kind(instruction, "lo", "hi", "wide", "cc")
    to, a, b, *c = instruction.operands
    adds = instruction.opcode != "mul"
    require(len(c) == adds and names[0] in ("lo", "hi", "wide"))
    if instruction.opcode == "madc" or "cc" in names:
        product = asm.temporary(bits_of(kind) // 32)
        half(asm, product, a, b, kind, names[0])
        words: list[Operand] = [product] if bits_of(kind) < 64 else [product, high(product)]
        bit, addend = asm.carry("carry"), halves(asm, c[0], kind)
        carry = bit if instruction.opcode == "madc" else Predicate(None, True)
        chain(asm, targets(asm, to, kind), words, addend, carry, bit if "cc" in names else None)
        return
    if names[0] == "wide":
        wide(asm, asm.target(to), a, b, c, kind)
        return
    if names[0] == "lo" and bits_of(kind) <= 32:
        added = source(asm, c[0], kind) if adds else RZ
        asm.emit("IMAD", asm.target(to), source(asm, a, kind), source(asm, b, kind), added)
        return
    product = asm.temporary(bits_of(kind) // 32 or 1) if adds else asm.target(to)
    half(asm, product, a, b, kind, names[0])
    if adds:
        add(asm, kind, asm.target(to), product, source(asm, c[0], kind))


def half(asm: Assembler, to: Register, a: ptx.Operand, b: ptx.Operand, kind: str, which: str) -> None:
    """The low or high half of a product."""
    expanded(asm, "IMULLO" if which == "lo" else "IMULHI", to, (a, b), kind)


def wide(
    asm: Assembler, to: Register, a: ptx.Operand, b: ptx.Operand, c: list[ptx.Operand], kind: str
) -> None:
    """A product of twice the operands' width."""
    x, y = number(asm, a, kind), number(asm, b, kind)
    if bits_of(kind) == 16:
        asm.emit("IMAD", to, x, y, asm.word(c[0]) if c else RZ)
        return
    sign = "" if kind[0] == "s" else ".U32"
    asm.emit(f"IMAD.WIDE{sign}", to, x, y, asm.pair(c[0]) if c else RZ)


@lowers("mul24", "mad24")
def lower_multiply_24(asm: Assembler, instruction: PtxInstruction) -> None:
    kind = integer_kind(instruction, "lo")
    require(bits_of(kind) == 32 and "lo" in instruction.modifiers)
    to, a, b, *c = instruction.operands
    low = [asm.temporary(), asm.temporary()]
    for part, operand in zip(low, (a, b)):
        extend = "SGXT" if kind == "s32" else "SGXT.U32"
        asm.emit(extend, part, asm.word(operand), Immediate(24))
    asm.emit("IMAD", asm.target(to), *low, asm.word(c[0]) if c else RZ)


# --- sign, min and max, absolute difference -----------------------------------------------------


@lowers("min", "max")
def lower_min_max(asm: Assembler, instruction: PtxInstruction) -> None:
    kind, smaller = instruction.modifiers[-1], instruction.opcode == "min"
    which = Predicate(None, not smaller)
    relu = ".RELU" if "relu" in instruction.modifiers else ""
    if kind in ("s16x2", "u16x2"):
        packed(asm, instruction, f"VIMNMX.{kind[0].upper()}16x2{relu}", which)
        return
    integer_kind(instruction, "relu")
    to, a, b = instruction.operands
    if kind in ("s32", "u32"):
        sign = "" if kind == "s32" else ".U32"
        asm.emit(f"VIMNMX{sign}{relu}", asm.target(to), asm.word(a), asm.word(b), which)
        return
    require(not relu)
    expanded(asm, "IMIN" if smaller else "IMAX", asm.target(to), (a, b), kind)


def packed(asm: Assembler, instruction: PtxInstruction, name: str, *more: Operand) -> None:
    """Two 16-bit numbers in a word."""
    require(set(instruction.modifiers[:-1]) <= {"relu"})
    to, a, b = instruction.operands
    asm.emit(name, asm.target(to), asm.register(a), asm.register(b), *more)


@lowers("abs", "neg")
def lower_sign(asm: Assembler, instruction: PtxInstruction) -> None:
    kind = instruction.modifiers[-1]
    to, a = instruction.operands
    integer_kind(instruction)
    if instruction.opcode == "neg":
        add(asm, kind, asm.target(to), RZ, negated(asm.registers(a, bits_of(kind))))
    elif bits_of(kind) == 64:
        turned = asm.temporary(2)
        add(asm, kind, turned, RZ, negated(asm.registers(a, bits_of(kind))))
        # The maximum of a number and its negative; for the lowest number both are the same.
        asm.emit("IMAX.S64", asm.target(to), asm.registers(a, bits_of(kind)), turned)
    else:
        asm.emit("IABS", asm.target(to), number(asm, a, kind))


@lowers("sad")
def lower_distance(asm: Assembler, instruction: PtxInstruction) -> None:
    kind = integer_kind(instruction)
    to, a, b, c = instruction.operands
    apart = asm.temporary(bits_of(kind) // 32 or 1)
    expanded(asm, "IDISTANCE", apart, (a, b), kind)
    add(asm, kind, asm.target(to), apart, source(asm, c, kind))
