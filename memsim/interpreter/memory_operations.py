"""Instructions that access memory, as operations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memsim.interpreter.lowered_op import Lowered, LoweredOp, NotLowered
from memsim.interpreter.traced import Traced
from memsim.interpreter.vector_operations import Place, constant
from memsim.isa import asynchronous, atomics, memory
from memsim.isa.memory_access import address_of, consecutive_slots, register_count, shape_of
from memsim.isa.op import Constant, Operand, Register, operand_of_kind


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


def _address(one: LoweredOp) -> Place:
    _, operand = address_of(one.op.form)
    token = next(token for token, source in one.op.meaning.sources if source is operand)
    return one.address(operand, token.kind != "A")


def _space(one: LoweredOp) -> str:
    ((_, space),) = one.op.touches
    return space


def _slots(operand: Operand | None, count: int) -> tuple[int | None, ...]:
    return tuple(consecutive_slots(operand_of_kind(operand, Register), count))


def _load(one: LoweredOp) -> None:
    element, count, _ = shape_of(one.op.form)
    if one.results[0] is not None:  # a predicate that no known kernel has
        raise one.refuse()
    kind = np.dtype(element)
    signed = kind.kind == "i" and kind.itemsize < 4
    slots = _slots(one.results[1], count)
    shape = AccessShape(_space(one), kind.itemsize, count, signed, slots)
    one.add("load", None, _address(one), n=shape)


def _store(one: LoweredOp) -> None:
    element, count, _ = shape_of(one.op.form)
    slots = _slots(one.sources[1], count)
    shape = AccessShape(_space(one), np.dtype(element).itemsize, count, registers=slots)
    one.add("store", None, _address(one), n=shape)


def _constant(one: LoweredOp) -> None:
    source = operand_of_kind(one.sources[0], Constant)
    assert source.register is not None
    element, count, _ = shape_of(one.op.form)
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
    loads, count = one.op.builder is memory.load_matrix, memory.matrix_count(one.op.form)
    slots = _slots(one.results[0] if loads else one.sources[1], count)
    transposed = int("MT88" in one.modifiers)
    shape = AccessShape("shared", 16, count, registers=slots, operation=transposed)
    one.add("load_matrix" if loads else "store_matrix", None, _address(one), n=shape)


def _atomic(one: LoweredOp) -> None:
    form = one.op.form
    named, shape = atomics.atomic_shape(form)
    counts_up, spins = "POPC" in one.modifiers, "CAST" in one.modifiers
    operation = "add" if counts_up and named == "inc" else named
    change = atomics.change_of(form, operation, shape)
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
    number, size = UPDATES.index(operation), 4 * shape.registers // parts
    place = _address(one)
    for part in range(parts):
        at = one.emit("add_W", place, constant(size * part, 8)) if part else place
        own = tuple(slot if slot < 0 else slot + part for slot in operands)
        count = 1 if part else parts  # all are aligned as one
        access = AccessShape(_space(one), size, count, spins, written, number, kind, answer, own)
        one.add("atomic", None, at, n=access)


def _operand(source: Operand | None) -> int:
    if not isinstance(source, Register) or source.negated:
        raise NotLowered(f"an atomic by {source}")
    return NOTHING if source.slot is None else source.slot


def _nothing(one: LoweredOp) -> None:
    """Copies are done when they are issued."""


OF_MEMORY: Lowered = {
    memory.build_load: _load,
    memory.build_store: _store,
    memory.indexed_constant: _constant,
    **dict.fromkeys((memory.load_matrix, memory.store_matrix), _matrices),
    atomics.build_atomic: _atomic,
    asynchronous.build_copy: _copy,
    asynchronous.commit_copies: _nothing,
    asynchronous.wait_for_copies: _nothing,
    asynchronous.fence_proxies: _nothing,
}
