"""Instructions that access memory, as operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from memsim.interpreter.lowered_op import LoweredOp, NotLowered
from memsim.interpreter.traced import Traced
from memsim.interpreter.vector_operations import Place, constant
from memsim.isa.atomics import atomic_shape, change_of
from memsim.isa.memory_access import SPACES, address_of, consecutive_slots, register_count, shape_of
from memsim.isa.op import Constant, Operand, Register, operand_of_kind
from memsim.isa.signature import is_indexed


@dataclass(frozen=True)
class AccessShape:
    """As `Access` of native/interpreter.h; registers are slots, None for none.

    operation, type: of an atomic; of a copy, and of matrices, whether it zero-fills or transposes. bank: of
    constants.
    """

    space: str
    size: int
    count: int = 1
    is_signed: bool = False
    registers: tuple[int | None, ...] = ()
    operation: int = 0
    type: int = 0
    answer: int | None = None
    operands: tuple[int, ...] = ()
    bank: int | None = None


#: In the order of native/interpreter.c.
UPDATES = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
_TYPES = {"uint32": 0, "int32": 1, "uint64": 2, "int64": 3, "float32": 4, "float64": 5}
_FLUSHED = 6
_HALVES = {"f16": 7, "bf16": 8}
#: Operands of atomics that are no register: zero, and one.
NOTHING, ONE = -1, -2
#: Of `cp.async` and proxies: copies are done when they are issued.
_ORDER_ONLY = ("LDGDEPBAR", "FENCE")


def lower_memory(one: LoweredOp) -> None:
    """The operations of an instruction that accesses memory.

    Raises:
        NotLowered: there are none.
    """
    opcode = one.op.form.opcode
    if opcode in _ORDER_ONLY or one.op.name.startswith("DEPBAR.LE"):
        return
    lower = _LOWERED.get(opcode)
    if lower is None:
        raise one.refuse()
    lower(one)


def _address(one: LoweredOp) -> Place:
    _, operand = address_of(one.op.form)
    token = next(token for token, source in one.op.meaning.sources if source is operand)
    return one.address(operand, token.kind != "A")


def _slots(operand: Operand | None, count: int) -> tuple[int | None, ...]:
    return tuple(consecutive_slots(operand_of_kind(operand, Register), count))


def _load(one: LoweredOp) -> None:
    form = one.op.form
    element, count, _ = shape_of(form)
    if one.results[0] is not None:  # a predicate that no known kernel has
        raise one.refuse()
    kind = np.dtype(element)
    signed = kind.kind == "i" and kind.itemsize < 4
    slots = _slots(one.results[1], count)
    shape = AccessShape(SPACES[form.opcode[2:]], kind.itemsize, count, signed, slots)
    one.add("load", None, _address(one), n=shape)


def _store(one: LoweredOp) -> None:
    form = one.op.form
    element, count, _ = shape_of(form)
    slots = _slots(one.sources[1], count)
    shape = AccessShape(SPACES[form.opcode[2:]], np.dtype(element).itemsize, count, registers=slots)
    one.add("store", None, _address(one), n=shape)


def _constant(one: LoweredOp) -> None:
    form = one.op.form
    source = next(operand for operand in form.operands if isinstance(operand, Constant))
    if not is_indexed(source):
        one.write_values(one.op.meaning.bind(one.binder)(one.registers))
        return
    assert source.register is not None
    element, count, _ = shape_of(form)
    kind = np.dtype(element)
    index = one.traced(one.binder.word(source.register)) + source.offset
    place = one.long(index.astype(np.uint32) if isinstance(index, Traced) else index)
    one.binder.whole(source.bank)  # what it holds belongs to what the instruction was told
    signed = kind.kind == "i" and kind.itemsize < 4
    slots = _slots(one.results[0], count)
    one.add(
        "load", None, place, n=AccessShape("constant", kind.itemsize, count, signed, slots, bank=source.bank)
    )


def _copy(one: LoweredOp) -> None:
    into, origin, reads = one.sources
    places = [one.address(into, True), one.address(origin, False)]
    if reads is not None:
        places.append(one.truth(reads))
    fills = int("ZFILL" in one.modifiers)
    shape = AccessShape("shared", 4, register_count(one.op.form), operation=fills)
    one.add("copy", None, *places, k=int(reads is not None), n=shape)


def _matrices(one: LoweredOp) -> None:
    loads = one.op.form.opcode == "LDSM"
    count = next((int(name) for name in one.modifiers if name in ("2", "4")), 1)
    slots = _slots(one.results[0] if loads else one.sources[1], count)
    transposed = int("MT88" in one.modifiers)
    shape = AccessShape("shared", 16, count, registers=slots, operation=transposed)
    one.add("load_matrix" if loads else "store_matrix", None, _address(one), n=shape)


def _atomic(one: LoweredOp) -> None:
    form = one.op.form
    named, shape = atomic_shape(form)
    counts_up, spins = "POPC" in one.modifiers, "CAST" in one.modifiers
    operation = "add" if counts_up and named == "inc" else named
    change = change_of(form, operation, shape)
    parts = 1  # each with registers of its own
    if shape.float or (shape.element is np.float32 and shape.count > 1):
        if operation != "add":
            raise one.refuse()
        kind, parts = _HALVES.get(shape.float, _TYPES["float32"]), shape.registers
    elif shape.count > 1 or shape.registers > 2:
        raise one.refuse()
    else:
        kind = _FLUSHED if change is not None else _TYPES[np.dtype(shape.element).name]
    answer, target = (getattr(result, "slot", None) for result in (*one.results, None, None)[:2])
    written = () if target is None else tuple(target + i for i in range(shape.registers))
    if parts > 1 and target is not None:  # the first ones may be operands of others
        raise one.refuse()
    operands = (
        (ONE,) if counts_up else tuple(_operand(source) for source in one.sources[1:3] if source is not None)
    )
    space = SPACES[form.opcode.removeprefix("ATOM").removeprefix("RED")]
    space = "global" if form.opcode == "RED" else space
    number, size = UPDATES.index(operation), 4 * shape.registers // parts
    place = _address(one)
    for part in range(parts):
        at = one.emit("add_W", place, constant(size * part, 8)) if part else place
        own = tuple(slot if slot < 0 else slot + part for slot in operands)
        count = 1 if part else parts  # all are aligned as one
        access = AccessShape(space, size, count, spins, written, number, kind, answer, own)
        one.add("atomic", None, at, n=access)


def _operand(source: Operand | None) -> int:
    if not isinstance(source, Register) or source.negated:
        raise NotLowered(f"an atomic by {source}")
    return NOTHING if source.slot is None else source.slot


_LOWERED: dict[str, Callable[[LoweredOp], None]] = {
    **dict.fromkeys(("LDG", "LDS", "LDL", "LD"), _load),
    **dict.fromkeys(("STG", "STS", "STL", "ST"), _store),
    **dict.fromkeys(("LDC", "LDCU", "ULDC"), _constant),
    **dict.fromkeys(("LDSM", "STSM"), _matrices),
    **dict.fromkeys(("ATOM", "ATOMG", "ATOMS", "RED", "REDG", "REDS"), _atomic),
    "LDGSTS": _copy,
}
