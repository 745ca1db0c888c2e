"""Instructions that look at other lanes of the warp, special registers, and moves.

Shuffles, votes, match and redux; `%tid` and its family; `mov`, `cvta`, `isspacep`.
Source: PTX ISA, "Parallel Synchronization and Communication", "Special Registers".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.ptx.program import Instruction, Pair, Vector
from memsim.simt.memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_SIZE
from memsim.simt.plan import Plan, Step, active_lanes, step
from memsim.simt.registry import Unsupported, scalar_type
from memsim.simt.values import (
    Part,
    Poison,
    Poisoned,
    Sum,
    bounds,
    fit,
    from_array,
    from_bools,
    ints,
    plus,
    poisoned,
    predicate,
    to_array,
    to_bools,
)

if TYPE_CHECKING:
    from memsim.simt.machine import Machine

Value = Any


def warps(array: np.ndarray, machine: Machine) -> np.ndarray:
    """An array over threads as (blocks or 1, warps, 32)."""
    rows = array.shape[0]
    return np.broadcast_to(array, (rows, machine.threads)).reshape(rows, -1, 32)


def flatten(array: np.ndarray) -> np.ndarray:
    """Back from (rows, warps, 32) to (rows, threads)."""
    return np.ascontiguousarray(array).reshape(array.shape[0], -1)


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


@step("shfl")
def build_shuffle(plan: Plan, instruction: Instruction, data: bool) -> Step:
    if scalar_type(instruction) != "b32" or "sync" not in instruction.modifiers:
        raise Unsupported(instruction.name)
    mode = next(m for m in ("up", "down", "bfly", "idx") if m in instruction.modifiers)
    value_slot, b_slot, c_slot = (plan.source(o, "b32") for o in instruction.operands[1:4])
    wants_flag = isinstance(instruction.operands[0], Pair)

    def run_lanes(machine: Machine, active: bool | Part) -> list[Value]:
        value = machine.slots[value_slot]
        b = to_array(ints(machine.slots[b_slot], 32)) & 31
        c = to_array(ints(machine.slots[c_slot], 32))
        lane = (np.arange(machine.threads) % 32)[None, :]
        segment = (c >> 8) & 31
        clamp = c & 31
        lowest = lane & segment
        limit = lowest | (clamp & ~segment)
        if mode == "up":
            source, valid = lane - b, lane - b >= limit
        elif mode == "down":
            source, valid = lane + b, lane + b <= limit
        elif mode == "bfly":
            source, valid = lane ^ b, (lane ^ b) <= limit
        else:
            source = lowest | (b & ~segment)
            valid = source <= limit
        source = np.where(valid, source, lane)
        results = [gather(value, source, machine)]
        return [*results, from_bools(np.broadcast_to(valid, source.shape))] if wants_flag else results

    return lane_step(plan, instruction, run_lanes)


def gather(value: Value, source: np.ndarray, machine: Machine) -> Value:
    """Each lane's value of lane `source` of its warp."""
    if type(value) is int:
        return value
    if isinstance(value, (Sum, np.ndarray)):
        array = value if isinstance(value, np.ndarray) else to_array(value)
        rows = max(array.shape[0], source.shape[0])
        from_lanes = np.broadcast_to(warps(array, machine), (rows, machine.threads // 32, 32))
        index = np.broadcast_to(warps(source, machine), from_lanes.shape)
        moved = flatten(np.take_along_axis(from_lanes, index, axis=2))
        return moved if isinstance(value, np.ndarray) else from_array(moved)
    raise poisoned(value)


def active_warps(machine: Machine, active: bool | Part, rows: int) -> np.ndarray:
    """The active lanes as bool (rows or B, warps, 32)."""
    mask = warps(to_bools(active), machine)
    return np.broadcast_to(mask, (max(rows, mask.shape[0]), *mask.shape[1:]))


def ballot(bits: np.ndarray) -> Value:
    """bool (rows, warps, 32) as one 32-bit mask in every lane of the warp."""
    words = (bits.astype(np.int64) << np.arange(32)).sum(axis=2, keepdims=True)
    return fit(from_array(flatten(np.broadcast_to(words, bits.shape))), 32)


@step("vote", "activemask")
def build_vote(plan: Plan, instruction: Instruction, data: bool) -> Step:
    if instruction.opcode == "activemask":
        return lane_step(plan, instruction, lambda machine, active: [ballot(active_warps(machine, active, 1))])
    mode = next(m for m in ("all", "any", "uni", "ballot") if m in instruction.modifiers)
    read = plan.operand_reader(instruction.operands[1], "pred")

    def run_lanes(machine: Machine, active: bool | Part) -> list[Value]:
        value = predicate(machine.slots[read] if isinstance(read, int) else read(machine))
        asked = warps(to_bools(value), machine)
        mask = active_warps(machine, active, asked.shape[0])
        yes = asked & mask
        if mode == "ballot":
            return [ballot(yes)]
        any_yes = yes.any(axis=2, keepdims=True)
        all_yes = (asked | ~mask).all(axis=2, keepdims=True)
        answer = {"any": any_yes, "all": all_yes, "uni": all_yes | ~any_yes}[mode]
        return [from_bools(flatten(np.broadcast_to(answer, yes.shape)))]

    return lane_step(plan, instruction, run_lanes)


@step("match")
def build_match(plan: Plan, instruction: Instruction, data: bool) -> Step:
    bits = int(scalar_type(instruction)[1:])
    slot = plan.source(instruction.operands[1], scalar_type(instruction))
    needs_all = "all" in instruction.modifiers

    def run_lanes(machine: Machine, active: bool | Part) -> list[Value]:
        values = warps(to_array(ints(machine.slots[slot], bits)), machine)
        mask = active_warps(machine, active, values.shape[0])
        same = (values[..., :, None] == values[..., None, :]) & mask[..., None, :]
        words = (same.astype(np.int64) << np.arange(32)).sum(axis=3)
        if not needs_all:
            return [fit(from_array(flatten(np.broadcast_to(words, mask.shape))), 32)]
        agreed = (same | ~mask[..., None, :]).all(axis=3)
        return [
            fit(from_array(flatten(np.where(agreed, words, 0))), 32),
            from_bools(flatten(np.broadcast_to(agreed, mask.shape))),
        ]

    return lane_step(plan, instruction, run_lanes)


@step("redux")
def build_redux(plan: Plan, instruction: Instruction, data: bool) -> Step:
    operation = next((m for m in ("add", "min", "max", "and", "or", "xor") if m in instruction.modifiers), None)
    kind = scalar_type(instruction)
    if operation is None or kind not in ("u32", "s32", "b32"):
        raise Unsupported(instruction.name)
    slot = plan.source(instruction.operands[1], kind)
    ufunc = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }[operation]

    def run_lanes(machine: Machine, active: bool | Part) -> list[Value]:
        array = to_array(ints(machine.slots[slot], 32))
        if kind == "u32":
            array = array & 0xFFFFFFFF
        values = warps(array, machine)
        mask = active_warps(machine, active, values.shape[0])
        neutral = {"min": 2**32, "max": -(2**31), "and": -1}.get(operation, 0)
        reduced = ufunc.reduce(np.where(mask, values, neutral), axis=2, keepdims=True)
        return [fit(from_array(flatten(np.broadcast_to(reduced, mask.shape))), 32)]

    return lane_step(plan, instruction, run_lanes)


@step("elect")
def build_elect(plan: Plan, instruction: Instruction, data: bool) -> Step:

    def run_lanes(machine: Machine, active: bool | Part) -> list[Value]:
        mask = active_warps(machine, active, 1)
        leader = np.broadcast_to(mask.argmax(axis=2)[..., None], mask.shape)
        return [from_array(flatten(leader).astype(np.int64)), from_bools(flatten(leader == np.arange(32)))]

    return lane_step(plan, instruction, run_lanes)


# --- moves and address spaces ---------------------------------------------------------------

_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}


@step("mov")
def build_mov(plan: Plan, instruction: Instruction, data: bool) -> Step:
    target, source = instruction.operands
    kind = scalar_type(instruction)
    guard = plan.guard(instruction)
    if isinstance(target, Vector) or isinstance(source, Vector):
        return packed_move(plan, instruction, int(kind[1:]))
    read, slot = plan.source(source, kind), plan.destination(target)

    def run(machine: Machine) -> None:
        try:
            active = True if guard is None else guard(machine)
            value = machine.slots[read]
            if value is None:
                raise poisoned(value)
            if isinstance(value, Poison):
                value = value.through(instruction)
        except Poisoned as unknown:
            active, value = True, unknown.poison.through(instruction)
        if active is not False:
            machine.write(slot, value, active)

    return run


def packed_move(plan: Plan, instruction: Instruction, bits: int) -> Step:
    """`mov.b64 {a, b}, c` and back."""
    target, source = instruction.operands
    if isinstance(target, Vector):
        slots = [plan.destination(item) for item in target.items]
        size = bits // len(slots)
        read = plan.source(source, f"b{bits}")

        def unpack(machine: Machine, active: bool | Part) -> list[Value]:
            array = to_array(ints(machine.slots[read], bits))
            return [fit(from_array(array >> (size * i)), size) for i in range(len(slots))]

        return lane_step(plan, instruction, unpack)
    assert isinstance(source, Vector)
    count = len(source.items)
    size = bits // count
    if bits > 64:
        raise Unsupported(instruction.name)
    reads = [plan.source(item, f"b{size}") for item in source.items]

    def pack(machine: Machine, active: bool | Part) -> list[Value]:
        total = np.zeros((1, 1), np.int64)
        for i, slot in enumerate(reads):
            part = to_array(ints(machine.slots[slot], size)) & ((1 << size) - 1)
            total = total | (part << (size * i))
        return [fit(from_array(total), bits)]

    return lane_step(plan, instruction, pack)


@step("cvta")
def build_cvta(plan: Plan, instruction: Instruction, data: bool) -> Step:
    names = instruction.modifiers
    space = next((n.split("::")[0] for n in names if n.split("::")[0] in ("global", "shared", "local", "const", "param")), "")
    if space not in ("global", "shared", "local", "const"):
        raise Unsupported(instruction.name)
    window = _WINDOWS.get(space, 0)
    offset = -window if "to" in names else window
    read = plan.source(instruction.operands[1], "b64")
    return lane_step(
        plan, instruction, lambda machine, active: [plus(ints(machine.slots[read], 64), offset)]
    )


@step("isspacep")
def build_isspacep(plan: Plan, instruction: Instruction, data: bool) -> Step:
    space = instruction.modifiers[0].split("::")[0]
    if space not in ("global", "shared", "local"):
        raise Unsupported(instruction.name)
    read = plan.source(instruction.operands[1], "b64")

    def inside(value: int | Sum, start: int) -> bool | Part:
        lo, hi = bounds(value)
        if start <= lo and hi < start + WINDOW_SIZE:
            return True
        array = to_array(value)
        return from_bools((array >= start) & (array < start + WINDOW_SIZE))

    def run_lanes(machine: Machine, active: bool | Part) -> list[Value]:
        value = ints(machine.slots[read], 64)
        if space != "global":
            return [inside(value, _WINDOWS[space])]
        elsewhere = [to_bools(inside(value, start)) for start in _WINDOWS.values()]
        return [from_bools(~(elsewhere[0] | elsewhere[1]))]

    return lane_step(plan, instruction, run_lanes)


# --- special registers ----------------------------------------------------------------------


def special_value(name: str, machine: Machine) -> Value:
    """What a special register holds in the current chunk of blocks."""
    launch = machine.launch
    base, _, axis = name.lstrip("%").partition(".")
    at = {"x": 0, "y": 1, "z": 2, "w": 3}.get(axis, 0)
    if at == 3:
        return 0
    thread = np.arange(machine.threads, dtype=np.int64)[None, :]
    block = machine.blocks[:, None]
    lane = thread % 32
    if base in ("tid", "ctaid", "clusterid"):
        index, shape = (thread, launch.block) if base == "tid" else (block, launch.grid)
        step_size = (1, shape[0], shape[0] * shape[1])[at]
        return compact(index // step_size % shape[at])
    masks: dict[str, Callable[[], np.ndarray]] = {
        "lanemask_eq": lambda: np.int64(1) << lane,
        "lanemask_lt": lambda: (np.int64(1) << lane) - 1,
        "lanemask_le": lambda: (np.int64(2) << lane) - 1,
        "lanemask_gt": lambda: (-np.int64(2) << lane) & 0xFFFFFFFF,
        "lanemask_ge": lambda: (-np.int64(1) << lane) & 0xFFFFFFFF,
        "laneid": lambda: lane,
        "warpid": lambda: thread // 32,
    }
    if base in masks:
        return fit(compact(masks[base]()), 32)
    uniform = {
        "ntid": launch.block[at],
        "nctaid": launch.grid[at],
        "nclusterid": launch.grid[at],
        "nwarpid": launch.warps,
        "cluster_ctaid": 0,
        "cluster_nctaid": 1,
        "cluster_ctarank": 0,
        "cluster_nctarank": 1,
        "dynamic_smem_size": launch.shared_bytes,
        "total_smem_size": machine.memory.shared_bytes,
        "gridid": 1,
    }
    if base in uniform:
        return uniform[base]
    return Poison(f"{name} is not known before the kernel runs on a chip", None)


def compact(array: np.ndarray) -> int | Sum:
    """An index array as a value; one int where all are equal."""
    if array.min() == array.max():
        return int(array.flat[0])
    return from_array(np.ascontiguousarray(array))


