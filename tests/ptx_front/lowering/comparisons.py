"""Lowering of comparisons and selections: `setp set selp slct`.

64-bit operands are compared by their lower words first.
"""

from __future__ import annotations

from memsim.isa.op import Immediate, Predicate, Unsupported, require
from tests.ptx_front import program as ptx
from tests.ptx_front.lowering.assembler import PT, RZ, Assembler
from tests.ptx_front.lowering.floats import HALVES, in_register, read
from tests.ptx_front.lowering.integers import ONES, halves, number, targets
from tests.ptx_front.lowering.lowered_opcodes import is_float, lowers
from tests.ptx_front.lowering.slots import bits_of
from tests.ptx_front.program import PtxInstruction

_RELATIONS = {name: name.upper() for name in ("eq", "ne", "lt", "le", "gt", "ge")}
_UNSIGNED = {"lo": "LT", "ls": "LE", "hi": "GT", "hs": "GE"}
JOINS = ("and", "or", "xor")
_ORDERS = {
    **{name: name.upper() for name in ("eq", "ne", "lt", "le", "gt", "ge", "num", "nan")},
    **{f"{name}u": f"{name.upper()}U" for name in ("eq", "ne", "lt", "le", "gt", "ge")},
}


def compare_floats(asm: Assembler, to: Predicate, other: Predicate, rest: tuple[str, ...], kind: str) -> None:
    """A floating-point comparison combined with a predicate, and optionally its inverse."""
    instruction = asm.source
    how = _ORDERS[instruction.modifiers[0]]
    join = joined(instruction, rest, kind)
    a, b, *added = instruction.operands[1:]
    which = asm.predicate(added[0]) if added else PT
    reads = [read(asm, one, kind) for one in (a, b)]
    flush = ".FTZ" if "ftz" in rest else ""
    if kind in HALVES:
        twofold = kind.endswith("x2")
        require(not flush and (other == PT or twofold))
        name = f"HSETP2{HALVES[kind]}.{how}.{join}"
        asm.emit(name, to, other, *(in_register(asm, one) for one in reads), which)
    elif kind in ("f32", "f64"):
        asm.emit(f"{'F' if kind == 'f32' else 'D'}SETP.{how}{flush}.{join}", to, other, *reads, which)
    else:
        raise Unsupported


@lowers("setp")
def lower_compare(asm: Assembler, instruction: PtxInstruction) -> None:
    first = instruction.operands[0]
    both = (first.first, first.second) if isinstance(first, ptx.PtxPair) else (first, None)
    to = [PT if one is None else asm.target_predicate(one) for one in both]
    compare(asm, to[0], to[1], instruction.modifiers[1:], instruction.modifiers[-1])


def compare(asm: Assembler, to: Predicate, other: Predicate, rest: tuple[str, ...], kind: str) -> None:
    """A comparison combined with a predicate, and optionally its inverse."""
    if is_float(kind):
        compare_floats(asm, to, other, rest, kind)
        return
    instruction = asm.source
    relation = instruction.modifiers[0]
    a, b, *added = instruction.operands[1:]
    join = joined(instruction, rest, kind)
    how = (_RELATIONS if kind[0] == "s" else {**_RELATIONS, **_UNSIGNED})[relation]
    which = asm.predicate(added[0]) if added else PT
    sign = "" if kind[0] == "s" else ".U32"
    if bits_of(kind) <= 32:
        asm.emit(f"ISETP.{how}{sign}.{join}", to, other, number(asm, a, kind), number(asm, b, kind), which)
        return
    x, y = halves(asm, a, kind), halves(asm, b, kind)
    below = asm.temporary_predicate()
    asm.emit(f"ISETP.{how}.U32.AND", below, PT, x[0], y[0], PT)
    asm.emit(f"ISETP.{how}{sign}.{join}.EX", to, other, x[1], y[1], which, below)


def joined(instruction: PtxInstruction, rest: tuple[str, ...], kind: str) -> str:
    """How a comparison is combined with a predicate: from the modifiers after the relation."""
    names = [name for name in rest if name in JOINS]
    count = len(instruction.operands) - 3
    require(len(names) == count and count <= 1 and set(rest) <= {*JOINS, kind, "ftz"})
    return names[0].upper() if names else "AND"


@lowers("set")
def lower_set(asm: Assembler, instruction: PtxInstruction) -> None:
    to_kind, kind = instruction.modifiers[-2:]
    rest = (*instruction.modifiers[1:-2], kind)
    yes = {"f32": Immediate(1.0), "u32": ONES, "s32": ONES}[to_kind]
    require(not kind.endswith("x2"))
    holds = asm.temporary_predicate()
    compare(asm, holds, PT, rest, kind)
    asm.emit("SEL", asm.target(instruction.operands[0]), yes, RZ, holds)


@lowers("selp")
def lower_select(asm: Assembler, instruction: PtxInstruction) -> None:
    (kind,) = instruction.modifiers
    to, a, b, which = instruction.operands
    choose(asm, to, a, b, asm.predicate(which), kind)


def choose(
    asm: Assembler, to: ptx.Operand, a: ptx.Operand, b: ptx.Operand, which: Predicate, kind: str
) -> None:
    """Select one of two values of any type."""
    name = "FSEL" if kind == "f32" else "SEL"
    for target, x, y in zip(targets(asm, to, kind), halves(asm, a, kind), halves(asm, b, kind)):
        asm.emit(name, target, x, y, which)


@lowers("slct")
def lower_select_by_sign(asm: Assembler, instruction: PtxInstruction) -> None:
    *flush, kind, by = instruction.modifiers
    to, a, b, c = instruction.operands
    holds = asm.temporary_predicate()
    if by == "s32" and not flush:
        asm.emit("ISETP.GE.AND", holds, PT, asm.word(c), RZ, PT)
    elif by == "f32":
        asm.emit(f"FSETP.GE{'.FTZ' if flush else ''}.AND", holds, PT, asm.word(c), RZ, PT)
    else:
        raise Unsupported
    choose(asm, to, a, b, holds, kind)
