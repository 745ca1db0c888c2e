"""Loads of constants: `LDC LDCU ULDC`, at a fixed address or indexed by a lane."""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.isa.memory_access import MemoryMachine, Run, load_widths, shape_of, slots_of
from memsim.isa.op import Constant, Effect, Form, Op, Register
from memsim.isa.readers import Binder
from memsim.isa.registry import checked, opcode, require
from memsim.state.constant_bank import ConstantBytes
from memsim.state.poison import Poison, Poisoned
from memsim.state.registers import fit, from_array, plus, unsigned


def is_indexed(form: Form) -> bool:
    """Does it read a constant bank at an index that may differ between lanes?"""
    source = form.operands[1] if len(form.operands) > 1 else None
    return isinstance(source, Constant) and source.register is not None and source.register.slot is not None


def constant_effect(form: Form) -> Effect:
    """An indexed load is a memory access; any other is a constant."""
    return Effect.MEMORY if is_indexed(form) else Effect.ALU


@opcode("LDC", widths=load_widths, effect=constant_effect, touches=(("load", "constant"),))
@opcode("LDCU", "ULDC", widths=load_widths, effect=constant_effect)
def build_constant_load(form: Form, binder: Binder) -> Any:
    element, count, width = shape_of(form)
    require(len(form.operands) == 2)
    target, source = checked(form.operands[0], Register), checked(form.operands[1], Constant)
    if is_indexed(form):
        return indexed_constant(binder, target, source, element, count, width)
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


def indexed_constant(
    binder: Binder, target: Register, source: Constant, element: type, count: int, width: int
) -> Run:
    """`c[bank][R + offset]`."""
    assert source.register is not None
    read = binder.word(source.register)
    content = ConstantBytes(binder.banks.get(source.bank, b""))
    slots = slots_of(target, count)
    size = np.dtype(element).itemsize

    def run(machine: MemoryMachine, op: Op, active: Any, data: bool) -> None:
        try:
            address = unsigned(fit(plus(read(machine.slots), source.offset), 32), 32)
        except Poisoned as unknown:
            poison = unknown.poison.through(op)
            if op.touches:
                machine.lose(op, "load", "constant", width, poison, active)
            address = None
        if address is not None and op.touches:
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
