"""Asynchronous stores and reductions in distributed shared memory, completed at an mbarrier: `STAS REDAS`.

They complete when they are issued, which is one legal order. Source: PTX ISA, `st.async` and `red.async`, and
the code that ptxas 13.0 generates for sm_90:

    STAS[.64, .128] [R4.64], R2       R4 destination, in any block of the cluster; R5 the mbarrier
    REDAS.ADD[.S32, .64] [R4.64], R2
"""

from __future__ import annotations

import numpy as np

from memsim.arch.units import WORD
from memsim.errors import MemsimError
from memsim.isa.atomic_updates import atomic_shape, change_of, operand_elements, spread, updated
from memsim.isa.definitions import BoundForm, executes
from memsim.isa.machine_protocol import Mask, MemoryMachine
from memsim.isa.memory import storing
from memsim.isa.memory_access import Move, Run, of_size, shape_of, slots_of
from memsim.isa.op import Address, Register
from memsim.isa.program import Op
from memsim.isa.unsupported import checked, require
from memsim.state.address_spaces import SHARED_WINDOW
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import both, invert
from memsim.state.registers import plus, unsigned
from memsim.state.space_bytes import SpaceBytes
from memsim.state.sums import Int


def checked_place(address: Address) -> Register:
    """The register of the place, behind which is that of the mbarrier: the address has nothing else.

    Raises:
        Unsupported: it has.
    """
    require(not address.offset and address.uniform is None)
    register = checked(address.base, Register)
    require(register.slot is not None)
    return register


@executes("STAS", of_size("<- A R#"), None, steers=True, touches=(("async_store", "shared"),))
def build_async_store(form: BoundForm, _: object, source: Register) -> Run:
    element, count, width = shape_of(form)
    return _asynchronous(form, "async_store", width, storing(slots_of(source, count), element))


@executes("REDAS", of_size("<- A R#"), None, steers=True, touches=(("async_reduction", "shared"),))
def build_async_reduction(form: BoundForm, _: object, source: Register) -> Run:
    operation, shape = atomic_shape(form)
    require(operation not in ("", "exch", "cas"))
    change = change_of(form, operation, shape)

    def move(machine: MemoryMachine, op: Op, store: SpaceBytes, address: Int, active: Mask) -> None:
        values, known, why = [], active, Poison("", op)
        try:
            values = [operand_elements(machine, source, shape)]
        except Poisoned as unknown:
            known, why = False, unknown.poison.through(op)
        lost, _ = spread(store, address, shape, active, known, why)
        sure = active if lost is False else both(active, invert(lost))
        if sure is not False and values:
            updated(store, address, sure, operation, change, shape, values, False)

    return _asynchronous(form, "async_reduction", 4 * shape.registers, move)


def _asynchronous(form: BoundForm, access: str, width: int, move: Move) -> Run:
    """The frame of both. width: bytes of a lane, which its mbarrier gets to know of."""
    slot = checked_place(checked(form.sources[0], Address)).slot or 0
    place, barrier = (form.binder.word(Register(slot + i)) for i in range(2))

    def run(machine: MemoryMachine, op: Op, active: Mask, data: bool) -> None:
        if active is False:
            machine.lose(op, access, "shared", width, Poison("", op), False)
            return
        try:
            address = plus(unsigned(place(machine.slots), 32), SHARED_WINDOW)
            at_barrier = barrier(machine.slots)
            pieces = machine.resolve(address, active)
            together = len(pieces) > 1  # lanes in the own block count with the others
            for name, at, part in [("elsewhere", address, active)] if together else pieces:
                machine.touch(op, access, name, width, at, part)
            lanes = machine.full(active)
            blocks, places = machine.of_shared(at_barrier, lanes)
            columns = np.zeros(lanes.shape, np.int64)
            columns[lanes] = machine.mbarriers.columns(places)
            for name, at, part in pieces:
                if data:
                    store, there = machine.memory.space("shared"), at
                    if name == "elsewhere":
                        store, there = machine.elsewhere(at, part)
                    move(machine, op, store, there, part)
                    for i in range(0, width, WORD):
                        machine.order.store_later(store, plus(there, i), np.int32, part, columns)
            bytes = np.full(len(blocks), -width)
            machine.mbarriers.arrive(blocks, places, np.zeros_like(blocks), bytes)
        except Poisoned as unknown:
            poison = unknown.poison.through(op)
            machine.lose(op, access, "shared", width, poison, active)
            machine.memory.spoil("shared", poison)
            machine.mbarriers.forget(poison)
        except MemsimError as error:
            raise machine.at(error, op) from None

    return run
