"""Loads and stores: `LDG LDS LDL LD STG STS STL ST`, and `QSPC`; of constants, `LDC LDCU ULDC`, at a fixed
address or indexed by a lane; of matrices in shared memory, `LDSM STSM`, which are `ldmatrix` and `stmatrix`.

Source: compiled CUDA code, run on an H100 and an H200; PTX ISA (`ld`, `st`, `isspacep`, `ldmatrix`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memsim.isa.definitions import BoundForm, Compute, Results, executes
from memsim.isa.machine_protocol import MemoryMachine, Warps
from memsim.isa.memory_access import (
    SPACES,
    Move,
    Run,
    consecutive_slots,
    execution_frame,
    forget_memory,
    of_size,
    shape_of,
    unknown_results,
)
from memsim.isa.op import Constant, Effect, Form, Register, Trait, operand_of_kind, require
from memsim.isa.program import Op
from memsim.isa.readers import IntReader, Registers
from memsim.isa.stack import load_spilled, store_spilled
from memsim.state.address_spaces import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_SIZE
from memsim.state.partial import Partial, Value, or_zero
from memsim.state.parts import Mask
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import both, from_bools, invert
from memsim.state.registers import as_unsigned, fit, from_array, ints, plus, to_array
from memsim.state.space_bytes import SpaceBytes, as_register, to_store
from memsim.state.sums import Int


def build_load(form: BoundForm, read: IntReader) -> Run:
    element, count, width = shape_of(form)
    require(form.results[0] is None)  # a predicate that no known kernel has
    slots = consecutive_slots(operand_of_kind(form.results[1], Register), count)
    size = np.dtype(element).itemsize

    def move(machine: MemoryMachine, op: Op, store: SpaceBytes, address: Int, active: Mask) -> None:
        if op.spills:
            load_spilled(machine, op, slots, active)
            return
        if size * count > 4 and store.all_known:
            for i in range(0, count, 2):
                pairs = store.load(plus(address, i * size), np.int64, active)
                if machine.loaded is not None:
                    machine.loaded.pair(op.index, i // 2, pairs)
                words = np.ascontiguousarray(pairs).view(np.int32)
                for slot, word in zip(slots[i : i + 2], (words[:, ::2], words[:, 1::2])):
                    if slot is not None:
                        machine.write(slot, word_of(word), active)
            return
        for i, slot in enumerate(slots):
            if slot is None:
                continue
            at = plus(address, i * size)
            unused = op.unused[i] if op.unused else 0
            lost = store.lost(at, element, active, unused)
            known = active if lost is False else both(active, invert(lost))
            if known is not False:
                found = store.load(at, element, known, unused, is_known=True)
                value: Value = as_register(found) if size == 4 else from_array(found.astype(np.int64))
                machine.write(slot, value, known)
            if lost is not False:
                machine.write(slot, store.why(at, element, lost).through(op), lost)
        if machine.loaded is None or size * count <= 4:
            return
        for i in range(0, count, 2):
            at = plus(address, i * size)
            known = both(active, invert(store.lost(at, np.int64, active)))
            if known is not False:
                machine.loaded.pair(op.index, i // 2, store.load(at, np.int64, known))

    return execution_frame(
        read, form.binder, SPACES[form.opcode[2:]], "load", width, move, unknown_results(slots)
    )


def word_of(array: np.ndarray) -> Value:
    """Loaded words, int32, as a register; if all threads differ, most often read as floats."""
    if min(array.shape) > 1:
        return np.ascontiguousarray(array).view(np.float32)
    return from_array(array.astype(np.int64))


def build_store(form: BoundForm, read: IntReader, source: Register) -> Run:
    element, count, width = shape_of(form)
    slots = consecutive_slots(source, count)
    is_spill = form.opcode == "STL" and np.dtype(element).itemsize < 4
    move = store_move(slots, element, is_spill)
    return execution_frame(read, form.binder, SPACES[form.opcode[2:]], "store", width, move, forget_memory)


def store_move(slots: Sequence[int | None], element: type, is_spill: bool = False) -> Move:
    """What moves registers to memory, each an element; None as a slot is zero.

    is_spill: of words that are stored by a piece, what nobody wrote is zero.
    """
    size = np.dtype(element).itemsize

    def move(machine: MemoryMachine, op: Op, store: SpaceBytes, address: Int, active: Mask) -> None:
        if op.spills:
            store_spilled(machine, op, slots, active)
            return
        if is_spill:
            store.begin_words(address, active)
        for i, slot in enumerate(slots):
            at = plus(address, i * size)
            # Padding and unused parts are stored without ever being set.
            value = 0 if slot is None else or_zero(machine.slots[slot])
            try:
                store.store(at, to_store(value, element), active)
            except Poisoned as unknown:
                lost = active
                if isinstance(value, Partial):
                    known, lost = both(active, value.known), both(active, invert(value.known))
                    store.store(at, to_store(value.value, element), known)
                store.forget(at, element, lost, unknown.poison.through(op))

    return move


#: Memory orders of loads that bypass the L1 cache.
_OBSERVING = dict.fromkeys(("STRONG", "ACQUIRE", "RELAXED", "MMIO"), Trait.OBSERVES)

for _letter, _space in SPACES.items():
    _at = "a" if _space in ("shared", "local") else "A"
    executes(f"LD{_letter}", of_size("P?R# <- " + _at), None, touches=(("load", _space),), traits=_OBSERVING)(
        build_load
    )
    executes(f"ST{_letter}", of_size(f"<- {_at} R#"), None, touches=(("store", _space),))(build_store)


@executes("QSPC", "PW <- A", None, effect=Effect.LANES)
def query_space(form: BoundForm, read: IntReader) -> Compute:
    """Whether a generic address is in shared (`.S`), local (`.L`) or global (`.G`) memory."""
    kinds = [name for name in form.modifiers if name in ("S", "L", "G")]
    require(len(kinds) == 1)

    def compute(r: Registers, warps: Warps) -> Results:
        address = to_array(read(r))
        shared = (address >= SHARED_WINDOW) & (address < SHARED_WINDOW + WINDOW_SIZE)
        local = (address >= LOCAL_WINDOW) & (address < LOCAL_WINDOW + WINDOW_SIZE)
        found = {"S": shared, "L": local, "G": ~(shared | local)}[kinds[0]]
        return from_bools(found), from_array(found.astype(np.int64))

    return compute


# --- constants -------------------------------------------------------------------------------

#: An indexed load is a memory access. Only those by lanes are counted.
INDEXED = {"LDC": (("load", "constant"),), "LDCU": (), "ULDC": ()}


@executes("LDC LDCU ULDC", of_size("R# <- C"), None)
def load_constant(form: BoundForm, source: Constant) -> Compute:
    element, count, _ = shape_of(form)
    size = np.dtype(element).itemsize
    signed = np.dtype(element).kind == "i"
    values: list[int | Poison] = []
    for i in range(count):
        try:
            values.append(form.binder.constant(source.bank, source.offset + i * size, size, signed))
        except Poisoned as unknown:
            values.append(unknown.poison)
    result = values[0] if count == 1 else tuple(values)
    return lambda r: result


def indexed_constant(form: BoundForm, source: Constant) -> Run:
    """`c[bank][R + offset]`."""
    element, count, width = shape_of(form)
    target, binder = operand_of_kind(form.results[0], Register), form.binder
    assert source.register is not None
    read = binder.word(source.register)
    content = binder.whole(source.bank)
    slots = consecutive_slots(target, count)
    size = np.dtype(element).itemsize

    def run(machine: MemoryMachine, op: Op, active: Mask, data: bool) -> None:
        try:
            address = as_unsigned(fit(plus(read(machine.slots), source.offset), 32), 32)
        except Poisoned as unknown:
            poison = unknown.poison.through(op)
            if op.touches:
                machine.lose(op, "load", "constant", width, poison, active)
            address = None
        if address is not None:
            if machine.loaded is not None:
                lanes = machine.full(active)
                machine.loaded.constant(op.index, np.broadcast_to(to_array(address), lanes.shape)[lanes])
            if op.touches:
                machine.touch(op, "load", "constant", width, address, active)
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


for _name, _touches in INDEXED.items():
    executes(_name, of_size("R# <- c"), None, touches=_touches, effect=Effect.MEMORY)(indexed_constant)


# --- matrices --------------------------------------------------------------------------------


def matrix_count(form: Form) -> int:
    """How many matrices are loaded or stored at once."""
    return next((int(name) for name in form.modifiers if name in ("2", "4")), 1)


def matrix_pieces(
    machine: MemoryMachine, address: Int, matrix: int, transposed: bool
) -> list[tuple[Int, int]]:
    """Where each lane's two 16-bit elements of a matrix are, as (address, half of the register).

    PTX ISA, `ldmatrix`: row i of matrix m starts at the address of lane 8 m + i; lane l holds elements 2 (l %
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


_MATRIX_SHAPES = "16 M88 MT88 2 4"


@executes(
    "LDSM", lambda form: f"R{matrix_count(form)} <- a", _MATRIX_SHAPES, touches=(("ldmatrix", "shared"),)
)
def load_matrix(form: BoundForm, read: IntReader) -> Run:
    count, transposed = matrix_count(form), "MT88" in form.given
    slots = consecutive_slots(operand_of_kind(form.results[0], Register), count)

    def move(machine: MemoryMachine, op: Op, store: SpaceBytes, address: Int, active: Mask) -> None:
        for matrix, slot in enumerate(slots):
            if slot is None:
                continue
            pieces = matrix_pieces(machine, address, matrix, transposed)
            known = machine.mask
            for where, _ in pieces:
                lost = store.lost(where, np.uint16, known)
                if lost is not False:
                    machine.write(slot, store.why(where, np.uint16, lost).through(op), lost)
                    known = both(known, invert(lost))
            if known is not False:
                low, high = (store.load(where, np.uint16, known).astype(np.int64) for where, _ in pieces)
                machine.write(slot, fit(from_array(low | high << 16), 32), known)

    def forget(machine: MemoryMachine, op: Op, poison: Poison, active: Mask, spaces: tuple[str, ...]) -> None:
        unknown_results(slots)(machine, op, poison, machine.mask, spaces)

    return execution_frame(read, form.binder, "shared", "ldmatrix", 16, move, forget, lanes=8 * count)


@executes(
    "STSM", lambda form: f"<- a R{matrix_count(form)}", _MATRIX_SHAPES, touches=(("stmatrix", "shared"),)
)
def store_matrix(form: BoundForm, read: IntReader, source: Register) -> Run:
    count, transposed = matrix_count(form), "MT88" in form.given

    def move(machine: MemoryMachine, op: Op, store: SpaceBytes, address: Int, active: Mask) -> None:
        for matrix in range(count):
            pieces = matrix_pieces(machine, address, matrix, transposed)
            try:
                value = 0 if source.slot is None else machine.slots[source.slot + matrix]
                bits = to_array(ints(value))
                for where, half in pieces:
                    store.store(where, (bits >> (16 * half)).astype(np.uint16), machine.mask)
            except Poisoned as unknown:
                for where, _ in pieces:
                    store.forget(where, np.uint16, machine.mask, unknown.poison.through(op))

    return execution_frame(read, form.binder, "shared", "stmatrix", 16, move, forget_memory, lanes=8 * count)
