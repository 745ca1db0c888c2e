"""Instructions that look at other lanes of the warp: `shfl vote activemask match redux elect`.

In: a plan and an instruction. Out: a step. The lanes that take part are those that are active
and named in the executing lane's member mask. What the ISA leaves undefined (reading a lane that
does not take part) gives what that lane's register holds.
Source: PTX ISA, "Parallel Synchronization and Communication Instructions", `shfl`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.ptx.program import Instruction, Operand
from memsim.simt.plan import Plan, Step, active_lanes, step
from memsim.simt.registry import Unsupported, expect
from memsim.state.registers import (
    Part,
    Poisoned,
    Sum,
    fit,
    from_array,
    from_bools,
    ints,
    poisoned,
    predicate,
    to_array,
    to_bools,
)

if TYPE_CHECKING:
    from memsim.simt.machine import Machine

Value = Any
LANES = np.arange(32)


def lane_step(
    plan: Plan, instruction: Instruction, run_lanes: Callable[[Machine, bool | Part], list[Value]]
) -> Step:
    """The frame of warp-wide instructions: `run_lanes(machine, active)` gives the results."""
    outputs = plan.destinations(instruction.operands[0])
    guard = plan.guard(instruction)

    def run(machine: Machine) -> None:
        where: bool | Part = True
        try:
            if guard is not None:
                where = guard(machine)
            active = active_lanes(machine, guard)
            if active is False:
                return
            results = run_lanes(machine, active)
        except Poisoned as unknown:
            results = [unknown.poison.through(instruction)] * len(outputs)
        for slot, value in zip(outputs, results):
            machine.write(slot, value, where)

    return run


def warps(array: np.ndarray, machine: Machine) -> np.ndarray:
    """An array over threads as (blocks or 1, warps, 32)."""
    rows = array.shape[0]
    return np.broadcast_to(array, (rows, machine.threads)).reshape(rows, -1, 32)


def flatten(array: np.ndarray) -> np.ndarray:
    """Back from (rows, warps, 1 or 32) to (rows, threads)."""
    rows, count, _ = array.shape
    return np.ascontiguousarray(np.broadcast_to(array, (rows, count, 32))).reshape(rows, -1)


def active_warps(machine: Machine, active: bool | Part) -> np.ndarray:
    """The active lanes as bool (rows, warps, 32)."""
    return warps(to_bools(active), machine)


def words(bits: np.ndarray) -> Value:
    """bool (rows, warps, 1 or 32, 32) as a 32-bit mask in each lane, or the same one in all."""
    return fit(from_array(flatten((bits.astype(np.int64) << LANES).sum(axis=3))), 32)


def predicates(bits: np.ndarray) -> bool | Part:
    """bool (rows, warps, 1 or 32) as a predicate."""
    return from_bools(flatten(bits))


def group_reader(
    plan: Plan, instruction: Instruction, mask: Operand
) -> Callable[[Machine, bool | Part], np.ndarray]:
    """Reads who takes part: bool (rows, warps, 1 or 32, 32), for each lane the lanes it deals with."""
    if "sync" not in instruction.modifiers:
        raise Unsupported(instruction.name)  # gone since sm_70
    slot = plan.source(mask, "b32")

    def read(machine: Machine, active: bool | Part) -> np.ndarray:
        members = to_array(ints(machine.slots[slot], 32))
        if members.size > 1:
            members = warps(members, machine)
        named = (members.reshape(*members.shape[:2], -1, 1) >> LANES) & 1
        return np.asarray(active_warps(machine, active)[..., None, :] & (named == 1))

    return read


# --- shfl -----------------------------------------------------------------------------------


@step("shfl")
def build_shuffle(plan: Plan, instruction: Instruction, data: bool) -> Step:
    expect(instruction, modifiers=3, operands=5, results=(1, 2))
    names = instruction.modifiers
    if names[0] != "sync" or names[2] != "b32" or names[1] not in ("up", "down", "bfly", "idx"):
        raise Unsupported(instruction.name)
    value_slot, b_slot, c_slot, _ = (plan.source(operand, "b32") for operand in instruction.operands[1:])

    def run_lanes(machine: Machine, active: bool | Part) -> list[Value]:
        b, c = (to_array(ints(machine.slots[slot], 32)) for slot in (b_slot, c_slot))
        lane = (np.arange(machine.threads) % 32)[None, :]
        source, valid = source_lane(names[1], lane, b & 31, c & 31, (c >> 8) & 31)
        return [gather(machine.slots[value_slot], np.where(valid, source, lane), machine), from_bools(valid)]

    return lane_step(plan, instruction, run_lanes)


def source_lane(
    mode: str, lane: np.ndarray, b: np.ndarray, clamp: np.ndarray, segment: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The lane that each lane reads from, and whether it lies in the lane's segment (ISA, `shfl`)."""
    lowest = lane & segment
    limit = lowest | (clamp & ~segment)
    if mode == "up":
        return lane - b, lane - b >= limit
    source = {"down": lane + b, "bfly": lane ^ b, "idx": lowest | (b & ~segment)}[mode]
    return source, source <= limit


def gather(value: Value, source: np.ndarray, machine: Machine) -> Value:
    """Each lane's value of lane `source` of its warp."""
    if type(value) is int:
        return value
    if not isinstance(value, (Sum, np.ndarray)):
        raise poisoned(value)
    array = value if isinstance(value, np.ndarray) else to_array(value)
    rows = max(array.shape[0], source.shape[0])
    from_lanes = np.broadcast_to(warps(array, machine), (rows, machine.threads // 32, 32))
    index = np.broadcast_to(warps(source, machine), from_lanes.shape)
    moved = flatten(np.take_along_axis(from_lanes, index, axis=2))
    return moved if isinstance(value, np.ndarray) else from_array(moved)


# --- vote, match, redux, elect --------------------------------------------------------------


@step("activemask")
def build_activemask(plan: Plan, instruction: Instruction, data: bool) -> Step:
    expect(instruction, modifiers=1, operands=1)
    return lane_step(
        plan, instruction, lambda machine, active: [words(active_warps(machine, active)[..., None, :])]
    )


@step("vote")
def build_vote(plan: Plan, instruction: Instruction, data: bool) -> Step:
    kinds = {"all": "pred", "any": "pred", "uni": "pred", "ballot": "b32"}
    expect(instruction, modifiers=3, operands=3)
    _, mode, kind = instruction.modifiers
    _, asked_operand, mask = instruction.operands
    if kinds.get(mode) != kind:
        raise Unsupported(instruction.name)
    read_group = group_reader(plan, instruction, mask)
    read = plan.operand_reader(asked_operand, "pred")

    def run_lanes(machine: Machine, active: bool | Part) -> list[Value]:
        value = predicate(machine.slots[read] if isinstance(read, int) else read(machine))
        asked = warps(to_bools(value), machine)[..., None, :]
        group = read_group(machine, active)
        if mode == "ballot":
            return [words(asked & group)]
        any_yes, all_yes = (asked & group).any(axis=3), (asked | ~group).all(axis=3)
        return [predicates({"any": any_yes, "all": all_yes, "uni": all_yes | ~any_yes}[mode])]

    return lane_step(plan, instruction, run_lanes)


@step("match")
def build_match(plan: Plan, instruction: Instruction, data: bool) -> Step:
    mode = instruction.modifiers[0] if instruction.modifiers else ""
    expect(instruction, modifiers=3, operands=3, results=(1, 2) if mode == "all" else (1,))
    _, operand, mask = instruction.operands
    kind = instruction.modifiers[2]
    if mode not in ("any", "all") or kind not in ("b32", "b64"):
        raise Unsupported(instruction.name)
    slot, bits = plan.source(operand, kind), int(kind[1:])
    read_group = group_reader(plan, instruction, mask)

    def run_lanes(machine: Machine, active: bool | Part) -> list[Value]:
        values = warps(to_array(ints(machine.slots[slot], bits)), machine)
        group = read_group(machine, active)
        same = values[..., :, None] == values[..., None, :]
        if mode == "any":
            return [words(same & group)]
        agreed = (same | ~group).all(axis=3)
        return [words(group & agreed[..., None]), predicates(agreed)]

    return lane_step(plan, instruction, run_lanes)


_REDUCTIONS: dict[str, tuple[np.ufunc, int]] = {
    "add": (np.add, 0),
    "min": (np.minimum, 2**32),
    "max": (np.maximum, -(2**31)),
    "and": (np.bitwise_and, -1),
    "or": (np.bitwise_or, 0),
    "xor": (np.bitwise_xor, 0),
}


@step("redux")
def build_redux(plan: Plan, instruction: Instruction, data: bool) -> Step:
    expect(instruction, modifiers=3, operands=3)
    _, operation, kind = instruction.modifiers
    _, operand, mask = instruction.operands
    kinds = ("b32",) if operation in ("and", "or", "xor") else ("u32", "s32")
    if operation not in _REDUCTIONS or kind not in kinds:
        raise Unsupported(instruction.name)
    slot = plan.source(operand, kind)
    read_group = group_reader(plan, instruction, mask)
    reduce, neutral = _REDUCTIONS[operation]

    def run_lanes(machine: Machine, active: bool | Part) -> list[Value]:
        array = to_array(ints(machine.slots[slot], 32))
        values = warps(array & 0xFFFFFFFF if kind == "u32" else array, machine)[..., None, :]
        reduced = reduce.reduce(np.where(read_group(machine, active), values, neutral), axis=3)
        return [fit(from_array(flatten(reduced)), 32)]

    return lane_step(plan, instruction, run_lanes)


@step("elect")
def build_elect(plan: Plan, instruction: Instruction, data: bool) -> Step:
    expect(instruction, modifiers=1, operands=2, results=(2,))
    read_group = group_reader(plan, instruction, instruction.operands[1])

    def run_lanes(machine: Machine, active: bool | Part) -> list[Value]:
        leader = read_group(machine, active).argmax(axis=3)
        return [from_array(flatten(leader)), predicates(leader == LANES)]

    return lane_step(plan, instruction, run_lanes)
