"""Lowering of loads and stores, and what all instructions that access memory share.

Elements of a vector are moved through consecutive registers. Kernel parameters are in constant bank 0, as in
machine code; `.param` variables of calls become registers. Distributed shared memory is not lowered.
"""

from __future__ import annotations

from memsim.isa.op import Address, Constant, Immediate, Register, Unsupported, operand_of_kind, require
from tests.ptx_front import program as ptx
from tests.ptx_front.lowering.assembler import CONSTANTS, PARAMETERS, RZ, Assembler, following, high
from tests.ptx_front.lowering.conversions import fill_pair
from tests.ptx_front.lowering.lowered_opcodes import lowers
from tests.ptx_front.lowering.moves import pack_word, part
from tests.ptx_front.lowering.slots import bits_of
from tests.ptx_front.program import PtxInstruction

SPACES = {"global": "G", "shared": "S", "local": "L", "generic": ""}
#: Modifiers that change neither address nor data: cache policies, memory orders, scopes.
HINTS = frozenset(
    {"nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "volatile", "relaxed", "acquire", "release", "acq_rel"}
    | {"weak", "mmio", "cta", "cluster", "gpu", "sys", "noftz", "sync", "aligned"}
)
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}


def space_of(instruction: PtxInstruction) -> str:
    """The state space of a memory instruction; "generic" if it names none."""
    for name in instruction.modifiers:
        space, _, scope = name.partition("::")
        if space in ("global", "shared", "local", "const", "param"):
            require(scope != "cluster")
            return space
    return "generic"


def check_hints(instruction: PtxInstruction, *known: str) -> None:
    """Raise if a modifier other than `known` may change address or data."""
    for name in instruction.modifiers[:-1]:
        space = name.split("::")[0]
        require(name in HINTS or name in known or space in ("L1", "L2", *SPACES, "const", "param"))


def address(asm: Assembler, operand: ptx.Operand, space: str) -> Address:
    """`[base + offset]`; global and generic addresses have 64 bits."""
    at = operand_of_kind(operand, ptx.PtxAddress)
    base, offset = at.base, at.offset
    wide = space in ("global", "generic")
    if isinstance(base, ptx.PtxImmediate):
        return Address(None, None, int(base.value) + offset)
    if isinstance(base, ptx.PtxSymbol):
        found, start = asm.place(base.name)
        if wide:
            pair = asm.temporary(2)
            require(found == "global")
            asm.load_address(pair, ptx.PtxSymbol(base.name))
            return Address(pair, None, base.offset + offset, pair=True)
        return Address(None, None, start + base.offset + offset)
    if wide and asm.words(base.name) == 1:
        pair = asm.temporary(2)
        asm.move_pair(pair, base)
        return Address(pair, None, offset, pair=True)
    return Address(Register(asm.slot(base.name)), None, offset, pair=wide)


def items_of(operand: ptx.Operand) -> list[ptx.Operand]:
    """The elements of a vector, or the operand itself."""
    return list(operand.items) if isinstance(operand, ptx.Vector) else [operand]


def elements(instruction: PtxInstruction, operand: ptx.Operand) -> tuple[list[ptx.Operand], str, int]:
    """(elements that are loaded or stored, their type, bits of each)."""
    items = items_of(operand)
    count = next((_VECTORS[name] for name in instruction.modifiers if name in _VECTORS), 1)
    kind = instruction.modifiers[-1]
    bits = bits_of(kind)
    require(len(items) == count and count * bits <= 128)
    return items, kind, bits


def size_of(kind: str, bits: int) -> str:
    """The width of an access in machine spelling."""
    if bits in (8, 16):
        return f".{'S' if kind[0] == 's' else 'U'}{bits}"
    return {32: "", 64: ".64", 128: ".128"}[bits]


# --- loads ----------------------------------------------------------------------------------


@lowers("ld", "ldu")
def lower_load(asm: Assembler, instruction: PtxInstruction) -> None:
    check_hints(instruction, *_VECTORS)
    to, where = instruction.operands[:2]
    items, kind, bits = elements(instruction, to)
    space = space_of(instruction)
    if space in ("param", "const"):
        load_constants(asm, operand_of_kind(where, ptx.PtxAddress), space, items, kind, bits)
        return
    name = f"LD{SPACES[space]}{'' if space in ('shared', 'local') else '.E'}"
    total, at = bits * len(items), address(asm, where, space)
    words = max(1, bits // 32)
    row = asm.consecutive(items, words) if bits >= 32 else None
    if row is None:
        row = asm.temporary(max(1, total // 32))
    asm.emit(name + size_of(kind if len(items) == 1 else "u", total), row, at)
    spread(asm, row, items, kind, bits)


def spread(asm: Assembler, row: Register, items: list[ptx.Operand], kind: str, bits: int) -> None:
    """Move consecutive registers to the destination registers, unless these are the same."""
    for i, item in enumerate(items):
        first, to = following(row, i * bits // 32), asm.target(item)
        if to == RZ:
            continue
        if bits < 32 and len(items) > 1:
            asm.emit("MOV", to, part(first, i, bits))
            if kind[0] == "s":
                asm.emit("SGXT", to, to, Immediate(bits))
        elif to != first:
            for word in range(max(1, bits // 32)):
                asm.emit("MOV", following(to, word), following(first, word))
        fill_pair(asm, item, kind)


def load_constants(
    asm: Assembler, where: ptx.PtxAddress, space: str, items: list[ptx.Operand], kind: str, bits: int
) -> None:
    """Load from a constant bank element by element, or from the registers of a call's `.param` variable."""
    base, offset, index = where.base, where.offset, None
    if isinstance(base, ptx.PtxSymbol):
        found, at = asm.place(base.name)
        offset += at + base.offset
        if found == "call":
            call_value(asm, False, offset, items, kind, bits)
            return
    elif isinstance(base, ptx.PtxRegister):
        index = Register(asm.slot(base.name))
    else:
        offset += int(base.value)
    bank = PARAMETERS if space == "param" else CONSTANTS
    for i, item in enumerate(items):
        to = asm.target(item)
        if to != RZ:
            asm.emit(f"LDC{size_of(kind, bits)}", to, Constant(bank, offset + i * bits // 8, index))
            fill_pair(asm, item, kind)


def call_value(
    asm: Assembler, stores: bool, offset: int, items: list[ptx.Operand], kind: str, bits: int
) -> None:
    """A `.param` variable of a call: a register for each word at a byte offset, or for a narrower element."""
    for i, item in enumerate(items):
        start = offset + i * bits // 8
        cells = [asm.cell(start + at) for at in range(0, max(1, bits // 8), 4)]
        if stores:
            if len(cells) == 1:
                asm.emit("MOV", cells[0], asm.word(item, kind if kind[0] == "f" else "b32"))
                continue
            pair = asm.temporary(2)
            asm.move_pair(pair, item)
            asm.emit("MOV", cells[0], pair)
            asm.emit("MOV", cells[1], high(pair))
            continue
        to = asm.target(item)
        if to == RZ:
            continue
        if bits < 32:
            asm.emit("SGXT" if kind[0] == "s" else "SGXT.U32", to, cells[0], Immediate(bits))
        else:
            asm.emit("MOV", to, cells[0])
        if len(cells) == 2:
            asm.emit("MOV", high(to), cells[1])
        fill_pair(asm, item, kind)


# --- stores ---------------------------------------------------------------------------------


@lowers("st")
def lower_store(asm: Assembler, instruction: PtxInstruction) -> None:
    check_hints(instruction, *_VECTORS)
    where, what = instruction.operands[:2]
    items, kind, bits = elements(instruction, what)
    space = space_of(instruction)
    if space == "param":
        to = operand_of_kind(where, ptx.PtxAddress)
        base = operand_of_kind(to.base, ptx.PtxSymbol)
        found, at = asm.place(base.name)
        require(found == "call")
        call_value(asm, True, at + base.offset + to.offset, items, kind, bits)
        return
    require(space != "const")
    target = address(asm, where, space)
    data = gathered(asm, items, kind, bits)
    name = f"ST{SPACES[space]}{'' if space in ('shared', 'local') else '.E'}"
    asm.emit(name + size_of("u", bits * len(items)), target, data)


def gathered(asm: Assembler, items: list[ptx.Operand], kind: str, bits: int) -> Register:
    """The values to store, in consecutive registers."""
    if len(items) == 1 and bits <= 32:
        return asm.register(items[0], f"b{bits}" if kind[0] != "f" else kind)
    words = max(1, bits // 32)
    row = asm.consecutive(items, words) if bits >= 32 else None
    if row is not None:
        return row
    row = asm.temporary(max(1, bits * len(items) // 32))
    if words == 2:
        for i, item in enumerate(items):
            asm.move_pair(following(row, 2 * i), item)
    elif bits == 32:
        for i, item in enumerate(items):
            asm.emit("MOV", following(row, i), asm.word(item, kind))
    elif bits > 32:
        raise Unsupported
    elif bits * len(items) == 16:  # two bytes
        asm.emit("PRMT", row, asm.word(items[0]), Immediate(0x0040), asm.word(items[1]))
    else:
        count = 32 // bits
        for i in range(0, len(items), count):
            pack_word(asm, following(row, i // count), items[i : i + count])
    return row
