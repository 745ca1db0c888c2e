"""Independent warps: each is a row of its own, and rows that lag behind run separately.

In a loop that some warps leave early, the others continue in a smaller chunk. Kernels whose warps
synchronize, share memory, or may wait for each other are excluded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from memsim.isa.op import Flow, Op, Program
from memsim.isa.reach import GLOBAL, spaces_read
from memsim.simt.convergence import Meeting
from memsim.simt.groups import Group
from memsim.state.launch_memory import Memory
from memsim.state.partial import Partial
from memsim.state.registers import Part, Sum, from_bools

#: Chunks of this many rows are not divided further: overhead per instruction then exceeds the work of lanes.
FEWEST = 1 << 8
#: Consecutive groups after which rows that were in none of them are split off.
WINDOW = 24


def are_independent(program: Program, needed: frozenset[int] | None, memory: Memory) -> bool:
    """Whether the warps of a launch are independent, and running them as rows may pay off.

    It does if loaded values decide the control flow; otherwise most blocks do the same. needed: the
    instructions whose values addresses and branches depend on; None if all are executed.
    """
    if needed is None or memory.shared_bytes:
        return False
    meetings = (Flow.BLOCK_BARRIER, Flow.ARRIVE_CLUSTER, Flow.WAIT_CLUSTER, Flow.SLEEP)
    if any(op.flow in meetings for op in program.ops):
        return False
    loads = [op for op in program.ops if op.index in needed and GLOBAL in spaces_read(op)]
    return bool(loads) and not any(may_wait(op) for op in loads)


def may_wait(op: Op) -> bool:
    """May it observe writes of other warps meanwhile: an atomic, or a load that bypasses the L1 cache?"""
    past = {"STRONG", "ACQUIRE", "RELAXED", "MMIO"} & set(op.form.modifiers)
    return bool(past) or any(kind != "load" for kind, _ in op.touches)


@dataclass(frozen=True)
class WarpRows:
    """The state of some rows of a chunk: registers, ready and waiting groups, and remaining instructions."""

    blocks: np.ndarray
    first: np.ndarray
    slots: list[Any]
    alive: Any
    ready: list[Group]
    parked: list[Group]
    meetings: dict[tuple[int, int], Meeting]
    steps_left: int


def chosen(state: WarpRows, rows: np.ndarray) -> WarpRows:
    """The state of these rows (indices, ascending)."""
    total, seen = len(state.blocks), {}  # type: int, dict[int, Any]

    def array_of(array: np.ndarray) -> np.ndarray:
        return array[rows] if array.shape[0] == total else array

    def part(one: Part | None) -> Part | None:
        if one is None or one.array.shape[0] != total:
            return one
        if one.uid not in seen:
            seen[one.uid] = Part(array_of(one.array))
        return seen[one.uid]  # type: ignore[no-any-return]

    def mask(one: Any) -> Any:
        if not isinstance(one, Part) or one.array.shape[0] != total:
            return one
        if one.uid not in seen:
            seen[one.uid] = from_bools(array_of(one.array))
        return seen[one.uid]

    def value(one: Any) -> Any:
        if isinstance(one, Sum):
            return Sum(one.s, part(one.u), part(one.v), part(one.f))
        if isinstance(one, Part):
            return mask(one)
        if isinstance(one, np.ndarray):
            return array_of(one)
        if isinstance(one, Partial):
            known = mask(one.known)
            held = value(one.value)
            if isinstance(known, bool):
                return held if known else one.poison
            return Partial(held, known, one.poison)
        return one

    def groups(some: list[Group]) -> list[Group]:
        found = [Group(group.pc, mask(group.mask), group.turns) for group in some]
        return [group for group in found if group.mask is not False]

    meetings = {
        key: replace(meeting, mask=mask(meeting.mask), members=array_of(meeting.members))
        for key, meeting in state.meetings.items()
        if mask(meeting.mask) is not False
    }
    return WarpRows(
        array_of(state.blocks),
        array_of(state.first),
        [value(one) for one in state.slots],
        mask(state.alive),
        groups(state.ready),
        groups(state.parked),
        meetings,
        state.steps_left,
    )
