"""Lowering of `mov`, with packed and unpacked vectors, and of generic addresses.

A generic address of shared, local or constant memory lies in that space's window.
"""

from __future__ import annotations

from memsim.isa.op import Address, Immediate, Register, operand_of_kind, require
from memsim.state.address_spaces import CONSTANT_WINDOW, LOCAL_WINDOW, SHARED_WINDOW
from tests.ptx_front import program as ptx
from tests.ptx_front.lowering.assembler import PT, RZ, Assembler, following, high
from tests.ptx_front.lowering.logic import logic
from tests.ptx_front.lowering.lowered_opcodes import lowers
from tests.ptx_front.lowering.slots import bits_of
from tests.ptx_front.program import PtxInstruction

_WINDOWS = {"global": 0, "shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "const": CONSTANT_WINDOW}


@lowers("mov")
def lower_move(asm: Assembler, instruction: PtxInstruction) -> None:
    kind = instruction.modifiers[-1]
    require(len(instruction.modifiers) == 1)
    to, a = instruction.operands
    if kind == "pred":
        logic(asm, asm.target_predicate(to), asm.predicate(a), PT, 0xF0)
    elif isinstance(to, ptx.Vector):
        unpack(asm, to, a, bits_of(kind))
    elif isinstance(a, ptx.Vector):
        pack(asm, asm.target(to), a, bits_of(kind))
    elif bits_of(kind) == 64:
        asm.move_pair(asm.target(to), a)
    elif isinstance(a, ptx.PtxSpecial):
        special = asm.special(a.name)
        asm.emit("MOV", asm.target(to), special)
    else:
        asm.emit("MOV", asm.target(to), asm.word(a))


def element_bits(vector: ptx.Vector, bits: int) -> int:
    """Bits of each element."""
    size = bits // len(vector.items)
    require(bits in (32, 64, 128) and size in (8, 16, 32, 64))
    return size


def unpack(asm: Assembler, to: ptx.Vector, a: ptx.Operand, bits: int) -> None:
    """`mov.b64 {a, b}, c`: the first element gets the lowest bits."""
    size = element_bits(to, bits)
    words = asm.temporary(bits // 32)
    asm.move_pair(words, a) if bits == 64 else asm.emit("MOV", words, asm.word(a))
    for i, item in enumerate(to.items):
        word, target = following(words, i * size // 32), asm.target(item)
        if target == RZ:
            continue
        asm.emit("MOV", target, word if size >= 32 else part(word, i, size))
        if size == 64:
            asm.emit("MOV", high(target), high(word))


def part(word: Register, number: int, size: int) -> Register:
    """A piece of a word, by its index among pieces of that size."""
    place = number % (32 // size)
    return Register(word.slot, part=f"H{place}" if size == 16 else f"B{place}")


def pack(asm: Assembler, to: Register, vector: ptx.Vector, bits: int) -> None:
    """`mov.b64 c, {a, b}`: the first element becomes the lowest bits."""
    size = element_bits(vector, bits)
    items, count = list(vector.items), max(1, 32 // size)
    words = asm.temporary(bits // 32)
    if size == 64:
        for i, item in enumerate(items):
            asm.move_pair(following(words, 2 * i), item)
    for i in range(bits // 32) if size < 64 else ():
        if size < 32:
            pack_word(asm, following(words, i), items[i * count : (i + 1) * count])
        else:
            asm.emit("MOV", following(words, i), asm.word(items[i]))
    for i in range(bits // 32):
        asm.emit("MOV", following(to, i), following(words, i))


def pack_word(asm: Assembler, word: Register, items: list[ptx.Operand]) -> None:
    """Pack two halves or four bytes into a word."""
    sources = [asm.word(item) for item in items]
    if len(sources) == 2:
        asm.emit("PRMT", word, sources[0], Immediate(0x5410), sources[1])
        return
    pairs = [asm.temporary(), asm.temporary()]
    for pair, (low, upper) in zip(pairs, (sources[:2], sources[2:])):
        asm.emit("PRMT", pair, low, Immediate(0x0040), upper)
    asm.emit("PRMT", word, pairs[0], Immediate(0x5410), pairs[1])


@lowers("cvta")
def lower_generic(asm: Assembler, instruction: PtxInstruction) -> None:
    """A generic address of shared, local or constant memory lies in that space's window."""
    *back, space, kind = instruction.modifiers
    window = _WINDOWS[space.split("::")[0]]
    require(back in ([], ["to"]) and kind == "u64")
    to, a = instruction.operands
    if window == 0:
        asm.move_pair(asm.target(to), a)
        return
    added = asm.pair(ptx.PtxImmediate(-window if back else window))
    asm.emit("IADD3.64", asm.target(to), asm.pair(a), added, RZ)


@lowers("isspacep")
def lower_space_query(asm: Assembler, instruction: PtxInstruction) -> None:
    space = instruction.modifiers[0].split("::")[0]
    to, a = instruction.operands
    letter = {"global": "G", "shared": "S", "local": "L"}[space]
    pair = operand_of_kind(asm.pair(a), Register)
    asm.emit(f"QSPC.E.{letter}", asm.target_predicate(to), RZ, Address(pair, None, 0, pair=True))
