"""Loads and stores: `LDG LDS LDL LD STG STS STL ST`, and `QSPC`.

Source: compiled CUDA code, run on an H100 and an H200; PTX ISA (`ld`, `st`, `isspacep`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from memsim.isa.definitions import BoundForm, Compute, executes
from memsim.isa.machine_protocol import Mask, MemoryMachine, Value
from memsim.isa.memory_access import (
    SPACES,
    Move,
    Run,
    forget_memory,
    framed,
    of_size,
    shape_of,
    slots_of,
    unknown_results,
)
from memsim.isa.op import Effect, Register, Trait
from memsim.isa.program import Op
from memsim.isa.readers import IntReader
from memsim.isa.stack import load_spilled, store_spilled
from memsim.isa.unsupported import checked, require
from memsim.state.address_spaces import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_SIZE
from memsim.state.partial import Partial, or_zero
from memsim.state.poison import Poisoned
from memsim.state.predicates import both, from_bools, invert
from memsim.state.registers import from_array, plus, to_array
from memsim.state.space_bytes import SpaceBytes, as_register, to_store
from memsim.state.sums import Int


def build_load(form: BoundForm, read: IntReader) -> Run:
    element, count, width = shape_of(form)
    require(form.results[0] is None)  # a predicate that no known kernel has
    slots = slots_of(checked(form.results[1], Register), count)
    size = np.dtype(element).itemsize

    def move(machine: MemoryMachine, op: Op, store: SpaceBytes, address: Int, active: Mask) -> None:
        if op.spills:
            load_spilled(machine, op, slots, active)
            return
        if size * count > 4 and store.all_known:
            for i in range(0, count, 2):
                pairs = store.load(plus(address, i * size), np.int64, active)
                words = np.ascontiguousarray(pairs).view(np.int32)
                for slot, word in zip(slots[i : i + 2], (words[:, ::2], words[:, 1::2])):
                    if slot is not None:
                        machine.write(slot, word_of(word), active)
            return
        for i, slot in enumerate(slots):
            if slot is None:
                continue
            at = plus(address, i * size)
            lost = store.lost(at, element, active)
            known = active if lost is False else both(active, invert(lost))
            if known is not False:
                found = store.load(at, element, known)
                value: Any = as_register(found) if size == 4 else from_array(found.astype(np.int64))
                machine.write(slot, value, known)
            if lost is not False:
                machine.write(slot, store.why(at, element, lost).through(op), lost)

    return framed(read, form.binder, SPACES[form.opcode[2:]], "load", width, move, unknown_results(slots))


def word_of(array: np.ndarray) -> Value:
    """Loaded words, int32, as a register; if all threads differ, most often read as floats."""
    if min(array.shape) > 1:
        return np.ascontiguousarray(array).view(np.float32)
    return from_array(array.astype(np.int64))


def build_store(form: BoundForm, read: IntReader, source: Register) -> Run:
    element, count, width = shape_of(form)
    slots = slots_of(source, count)
    is_spill = form.opcode == "STL" and np.dtype(element).itemsize < 4
    move = storing(slots, element, is_spill)
    return framed(read, form.binder, SPACES[form.opcode[2:]], "store", width, move, forget_memory)


def storing(slots: Sequence[int | None], element: type, is_spill: bool = False) -> Move:
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

    def compute(r: list[Any], warps: Any) -> Any:
        address = to_array(read(r))
        shared = (address >= SHARED_WINDOW) & (address < SHARED_WINDOW + WINDOW_SIZE)
        local = (address >= LOCAL_WINDOW) & (address < LOCAL_WINDOW + WINDOW_SIZE)
        found = {"S": shared, "L": local, "G": ~(shared | local)}[kinds[0]]
        return from_bools(found), from_array(found.astype(np.int64))

    return compute
