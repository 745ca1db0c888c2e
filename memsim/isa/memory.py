"""Loads, stores and copies: `LDG LDS LDL LD LDC STG STS STL ST LDGSTS LDSM STSM QSPC`.

In: an instruction's form. Out: a function that tells the machine which addresses are touched and, where the
data is wanted, moves it. What a request costs is not known here (`memsim.model`).
Source: compiled CUDA code, run on an H100 and an H200; for what moves where, PTX ISA (`ld`, `ldmatrix`,
`cp.async`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from memsim.isa.op import Address, Constant, Effect, Form, Op, Operand, Predicate, Register
from memsim.isa.readers import Binder
from memsim.isa.registry import Unsupported, opcode
from memsim.state.memory import Store, loaded, to_store
from memsim.state.partial import Partial, or_zero
from memsim.state.registers import (
    Poison,
    Poisoned,
    both,
    fit,
    from_array,
    from_bools,
    ints,
    invert,
    plus,
    times,
    to_array,
    to_bools,
    unsigned,
)
from memsim.state.sums import Int, low_bits

Mask = "bool | Part"


@dataclass(frozen=True, slots=True)
class Copy:
    """The other end of a copy: its address in the other state space, and the lanes that read there."""

    address: Int
    active: Any


class Machine(Protocol):
    """What memory instructions need of the machine that executes them."""

    slots: list[Any]
    memory: Any
    mask: Any
    threads: int

    def write(self, slot: int, value: Any, active: Any) -> None: ...

    def touch(
        self, op: Op, kind: str, space: str, width: int, address: Int, active: Any, other: Copy | None = None
    ) -> Any: ...

    def lose(self, op: Op, kind: str, space: str, width: int, poison: Poison, active: Any) -> None: ...

    def resolve(self, address: Int, active: Any) -> list[tuple[str, Int, Any]]: ...

    def aside(self, what: str, active: Any) -> None: ...

    def overwritten(self, op: Op, width: int, address: Int, active: Any) -> None: ...


#: Runs an instruction: (machine, op, lanes that execute it, whether the data is wanted).
Run = Callable[[Machine, Op, Any, bool], None]

#: Modifiers that change no address: cache policies, scopes, orders.
HINTS = frozenset(
    {
        "E",
        "CONSTANT",
        "STRONG",
        "WEAK",
        "GPU",
        "SYS",
        "CTA",
        "SM",
        "CLUSTER",
        "VC",
        "EF",
        "EL",
        "LU",
        "NA",
        "EU",
    }
    | {
        "LTC64B",
        "LTC128B",
        "LTC256B",
        "PRIVATE",
        "MMIO",
        "RELAXED",
        "ACQUIRE",
        "RELEASE",
        "U",
        "ZD",
        "SPARSE",
    }
)
_ELEMENTS: dict[str, tuple[type, int]] = {
    "U8": (np.uint8, 1),
    "S8": (np.int8, 1),
    "U16": (np.uint16, 1),
    "S16": (np.int16, 1),
    "64": (np.int32, 2),
    "128": (np.int32, 4),
    "32": (np.int32, 1),
}
SPACES = {"G": "global", "S": "shared", "L": "local", "": "generic"}


def shape_of(form: Form) -> tuple[type, int, int]:
    """(element, registers, bytes) of what a lane loads or stores.

    Raises:
        Unsupported: a modifier that is not known to leave the address alone.
    """
    sized = [name for name in form.modifiers if name in _ELEMENTS]
    if len(sized) > 1 or any(name not in HINTS and name not in _ELEMENTS for name in form.modifiers):
        raise Unsupported(form.name)
    element, count = _ELEMENTS[sized[0]] if sized else (np.int32, 1)
    return element, count, np.dtype(element).itemsize * count


def register_count(form: Form) -> int:
    """Registers that the data takes."""
    return 4 if "128" in form.modifiers else 2 if "64" in form.modifiers else 1


def address_of(form: Form) -> tuple[int, Address]:
    """The address operand and its place."""
    for place, operand in enumerate(form.operands):
        if isinstance(operand, Address):
            return place, operand
    raise Unsupported(form.name)


def effective(form: Form, operand: Operand, binder: Binder, wide: bool) -> Callable[[list[Any]], Int]:
    """Works out `[base + uniform + offset]`: 64 bits (`wide`), or 32."""
    if not isinstance(operand, Address):
        raise Unsupported(form.name)
    base, uniform, offset, scale = operand.base, operand.uniform, operand.offset, operand.scale
    terms: list[Callable[[list[Any]], Int]] = []
    if wide:
        if base is not None and base.slot is not None:
            is_pair = operand.pair or uniform is None
            terms.append(binder.pair(base) if is_pair else binder.unsigned_word(base))
        if uniform is not None and uniform.slot is not None:
            terms.append(binder.pair(uniform))
    else:
        if base is not None and base.slot is not None:
            word = binder.word(base)
            terms.append(word if scale == 1 else lambda r: times(word(r), scale))
        if uniform is not None and uniform.slot is not None:
            terms.append(binder.word(uniform))
    if len(terms) == 1:
        only = terms[0]
        return lambda r: plus(only(r), offset) if offset else only(r)

    def read(r: list[Any]) -> Int:
        total: Int = offset
        for term in terms:
            total = plus(total, term(r))
        return total

    return read


def _load_widths(form: Form) -> dict[int, int]:
    start = 1 if form.operands and isinstance(form.operands[0], Predicate) else 0
    return {start: register_count(form)}


def _store_widths(form: Form) -> dict[int, int]:
    try:
        place, _ = address_of(form)
    except Unsupported:
        return {}
    return {place + 1: register_count(form)}


def framed(
    form: Form,
    binder: Binder,
    space: str,
    kind: str,
    width: int,
    move: Callable[[Machine, Op, Store, Int, Any], None] | None,
    forget: Callable[[Machine, Op, Poison, Any, tuple[str, ...]], None],
    operand: Operand | None = None,
    lanes: int = 32,
    generic_kind: str | None = None,
) -> Run:
    """The frame that memory instructions share.

    move: (machine, op, the bytes of the space, address, lanes): moves the data. forget: (machine, op, why,
    lanes, spaces): it is not known what was accessed. lanes: only so many of a warp give an address.
    generic_kind: what the access is called where a generic address lies in shared memory.
    """
    read = effective(form, operand or address_of(form)[1], binder, space in ("global", "generic"))
    constants: Any = ConstantBytes(binder.banks.get(3, b""))

    def run(machine: Machine, op: Op, active: Any, data: bool) -> None:
        if lanes < 32:
            active = both(active, from_bools((np.arange(machine.threads) % 32 < lanes)[None, :]))
        try:
            address = read(machine.slots)
        except Poisoned as unknown:
            poison = unknown.poison.through(op)
            for where in ("global", "shared") if space == "generic" else (space,):
                machine.lose(op, kind, where, width, poison, active)
            if active is not False:
                spaces = ("shared", "global", "local") if space == "generic" else (space,)
                forget(machine, op, poison, active, spaces)
            return
        if space == "generic":
            pieces = machine.resolve(address, active)
        elif space == "shared":
            pieces = [(space, own_shared(address), active)]
        elif space == "local":
            pieces = [(space, fit(address, 32), active)]
        else:
            pieces = [(space, address, active)]
        for name, at, part in pieces:
            called = generic_kind if generic_kind and space == "generic" and name == "shared" else kind
            outside = machine.touch(op, called, name, width, at, part)
            if outside is not False:
                forget(machine, op, Poison(OUTSIDE, op), outside, ())
                part = both(part, invert(outside))
            if name == "elsewhere":
                forget(
                    machine,
                    op,
                    Poison("shared memory of another block of the cluster", op),
                    part,
                    ("shared",),
                )
            elif data and move is not None and part is not False:
                move(machine, op, constants if name == "const" else machine.memory.space(name), at, part)

    return run


#: Why a value is not known that was read where no array is.
OUTSIDE = "it reads outside of every array"


def own_shared(address: Int) -> Int:
    """A shared address without the rank of the block in its cluster, which stands in bits 24 and up."""
    return low_bits(address, 24)


# --- loads and stores -----------------------------------------------------------------------


def load_opcode(name: str, space: str) -> Callable[[Any], Any]:
    """Register the loads of a state space."""
    return opcode(name, results="P?R", widths=_load_widths, effect=Effect.MEMORY, touches=(("load", space),))


@load_opcode("LDG", "global")
@load_opcode("LDS", "shared")
@load_opcode("LDL", "local")
@load_opcode("LD", "generic")
def build_load(form: Form, binder: Binder) -> Run:
    element, count, width = shape_of(form)
    target = form.operands[0]
    place, _ = address_of(form)
    if not isinstance(target, Register) or place != 1 or len(form.operands) != 2:
        raise Unsupported(form.name)
    slots = [None if target.slot is None else target.slot + i for i in range(count)]
    size = np.dtype(element).itemsize

    def move(machine: Machine, op: Op, store: Store, address: Int, active: Any) -> None:
        for i, slot in enumerate(slots):
            if slot is None:
                continue
            at = plus(address, i * size)
            lost = store.lost(at, element, active)
            known = active if lost is False else both(active, invert(lost))
            if known is not False:
                found = store.load(at, element, known)
                value: Any = loaded(found) if size == 4 else from_array(found.astype(np.int64))
                machine.write(slot, value, known)
            if lost is not False:
                machine.write(slot, store.why(at, element, lost).through(op), lost)

    def forget(machine: Machine, op: Op, poison: Poison, active: Any, spaces: tuple[str, ...]) -> None:
        for slot in slots:
            if slot is not None:
                machine.write(slot, poison, active)

    return framed(form, binder, SPACES[form.opcode[2:]], "load", width, move, forget)


def store_opcode(name: str, space: str) -> Callable[[Any], Any]:
    """Register the stores of a state space."""
    return opcode(name, results="", widths=_store_widths, effect=Effect.MEMORY, touches=(("store", space),))


@store_opcode("STG", "global")
@store_opcode("STS", "shared")
@store_opcode("STL", "local")
@store_opcode("ST", "generic")
def build_store(form: Form, binder: Binder) -> Run:
    element, count, width = shape_of(form)
    place, _ = address_of(form)
    if place != 0 or len(form.operands) != 2:
        raise Unsupported(form.name)
    source = form.operands[1]
    if not isinstance(source, Register):
        raise Unsupported(form.name)
    slots = [None if source.slot is None else source.slot + i for i in range(count)]
    size = np.dtype(element).itemsize

    def move(machine: Machine, op: Op, store: Store, address: Int, active: Any) -> None:
        for i, slot in enumerate(slots):
            at = plus(address, i * size)
            # Padding and pieces that are never used are stored without ever being set.
            value = 0 if slot is None else or_zero(machine.slots[slot])
            try:
                store.store(at, to_store(value, element), active)
            except Poisoned as unknown:
                lost = active
                if isinstance(value, Partial):
                    known, lost = both(active, value.known), both(active, invert(value.known))
                    store.store(at, to_store(value.value, element), known)
                store.forget(at, element, lost, unknown.poison.through(op))

    return framed(form, binder, SPACES[form.opcode[2:]], "store", width, move, forget_memory)


def forget_memory(machine: Machine, op: Op, poison: Poison, active: Any, spaces: tuple[str, ...]) -> None:
    """Nobody knows where something was written: nothing in these spaces is known any more."""
    for name in spaces:
        machine.memory.spoil(name, poison)


# --- constants ------------------------------------------------------------------------------


def is_indexed(form: Form) -> bool:
    """Does it read a constant bank at a lane's own index?"""
    source = form.operands[1] if len(form.operands) > 1 else None
    return isinstance(source, Constant) and source.register is not None and source.register.slot is not None


def constant_effect(form: Form) -> Effect:
    """A read at a lane's own index is an access; any other is a constant."""
    return Effect.MEMORY if is_indexed(form) else Effect.ALU


@opcode("LDC", "LDCU", "ULDC", widths=_load_widths, effect_of=constant_effect, touches=(("load", "const"),))
def build_constant_load(form: Form, binder: Binder) -> Any:
    element, count, width = shape_of(form)
    target, source = form.operands[:2]
    if not isinstance(source, Constant) or not isinstance(target, Register) or len(form.operands) != 2:
        raise Unsupported(form.name)
    if is_indexed(form):
        return indexed_constant(form, binder, target, source, element, count, width)
    size = np.dtype(element).itemsize
    signed = np.dtype(element).kind == "i"
    values: list[int | Poison] = []
    for i in range(count):
        try:
            values.append(binder.constant(source.bank, source.offset + i * size, size, signed))
        except Poisoned as unknown:
            values.append(unknown.poison)
    result = values[0] if count == 1 else tuple(values)
    return lambda r: result


class ConstantBytes:
    """The bytes of a constant bank, read at addresses of lanes like a `Store`."""

    def __init__(self, content: bytes) -> None:
        self.content = np.frombuffer(content, np.uint8)
        self.unknown = Poison("outside of what is known of the constant bank", None)

    def lost(self, address: Int, dtype: type, active: Any) -> Any:
        """The lanes that read where nobody has said what is there."""
        at = to_array(address)
        return both(active, from_bools((at < 0) | (at + np.dtype(dtype).itemsize > self.content.size)))

    def why(self, address: Int, dtype: type, lost: Any) -> Poison:
        """Why it is not known what these lanes read."""
        return self.unknown

    def load(self, address: Int, dtype: type, active: Any) -> np.ndarray:
        """What each lane reads.

        Raises:
            Poisoned: a lane reads where nobody has said what is there.
        """
        at, size = to_array(address), np.dtype(dtype).itemsize
        inside = (at >= 0) & (at + size <= self.content.size)
        if (to_bools(active) & ~inside).any():
            raise Poisoned(self.unknown)
        if not self.content.size:
            return np.zeros(at.shape, dtype)
        index = np.where(inside, at, 0)[..., None] + np.arange(size)
        return np.ascontiguousarray(self.content[index]).view(dtype)[..., 0]

    def store(self, address: Int, values: np.ndarray, active: Any) -> None:
        """Constant memory cannot be written."""
        raise Poisoned(Poison("a write to constant memory", None))


def indexed_constant(
    form: Form, binder: Binder, target: Register, source: Constant, element: type, count: int, width: int
) -> Run:
    """`c[bank][R + offset]`."""
    assert source.register is not None
    read = binder.word(source.register)
    content = ConstantBytes(binder.banks.get(source.bank, b""))
    slots = [None if target.slot is None else target.slot + i for i in range(count)]
    size = np.dtype(element).itemsize

    def run(machine: Machine, op: Op, active: Any, data: bool) -> None:
        try:
            address = unsigned(fit(plus(read(machine.slots), source.offset), 32), 32)
        except Poisoned as unknown:
            poison = unknown.poison.through(op)
            machine.lose(op, "load", "const", width, poison, active)
            address = None
        if address is not None:
            machine.touch(op, "load", "const", width, address, active)
        for i, slot in enumerate(slots):
            if slot is None or not data:
                continue
            if address is None:
                machine.write(slot, poison, active)
                continue
            try:
                found = content.load(plus(address, i * size), element, active)
                machine.write(slot, from_array(found.astype(np.int64)), active)
            except Poisoned as unknown:
                machine.write(slot, unknown.poison.through(op), active)

    return run


# --- copies ---------------------------------------------------------------------------------


@opcode("LDGSTS", results="", effect=Effect.MEMORY, touches=(("cp_async", "global"), ("cp_async", "shared")))
def build_copy(form: Form, binder: Binder) -> Run:
    """`cp.async`: `.BYPASS` is `.cg`; where the operand's predicate is false, zeros are written and nothing
    read.

    `.ZFILL`: the last bits of the global address count the bytes at the end that are not read, but are zero.
    """
    if any(name not in HINTS | {"BYPASS", "64", "128", "ACCESS", "ZFILL"} for name in form.modifiers):
        raise Unsupported(form.name)
    addresses = [operand for operand in form.operands if isinstance(operand, Address)]
    predicates = [operand for operand in form.operands if isinstance(operand, Predicate)]
    if len(addresses) != 2 or len(addresses) + len(predicates) != len(form.operands) or len(predicates) > 1:
        raise Unsupported(form.name)
    to, of = addresses
    into = effective(form, to, binder, False)
    origin = effective(form, of, binder, True)
    reads = binder.predicate(predicates[0]) if predicates else None
    width = 4 * register_count(form)
    kind = "cp_async_cg" if "BYPASS" in form.modifiers else "cp_async"
    fills = "ZFILL" in form.modifiers
    size = min(width, 8)
    element: type = np.int64 if size == 8 else np.int32

    def run(machine: Machine, op: Op, active: Any, data: bool) -> None:
        try:
            copied = active if reads is None else both(active, reads(machine.slots))
            destination, source = own_shared(into(machine.slots)), origin(machine.slots)
        except Poisoned as unknown:
            poison = unknown.poison.through(op)
            for space in ("shared", "global"):
                machine.lose(op, kind, space, width, poison, active)
            if active is not False:
                forget_memory(machine, op, poison, active, ("shared",))
            return
        missing: Int = 0
        if fills:
            missing = low_bits(source, width.bit_length() - 1)
            source = plus(source, times(missing, -1))
        machine.touch(op, kind, "shared", width, destination, active, Copy(source, copied))
        outside = machine.touch(op, kind, "global", width, source, copied, Copy(destination, copied))
        if kind == "cp_async_cg" and active is not False:
            machine.overwritten(op, width, destination, active)
        if not data or active is False:
            return
        store = machine.memory.space("shared")
        if outside is not False:
            for i in range(width // size):
                store.forget(plus(destination, i * size), element, outside, Poison(OUTSIDE, op))
            active, copied = both(active, invert(outside)), both(copied, invert(outside))
        for i in range(width // size):
            value: np.ndarray = np.zeros((1, 1), element)
            try:
                if copied is not False:
                    found = machine.memory.space("global").load(plus(source, i * size), element, copied)
                    value = np.where(to_bools(copied), found, element(0))
                    if missing != 0:
                        value = first_bytes(value, width - to_array(missing) - i * size)
                store.store(plus(destination, i * size), value, active)
            except Poisoned as unknown:
                store.forget(plus(destination, i * size), element, active, unknown.poison.through(op))

    return run


def first_bytes(value: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The first `count` bytes of elements, the others zero."""
    size = value.dtype.itemsize
    kept = np.arange(size) < count[..., None]
    found: np.ndarray = np.where(kept, value[..., None].view(np.uint8), np.uint8(0))
    return np.ascontiguousarray(found).view(value.dtype)[..., 0]


# --- matrices -------------------------------------------------------------------------------


def _matrix_count(form: Form) -> int:
    return next((int(name) for name in form.modifiers if name in ("2", "4")), 1)


def _ldsm_widths(form: Form) -> dict[int, int]:
    return {0: _matrix_count(form)}


def _stsm_widths(form: Form) -> dict[int, int]:
    return {1: _matrix_count(form)}


def matrix_pieces(machine: Machine, address: Int, matrix: int, transposed: bool) -> list[tuple[Int, int]]:
    """Where each lane's two 16-bit elements of a matrix lie, as (address, which half of the register).

    PTX ISA, `ldmatrix`: row i of matrix m begins at the address of lane 8 m + i; lane l holds elements 2 (l %
    4) and the next of row l // 4, or of the transposed matrix.
    """
    rows = to_array(address)
    rows = np.broadcast_to(rows, (rows.shape[0], machine.threads))
    lanes = np.arange(machine.threads)
    base = (lanes & ~31) + 8 * matrix
    if not transposed:
        row = rows[:, base + (lanes % 32) // 4]
        return [(from_array(row + 4 * (lanes % 4) + 2 * half), half) for half in (0, 1)]
    return [
        (from_array(rows[:, base + (lanes % 4) * 2 + half] + 2 * ((lanes % 32) // 4)), half)
        for half in (0, 1)
    ]


@opcode("LDSM", widths=_ldsm_widths, effect=Effect.MEMORY, touches=(("ldmatrix", "shared"),))
def build_load_matrix(form: Form, binder: Binder) -> Run:
    count, transposed = _matrix_shape(form)
    target = form.operands[0]
    if not isinstance(target, Register):
        raise Unsupported(form.name)
    slots = [None if target.slot is None else target.slot + i for i in range(count)]

    def move(machine: Machine, op: Op, store: Store, address: Int, active: Any) -> None:
        for matrix, slot in enumerate(slots):
            if slot is None:
                continue
            try:
                halves = [
                    store.load(where, np.uint16, machine.mask).astype(np.int64) << (16 * half)
                    for where, half in matrix_pieces(machine, address, matrix, transposed)
                ]
                machine.write(slot, fit(from_array(halves[0] | halves[1]), 32), machine.mask)
            except Poisoned as unknown:
                machine.write(slot, unknown.poison.through(op), machine.mask)

    def forget(machine: Machine, op: Op, poison: Poison, active: Any, spaces: tuple[str, ...]) -> None:
        for slot in slots:
            if slot is not None:
                machine.write(slot, poison, machine.mask)

    return framed(form, binder, "shared", "ldmatrix", 16, move, forget, lanes=8 * count)


@opcode("STSM", results="", widths=_stsm_widths, effect=Effect.MEMORY, touches=(("stmatrix", "shared"),))
def build_store_matrix(form: Form, binder: Binder) -> Run:
    count, transposed = _matrix_shape(form)
    source = form.operands[1]
    if not isinstance(source, Register):
        raise Unsupported(form.name)

    def move(machine: Machine, op: Op, store: Store, address: Int, active: Any) -> None:
        for matrix in range(count):
            pieces = matrix_pieces(machine, address, matrix, transposed)
            try:
                value = 0 if source.slot is None else machine.slots[source.slot + matrix]
                bits = to_array(ints(value, 32))
                for where, half in pieces:
                    store.store(where, (bits >> (16 * half)).astype(np.uint16), machine.mask)
            except Poisoned as unknown:
                for where, _ in pieces:
                    store.forget(where, np.uint16, machine.mask, unknown.poison.through(op))

    return framed(form, binder, "shared", "stmatrix", 16, move, forget_memory, lanes=8 * count)


def _matrix_shape(form: Form) -> tuple[int, bool]:
    if set(form.modifiers) - {"16", "M88", "MT88", "2", "4"}:
        raise Unsupported(form.name)
    return _matrix_count(form), "MT88" in form.modifiers


# --- generic addresses ----------------------------------------------------------------------


@opcode("QSPC", results="P?R", widths=lambda form: {2: 2}, effect=Effect.LANES)
def build_query_space(form: Form, binder: Binder) -> Any:
    """Whether a generic address lies in shared (`.S`), local (`.L`) or global (`.G`) memory."""
    from memsim.state.memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_SIZE

    kinds = [name for name in form.modifiers if name in ("S", "L", "G")]
    if len(kinds) != 1 or not isinstance(form.operands[0], Predicate):
        raise Unsupported(form.name)
    read = effective(form, address_of(form)[1], binder, True)

    def compute(r: list[Any], warps: Any) -> Any:
        address = to_array(read(r))
        shared = (address >= SHARED_WINDOW) & (address < SHARED_WINDOW + WINDOW_SIZE)
        local = (address >= LOCAL_WINDOW) & (address < LOCAL_WINDOW + WINDOW_SIZE)
        found = {"S": shared, "L": local, "G": ~(shared | local)}[kinds[0]]
        return from_bools(found), from_array(found.astype(np.int64))

    return compute
