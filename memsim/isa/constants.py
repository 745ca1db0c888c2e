"""Loads of constants: `LDC LDCU ULDC`, at a fixed address or indexed by a lane."""

from __future__ import annotations

import numpy as np

from memsim.isa.definitions import BoundForm, Compute, executes
from memsim.isa.machine_protocol import Mask, MemoryMachine
from memsim.isa.memory_access import Run, of_size, shape_of, slots_of
from memsim.isa.op import Constant, Effect, Register
from memsim.isa.program import Op
from memsim.isa.unsupported import checked
from memsim.state.address_spaces import ConstantBytes
from memsim.state.poison import Poison, Poisoned
from memsim.state.registers import fit, from_array, plus, to_array, unsigned

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
    target, binder = checked(form.results[0], Register), form.binder
    assert source.register is not None
    read = binder.word(source.register)
    content = ConstantBytes(binder.banks.get(source.bank, b""))
    slots = slots_of(target, count)
    size = np.dtype(element).itemsize

    def run(machine: MemoryMachine, op: Op, active: Mask, data: bool) -> None:
        try:
            address = unsigned(fit(plus(read(machine.slots), source.offset), 32), 32)
        except Poisoned as unknown:
            poison = unknown.poison.through(op)
            if op.touches:
                machine.lose(op, "load", "constant", width, poison, active)
            address = None
        if address is not None:
            lanes = machine.full(active)
            places = np.broadcast_to(to_array(address), lanes.shape)[lanes]
            machine.indexed.setdefault(op.index, set()).update(np.unique(places).tolist())
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
