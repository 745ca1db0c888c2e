"""Warps that know nothing of each other: each a row of its own, and rows that lag behind run by themselves.

In: a program and what of it is executed; the state of an engine. Out: whether its warps may be rows, and the
state of some rows. In a loop that some warps leave early the others go on alone, as a chunk that is as small
as they are few. Left out on purpose: kernels whose warps meet, share memory, or may wait for each other.
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

#: Rows that are not divided any further: the work for each instruction is then more than that of the lanes.
FEWEST = 1 << 8
#: Groups that run one after the other before rows that were in none of them are left behind.
WINDOW = 24


def are_apart(program: Program, needed: frozenset[int] | None, memory: Memory) -> bool:
    """Whether each warp of a launch may run by itself, and it may pay.

    It does where what is loaded decides who does what; all else is the same in most blocks.
    needed: the instructions whose values addresses and branches depend on; None if all are executed.
    """
    if needed is None or memory.shared_bytes:
        return False
    meetings = (Flow.BLOCK_BARRIER, Flow.ARRIVE_CLUSTER, Flow.WAIT_CLUSTER, Flow.SLEEP)
    if any(op.flow in meetings for op in program.ops):
        return False
    loads = [op for op in program.ops if op.index in needed and GLOBAL in spaces_read(op)]
    return bool(loads) and not any(may_wait(op) for op in loads)


def may_wait(op: Op) -> bool:
    """May it be there to see what another warp writes meanwhile: an atomic, or a load past the L1 cache?"""
    past = {"STRONG", "ACQUIRE", "RELAXED", "MMIO"} & set(op.form.modifiers)
    return bool(past) or any(kind != "load" for kind, _ in op.touches)


@dataclass(frozen=True)
class WarpRows:
    """What some rows of a chunk hold: registers, who runs, who waits, and instructions left to execute."""

    blocks: np.ndarray
    first: np.ndarray
    slots: list[Any]
    alive: Any
    ready: list[Group]
    parked: list[Group]
    meetings: dict[tuple[int, int], Meeting]
    steps_left: int


def chosen(state: WarpRows, rows: np.ndarray) -> WarpRows:
    """The state of these rows (numbers, ascending)."""
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
