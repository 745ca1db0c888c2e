"""Atomics and reductions: `ATOM ATOMG ATOMS RED REDG REDS`.

What they do to memory is in `memsim.isa.atomic_updates`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.arch.units import WARP
from memsim.isa.atomic_updates import (
    WORDS,
    AtomicOperand,
    as_registers,
    atomic_shape,
    change_of,
    operand_elements,
    spread,
    updated,
)
from memsim.isa.definitions import BoundForm, executes
from memsim.isa.machine_protocol import Mask, MemoryMachine
from memsim.isa.memory_access import GenericAtomic, Run, forget_memory, framed
from memsim.isa.op import Form, Operand, Register, Trait
from memsim.isa.program import Op
from memsim.isa.readers import IntReader
from memsim.isa.unsupported import Unsupported, require
from memsim.state.partial import NEVER_WRITTEN, on_known_lanes
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import both, from_bools, invert, to_bools
from memsim.state.registers import from_array, to_array
from memsim.state.rounding import Array
from memsim.state.space_bytes import SpaceBytes
from memsim.state.sums import Int

_ATOMICS = {
    **{"ATOMG": ("atomic", "global"), "ATOMS": ("atomic", "shared"), "ATOM": ("atomic", "generic")},
    **{"RED": ("reduction", "global"), "REDG": ("reduction", "global"), "REDS": ("reduction", "shared")},
}


def build_atomic(form: BoundForm, address: IntReader, *_: Operand | None) -> Run:
    """Read-modify-write: of several lanes with the same address each sees what those before it left.

    With a predicate result, an atomic on shared memory through a generic address is not performed: the
    predicate tells whether it was, and if not, a loop performs it.
    """
    access, space = _ATOMICS[form.opcode]
    named, shape = atomic_shape(form)
    sources = [operand for operand in form.sources[1:3] if operand is not None]
    counts_up = "POPC" in form.modifiers
    spins = "CAST" in form.modifiers  # part of a loop: it may have to be retried
    operation = "add" if counts_up and named == "inc" else named
    require(operation)
    change = change_of(form, operation, shape)
    answer, target = (getattr(operand, "slot", None) for operand in (*form.results, None, None)[:2])
    written = [] if target is None else [target + i for i in range(shape.registers)]

    def move(machine: MemoryMachine, op: Op, store: SpaceBytes, address: Int, active: Mask) -> None:
        skipped = answer is not None and space == "generic" and store is not machine.memory.space("global")
        if answer is not None and not spins:
            machine.write(answer, not skipped, active)
        if skipped:
            return
        values, known, why = operand_values(machine, active)
        lost, why = spread(store, address, shape, active, both(active, known), why.through(op))
        if lost is not False:
            for slot in [*written, answer] if spins and answer is not None else written:
                machine.write(slot, why, lost)
        sure = both(active, invert(lost)) if lost is not False else active
        if sure is False:
            return
        tried = both(sure, _first_of_banks(machine, address, shape, sure)) if spins else sure
        old = updated(store, address, tried, operation, change, shape, values, spins or bool(written))
        if spins:
            swapped = both(tried, from_bools(old[0] == values[0][0]))
            machine.goes_round(op, sure, swapped)
            if answer is not None:  # from sm_100 on
                machine.write(answer, swapped, sure)
            equal = from_array(to_bools(swapped).astype(np.int64))
            for slot, value in zip(written, (equal, 0)):
                machine.write(slot, value, sure)
            return
        for slot, value in zip(written, as_registers(old, shape)):
            machine.write(slot, value, sure)

    read = [
        operand.slot + i
        for operand in sources
        if isinstance(operand, Register) and operand.slot is not None
        for i in range(shape.registers)
    ]

    def operand_values(machine: MemoryMachine, active: Mask) -> tuple[list[list[Array]], Any, Poison]:
        """(values, the lanes in which they are known, why not in others)."""
        if counts_up:
            return [[np.ones((1, 1), shape.element)]], True, NEVER_WRITTEN

        def elements() -> list[list[Array]]:
            return [operand_elements(machine, source, shape) for source in sources]

        try:
            return elements(), True, NEVER_WRITTEN
        except Poisoned as unknown:
            try:
                found, known = on_known_lanes(machine.slots, read, lambda: active, elements, unknown.poison)
            except Poisoned as still:
                return [], False, still.poison
            return found, known, unknown.poison

    def forget(machine: MemoryMachine, op: Op, poison: Any, active: Mask, spaces: tuple[str, ...]) -> None:
        forget_memory(machine, op, poison, active, spaces)
        for slot in written if answer is None else [*written, answer]:
            machine.write(slot, poison, active)

    # Other types have no instruction of their own on shared memory.
    loops = spins or (operation not in ("exch", "cas") and shape not in WORDS)
    if space == "shared":
        access = "atomic_inc" if counts_up else "atomic_cas" if operation == "cas" else access
        access = "atomic_loop" if loops else access
    begins_loop = answer is not None or loops or shape.registers > 1
    own = "atomic_cas" if operation == "cas" else "atomic"
    generic = GenericAtomic("atomic_generic" if begins_loop else own, f"{own}_unmade", own)
    width = 4 * shape.registers
    return framed(address, form.binder, space, access, width, move, forget, generic=generic, spins=spins)


def _first_of_banks(machine: MemoryMachine, address: Int, shape: AtomicOperand, active: Mask) -> Any:
    """The lanes that a compare-and-swap that spins tries: of those in one bank the first.

    The others have to go round again, whatever the memory holds. Lanes of 8 bytes are served by half-warps.
    Source: docs/model.md.
    """
    width = 4 * shape.registers
    lanes = WARP * 4 // width
    on = machine.full(active).reshape(-1, lanes)
    bank = (np.broadcast_to(to_array(address), machine.shape) // width % lanes).reshape(-1, lanes)
    meets = (bank[:, :, None] == bank[:, None, :]) & on[:, None, :]
    earlier = np.tri(lanes, k=-1, dtype=np.bool_)
    return from_bools((on & ~(meets & earlier).any(axis=2)).reshape(machine.shape))


def _signature(form: Form) -> str:
    """As wide as the elements; a predicate tells whether an atomic was performed."""
    try:
        count = atomic_shape(form)[1].registers
    except Unsupported:
        count = 1
    access, space = _ATOMICS[form.opcode]
    written = f"P?R{count}?" if access == "atomic" else ""
    return f"{written} <- {'a' if space == 'shared' else 'A'} V{count}? V{count}? P?"


for _name, _touched in _ATOMICS.items():
    executes(_name, _signature, None, touches=(_touched,), traits={"CAST": Trait.SPINS})(build_atomic)
