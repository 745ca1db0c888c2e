"""Loads and stores, and the frame that all memory instructions share.

In: an instruction. Out: a step that tells the machine which addresses are touched and, where
the data is wanted, moves it. Source: PTX ISA, "Data Movement and Conversion Instructions".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from memsim.ptx.program import Address, Immediate, Instruction, Operand, Register, Symbol, Vector
from memsim.simt.bounds import resolve_generic
from memsim.simt.plan import Plan, Site, Step, active_lanes, lanes_below, step
from memsim.simt.registry import Unsupported
from memsim.state.memory import ELEMENTS, loaded, to_store
from memsim.state.registers import (
    Part,
    Poison,
    Poisoned,
    Sum,
    both,
    ints,
    plus,
)

if TYPE_CHECKING:
    from memsim.simt.machine import Machine

Request = Callable[["Machine", Site, "int | Sum", "bool | Part"], None]

SPACES = ("global", "shared", "local", "const", "param")


def state_space(instruction: Instruction) -> str:
    """The state space that a memory instruction names, "generic" if none."""
    for modifier in instruction.modifiers:
        space, _, scope = modifier.partition("::")
        if space in SPACES:
            if scope == "cluster":
                raise Unsupported(instruction.name)
            return space
    return "generic"


def element(instruction: Instruction) -> type:
    """The numpy type of one element."""
    name = instruction.modifiers[-1]
    if name not in ELEMENTS:
        raise Unsupported(instruction.name)
    return ELEMENTS[name]


def vector_length(instruction: Instruction) -> int:
    """1, 2, 4 or 8 elements."""
    return next((int(m[1:]) for m in instruction.modifiers if m in ("v2", "v4", "v8")), 1)


def address_reader(plan: Plan, operand: Operand, space: str) -> Callable[[Machine], int | Sum]:
    """A function that works out `[base + offset]` for all threads."""
    if not isinstance(operand, Address):
        raise Unsupported(f"address {operand}")
    base, offset = operand.base, operand.offset
    if isinstance(base, Immediate):
        fixed = int(base.value) + offset
        return lambda machine: fixed
    if isinstance(base, Symbol):
        if base.name not in plan.memory.symbols:
            raise Unsupported(f"address of {base.name}")
        start = plan.memory.symbols[base.name][1] + base.offset + offset
        return lambda machine: start
    if not isinstance(base, Register):
        raise Unsupported(f"address {operand}")
    slot = plan.source(base, "b64")

    def read(machine: Machine) -> int | Sum:
        value = ints(machine.slots[slot], 64)
        return plus(value, offset) if offset else value

    return read


def items(operand: Operand) -> list[Operand]:
    """The elements of a vector operand, or the operand itself."""
    return list(operand.items) if isinstance(operand, Vector) else [operand]


def memory_step(
    plan: Plan,
    instruction: Instruction,
    operand: Operand,
    op: str,
    width: int,
    move: Callable[[Machine, str, int | Sum, bool | Part, bool | Part], None] | None,
    lost: Callable[[Machine, Poisoned, bool | Part], None],
    lanes: int = 32,
    generic_op: str | None = None,
    request: Request | None = None,
) -> Step:
    """The frame that all memory instructions share.

    `move(machine, space, address, active, written)` moves the data of the `active` threads and
    writes registers in those `written` (True: wherever the program is); None where only
    addresses are wanted. `lost` is told where the address or the guard is not known.
    `generic_op`: what `op` is called where a generic address lies in shared memory. `request`
    tells the machine of an access in the space that is named; None: every active thread asks for itself.
    """
    space = state_space(instruction)
    read_address = address_reader(plan, operand, space)
    guard = plan.guard(instruction)
    named = {
        name: plan.site(instruction, op, name, width) for name in (space,) if name in ("shared", "global")
    }

    def run(machine: Machine) -> None:
        active: bool | Part = machine.mask
        site = named.get(space)
        try:
            active = active_lanes(machine, guard)
            if lanes < 32:
                active = both(active, lanes_below(lanes, machine))
            address = read_address(machine)
        except Poisoned as unknown:
            kind = space if space in ("shared", "global") else "global"
            if space in ("shared", "global", "generic"):
                where = site or plan.site(instruction, op, kind, width)
                machine.unknown_access(where, unknown.poison.through(instruction), active)
            lost(machine, unknown, active)
            return
        if space != "generic":
            if space == "local":
                machine.listener.aside("local memory", active)
            if site is not None:
                if request is None:
                    machine.access(site, address, active)
                else:
                    request(machine, site, address, active)
            elif active is not False:
                machine.bounds.check(instruction, space, width, address, active)
            if move is not None and active is not False:
                move(machine, space, address, active, True if guard is None else active)
            return
        pieces = resolve_generic(address, active)
        for name, local, part in pieces:
            if name == "local":
                machine.listener.aside("local memory", part)
            if name in ("shared", "global"):
                kind = generic_op if generic_op and name == "shared" else op
                machine.access(plan.site(instruction, kind, name, width), local, part)
            if move is not None and part is not False:
                move(machine, name, local, part, True if guard is None and len(pieces) == 1 else part)

    return run


@step("ld", "ldu")
def build_load(plan: Plan, instruction: Instruction, data: bool) -> Step:
    dtype, count = element(instruction), vector_length(instruction)
    target, operand = instruction.operands[:2]
    outputs = items(target)
    if len(outputs) != count:
        raise Unsupported(instruction.name)
    slots = [plan.destination(item) for item in outputs]
    size = np.dtype(dtype).itemsize
    signed = instruction.modifiers[-1].startswith("s")
    widen = [plan.width(item) > 8 * size and not signed for item in outputs]
    if isinstance(operand, Address) and isinstance(operand.base, Symbol) and operand.base.name in plan.lost:
        return lost_load(plan, instruction, slots, plan.lost[operand.base.name])
    if state_space(instruction) == "param":
        parameter = kernel_parameter(plan, operand)
        if parameter is not None:
            return parameter_load(plan, instruction, slots, widen, dtype, *parameter)

    def move(
        machine: Machine, space: str, address: int | Sum, active: bool | Part, written: bool | Part
    ) -> None:
        store = machine.memory.space(space)
        for i, slot in enumerate(slots):
            try:
                value = loaded(store.load(plus(address, i * size), dtype, active), widen[i])
            except Poisoned as unknown:
                value = unknown.poison.through(instruction)
            machine.write(slot, value, written)

    def lost(machine: Machine, unknown: Poisoned, active: bool | Part) -> None:
        for slot in slots:
            machine.write(slot, unknown.poison.through(instruction), True)

    return memory_step(plan, instruction, operand, "load", size * count, move if data else None, lost)


def lost_load(plan: Plan, instruction: Instruction, slots: list[int], poison: Poison) -> Step:
    """A load of what a function gave back that was not executed."""

    def run(machine: Machine) -> None:
        for slot in slots:
            machine.write(slot, poison.through(instruction), True)

    return run


def kernel_parameter(plan: Plan, operand: Operand) -> tuple[bytes, int] | None:
    """The bytes of the kernel parameter that `ld.param` names, and the offset."""
    if isinstance(operand, Address) and isinstance(operand.base, Symbol):
        found = plan.parameter_bytes(operand.base.name)
        if found is not None:
            return found[1], operand.base.offset + operand.offset
    return None


def parameter_load(
    plan: Plan,
    instruction: Instruction,
    slots: list[int],
    widen: list[bool],
    dtype: type,
    content: bytes,
    offset: int,
) -> Step:
    """`ld.param` of a kernel parameter: the same constant in every thread."""
    size = np.dtype(dtype).itemsize
    values = []
    for i in range(len(slots)):
        raw = np.frombuffer(content, np.uint8)[offset + i * size : offset + (i + 1) * size]
        if raw.size != size:
            raise Unsupported(f"{instruction.name} past the end of the parameter")
        values.append(loaded(raw.view(dtype)[None, :], widen[i]))
    guard = plan.guard(instruction)

    def run(machine: Machine) -> None:
        active = True if guard is None else guard(machine)
        if active is not False:
            for slot, value in zip(slots, values):
                machine.write(slot, value, active)

    return run


@step("st")
def build_store(plan: Plan, instruction: Instruction, data: bool) -> Step:
    dtype, count = element(instruction), vector_length(instruction)
    operand, value = instruction.operands[:2]
    kind = instruction.modifiers[-1]
    sources = [plan.source(item, kind) for item in items(value)] if data else []
    size = np.dtype(dtype).itemsize

    def move(
        machine: Machine, space: str, address: int | Sum, active: bool | Part, written: bool | Part
    ) -> None:
        store = machine.memory.space(space)
        for i, slot in enumerate(sources):
            try:
                store.store(plus(address, i * size), to_store(machine.slots[slot], dtype), active)
            except Poisoned as unknown:
                store.poison = unknown.poison.through(instruction)

    return memory_step(
        plan, instruction, operand, "store", size * count, move if data else None, forget_all(instruction)
    )


def forget_all(instruction: Instruction) -> Callable[[Machine, Poisoned, bool | Part], None]:
    """Nobody knows where a store went: nothing in those spaces is known any more."""
    space = state_space(instruction)

    def lost(machine: Machine, unknown: Poisoned, active: bool | Part) -> None:
        for name in ("shared", "global") if space == "generic" else (space,):
            machine.memory.space(name).poison = unknown.poison.through(instruction)

    return lost
