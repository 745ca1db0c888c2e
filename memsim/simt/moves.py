"""Moves and generic addresses: `mov` (packing and unpacking too), `cvta`, `isspacep`.

In: a plan and an instruction. Out: a step.
Source: PTX ISA, "Data Movement and Conversion Instructions".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.ptx.program import Instruction, Vector
from memsim.simt.lanes import lane_step
from memsim.simt.plan import Plan, Step, step
from memsim.simt.registry import Unsupported, expect, scalar_type
from memsim.state.memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_SIZE
from memsim.state.registers import (
    Part,
    Poison,
    bounds,
    fit,
    from_array,
    from_bools,
    ints,
    plus,
    poisoned,
    to_array,
    to_bools,
)
from memsim.state.sums import Int

if TYPE_CHECKING:
    from memsim.simt.machine import Machine

Value = Any

_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}


@step("mov")
def build_mov(plan: Plan, instruction: Instruction, data: bool) -> Step:
    expect(instruction, modifiers=1, operands=2, results=(1, 2, 4))
    target, source = instruction.operands
    if isinstance(target, Vector):
        return unpacking(plan, instruction, target)
    if isinstance(source, Vector):
        return packing(plan, instruction, source)
    return plan.alu_step(instruction, known)


def known(value: Value) -> Value:
    """Any value that there is.

    Raises:
        Poisoned: there is none.
    """
    if value is None or isinstance(value, Poison):
        raise poisoned(value)
    return value


def element_size(instruction: Instruction, vector: Vector) -> tuple[int, int]:
    """Bits of the whole and of one element."""
    kind, count = scalar_type(instruction), len(vector.items)
    if kind not in ("b16", "b32", "b64") or count not in (2, 4) or int(kind[1:]) // count < 8:
        raise Unsupported(instruction.name)
    return int(kind[1:]), int(kind[1:]) // count


def unpacking(plan: Plan, instruction: Instruction, target: Vector) -> Step:
    """`mov.b64 {a, b}, c`: the lowest bits go to the first."""
    bits, size = element_size(instruction, target)
    read = plan.source(instruction.operands[1], f"b{bits}")
    count = len(target.items)

    def unpack(machine: Machine, active: bool | Part) -> list[Value]:
        array = to_array(ints(machine.slots[read], bits))
        return [fit(from_array(array >> (size * i)), size) for i in range(count)]

    return lane_step(plan, instruction, unpack)


def packing(plan: Plan, instruction: Instruction, source: Vector) -> Step:
    """`mov.b64 c, {a, b}`: the first makes the lowest bits."""
    bits, size = element_size(instruction, source)
    reads = [plan.source(item, f"b{size}") for item in source.items]

    def pack(machine: Machine, active: bool | Part) -> list[Value]:
        total: np.ndarray = np.zeros((1, 1), np.int64)
        for i, slot in enumerate(reads):
            element = to_array(ints(machine.slots[slot], size)) & ((1 << size) - 1)
            total = total | (element << (size * i))
        return [fit(from_array(total), bits)]

    return lane_step(plan, instruction, pack)


@step("cvta")
def build_cvta(plan: Plan, instruction: Instruction, data: bool) -> Step:
    *to, space, kind = instruction.modifiers if len(instruction.modifiers) > 1 else ("", "", "")
    space = space.split("::")[0]
    if to not in ([], ["to"]) or space not in ("global", "shared", "local", "const") or kind != "u64":
        raise Unsupported(instruction.name)
    if space == "const" and not to:
        raise Unsupported(instruction.name)  # where constant memory lies among generic addresses is not known
    expect(instruction, operands=2)
    window = _WINDOWS.get(space, 0)
    offset = -window if to else window
    return plan.alu_step(instruction, lambda a: plus(ints(a, 64), offset))


@step("isspacep")
def build_isspacep(plan: Plan, instruction: Instruction, data: bool) -> Step:
    expect(instruction, modifiers=1, operands=2)
    space = instruction.modifiers[0].split("::")[0]
    if space not in ("global", "shared", "local"):
        raise Unsupported(instruction.name)

    def compute(a: Value) -> bool | Part:
        value = ints(a, 64)
        if space != "global":
            return inside(value, _WINDOWS[space])
        elsewhere = [to_bools(inside(value, start)) for start in _WINDOWS.values()]
        return from_bools(~(elsewhere[0] | elsewhere[1]))

    return plan.alu_step(instruction, compute)


def inside(value: Int, start: int) -> bool | Part:
    """Does a generic address lie in the window that starts there?"""
    lo, hi = bounds(value)
    if start <= lo and hi < start + WINDOW_SIZE:
        return True
    array = to_array(value)
    return from_bools((array >= start) & (array < start + WINDOW_SIZE))
