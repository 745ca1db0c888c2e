"""Lowering of atomics and asynchronous copies, and of hints, which emit nothing.

Copies complete when they are issued, which is one legal order. Bulk copies are not lowered.
"""

from __future__ import annotations

from dataclasses import replace

from memsim.isa.op import Address, Immediate, Predicate, operand_of_kind, require
from tests.ptx_front import program as ptx
from tests.ptx_front.lowering.assembler import PT, RZ, Assembler, high, negated
from tests.ptx_front.lowering.lowered_opcodes import lowers
from tests.ptx_front.lowering.memory import SPACES, address, check_hints, space_of
from tests.ptx_front.lowering.slots import bits_of
from tests.ptx_front.program import PtxInstruction

_OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas")
_KINDS = {
    **dict.fromkeys(("u32", "b32"), ""),
    "s32": ".S32",
    **dict.fromkeys(("u64", "b64"), ".64"),
    "s64": ".S64",
    "f64": ".F64.RN",
    "f16x2": ".F16x2.RN",
    "bf16x2": ".BF16_V2.RN",
}


@lowers("atom", "red")
def lower_atomic(asm: Assembler, instruction: PtxInstruction) -> None:
    """An `atom` whose result is never read becomes a reduction, as compilers do it."""
    require(instruction.modifiers[0] != "async")
    check_hints(instruction, *_OPERATIONS)
    operands = list(instruction.operands)
    operation = next((name for name in instruction.modifiers if name in _OPERATIONS), "")
    to = operands.pop(0) if instruction.opcode == "atom" else None
    kind, space = instruction.modifiers[-1], space_of(instruction)
    require(space in SPACES and operation)
    name = f".{operation.upper()}"
    if kind == "f32":
        name += ".F32.FTZ.RN" if space == "global" else ".F32"
    else:
        name += _KINDS[kind]
    where, *values = operands
    data = [asm.registers(one, 64) if bits_of(kind) == 64 else asm.register(one) for one in values[:2]]
    at = address(asm, where, space)
    is_read = to is not None and to != ptx.PtxRegister("_") and asm.is_read(to)
    counts = (operation, values[0]) in (("add", ptx.PtxImmediate(1)), ("inc", ptx.PtxImmediate(-1)))
    if counts and space == "shared" and kind == "u32" and not is_read:
        asm.emit("ATOMS.POPC.INC.32", RZ, at)
    elif is_read or space != "global" or operation in ("exch", "cas"):
        target = asm.target(to) if to is not None and is_read else RZ
        asm.emit(f"ATOM{SPACES[space]}{name}", target, at, *data)
    else:
        asm.emit(f"RED{SPACES[space]}{name}", at, *data)


# --- copies ---------------------------------------------------------------------------------


@lowers("cp")
def lower_copy(asm: Assembler, instruction: PtxInstruction) -> None:
    """`cp.async`. Copies write when they are issued, which is one legal order, and are ordered by waits."""
    names = instruction.modifiers
    require(names[:1] == ("async",) and "bulk" not in names)
    if "mbarrier" in names[1]:
        return
    if names[1] in ("commit_group", "wait_all"):
        asm.emit("LDGDEPBAR")
    if names[1] in ("wait_group", "wait_all"):
        left = operand_of_kind(instruction.operands[0], ptx.PtxImmediate).value if instruction.operands else 0
        asm.emit("DEPBAR.LE", Immediate(int(left)))
    if names[1] in ("commit_group", "wait_group", "wait_all"):
        return
    policy = any(name.endswith("cache_hint") for name in names)
    to, source, amount, *rest = instruction.operands
    require(names[1] in ("ca", "cg"))
    size = int(operand_of_kind(amount, ptx.PtxImmediate).value)
    width = {4: "", 8: ".64", 16: ".128"}[size]
    reads = []
    if rest and not policy:
        reads = [whole_or_nothing(asm, rest[0], size)]
    bypass = ".BYPASS" if names[1] == "cg" else ""
    into, of = address(asm, to, "shared"), address(asm, source, "global")
    fills = ""
    if reads and isinstance(rest[0], ptx.PtxRegister) and asm.kind(rest[0]) != "pred":
        of, fills = first_bytes(asm, of, rest[0], size), ".ZFILL"
    asm.emit(f"LDGSTS.E{bypass}{width}{fills}", into, of, *reads)


def first_bytes(asm: Assembler, of: Address, size: ptx.PtxRegister, whole: int) -> Address:
    """The source of a copy of fewer bytes: in its low bits the number of those at the end that are zeros."""
    missing, start = asm.temporary(2), asm.temporary(2)
    asm.emit("IADD3", missing, negated(asm.word(size)), RZ, RZ)
    asm.emit("LOP3.LUT", missing, missing, Immediate(whole - 1), RZ, Immediate(0xC0))
    asm.emit("MOV", high(missing), RZ)
    asm.emit("IADD3.64", start, of.base or RZ, missing, RZ)
    return replace(of, base=start)


def whole_or_nothing(asm: Assembler, size: ptx.Operand, whole: int) -> Predicate:
    """Predicate: is the source read? (Its size is not 0, or its ignore predicate is false.)"""
    if asm.kind(size) == "pred":
        ignored = asm.predicate(size)
        return Predicate(ignored.slot, not ignored.negated)
    if isinstance(size, ptx.PtxImmediate):
        require(size.value in (0, whole))
        return Predicate(None, size.value == 0)
    reads = asm.temporary_predicate()
    asm.emit("ISETP.NE.AND", reads, PT, asm.word(size), RZ, PT)
    return reads


@lowers("prefetch", "prefetchu", "discard", "applypriority", "createpolicy", "membar", "fence", "pmevent")
@lowers("griddepcontrol", "setmaxnreg", "brkpt")
def lower_nothing(asm: Assembler, instruction: PtxInstruction) -> None:
    """No value, address or branch depends on these."""
