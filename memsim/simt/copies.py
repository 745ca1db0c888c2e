"""`cp.async`: from global to shared memory past the registers.

In: an instruction. Out: a step that reports both sides and copies at once. Commit and wait do
nothing then: a copy that is done when issued is one legal order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memsim.ptx.program import Immediate, Instruction
from memsim.simt.access import address_reader
from memsim.simt.machine import OtherSide
from memsim.simt.plan import Plan, Step, active_lanes, step
from memsim.simt.registry import Unsupported
from memsim.state.memory import SHARED_BASE
from memsim.state.registers import (
    Part,
    Poisoned,
    both,
    fit,
    from_bools,
    ints,
    invert,
    plus,
    to_array,
    to_bools,
)

if TYPE_CHECKING:
    from memsim.simt.machine import Machine


@step("cp")
def build_cp_async(plan: Plan, instruction: Instruction, data: bool) -> Step:
    names = instruction.modifiers
    if names[:1] == ("async",) and names[1:2] in (("commit_group",), ("wait_group",), ("wait_all",)):
        return lambda machine: None  # copies are done when issued: one legal order
    if names[:1] == ("async",) and "mbarrier" in names[1]:
        return lambda machine: None
    if names[:1] != ("async",) or not {"ca", "cg"} & set(names) or "bulk" in names:
        raise Unsupported(instruction.name)
    target, source, amount, *rest = instruction.operands
    if not isinstance(amount, Immediate):
        raise Unsupported(instruction.name)
    width = int(amount.value)
    dtype = {4: np.int32, 8: np.int64, 16: np.int64}[width]
    size = np.dtype(dtype).itemsize
    to_shared = address_reader(plan, target, "shared")
    to_global = address_reader(plan, source, "global")
    policy = any(m.endswith("cache_hint") for m in names)
    limit = plan.source(rest[0], "b32") if rest and not policy else None
    guard = plan.guard(instruction)
    op = "cp_async_cg" if "cg" in names else "cp_async"
    shared = plan.site(instruction, op, "shared", width)
    wide = plan.site(instruction, op, "global", width)

    def run(machine: Machine) -> None:
        active: bool | Part = machine.mask
        try:
            active = active_lanes(machine, guard)
            copied = reading(machine, limit, width, active)
            destination, origin = to_shared(machine), to_global(machine)
        except Poisoned as unknown:
            poison = unknown.poison.through(instruction)
            machine.unknown_access(shared, poison, active)
            machine.unknown_access(wide, poison, active)
            machine.memory.space("shared").poison = poison
            return
        machine.access(shared, destination, active, OtherSide(origin, copied))
        machine.access(wide, origin, copied, OtherSide(plus(destination, -SHARED_BASE), copied))
        if not data or active is False:
            return
        into = machine.memory.space("shared")
        for i in range(width // size):
            value: np.ndarray = np.zeros((1, 1), dtype)
            if copied is not False:
                found = machine.memory.space("global").load(plus(origin, i * size), dtype, copied)
                value = np.where(to_bools(copied), found, dtype(0))
            into.store(plus(destination, i * size), value, active)

    return run


def reading(machine: Machine, limit: int | None, width: int, active: bool | Part) -> bool | Part:
    """The lanes whose global side is read: those with a source size above zero.

    Raises:
        Poisoned: the size is not known.
        Unsupported: only a part of the bytes is read.
    """
    if limit is None:
        return active
    value = machine.slots[limit]
    if isinstance(value, (bool, Part)):  # the "ignore-src" predicate
        return both(active, invert(value))
    amount = ints(value, 32)
    array = to_array(fit(amount, 32))
    if not np.isin(array, (0, width)).all():
        machine.refuse("cp.async that reads a part of its bytes is not executed")
    return both(active, from_bools(array != 0))
