"""Groups of lanes with a common program counter, and their scheduling.

The group that is farthest behind runs next. Groups of different warps at the same place run together, which
does not affect them; those of one warp reconverge only where the code says so (BSYNC, WARPSYNC). Where the
chip may reconverge lanes earlier, the listener is notified, unless these only compute up to where all wait:
on such quiet ways it makes no difference which lanes go together.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

from memsim.isa.op import Effect, Flow
from memsim.isa.program import Op
from memsim.simt.code import Code
from memsim.simt.control_graph import ControlGraph, barrier_slot
from memsim.simt.machine import Machine
from memsim.state.parts import Mask
from memsim.state.poison import Poison
from memsim.state.predicates import both, either, to_bools


@dataclass(eq=False)
class Group:
    """Lanes with one program counter, of one or several warps.

    turns: how often they have branched backward. yields: they are parked by a YIELD. passed: the barrier that
    others have passed meanwhile without them.
    """

    pc: int
    mask: Mask
    turns: int = 0
    yields: bool = False
    passed: int | None = None


class Waits(Protocol):
    """A place where lanes wait for others."""

    @property
    def waiting(self) -> Sized:
        """The waiting lanes."""

    def start(self) -> None:
        """Reset for new blocks."""

    def live(self) -> int:
        """Slots that waiting lanes will read."""


class Groups:
    """The groups of the running blocks: `ready`, or `parked` because they may wait for others.

    waits: the lanes that are in no group. eager: groups that have nothing to execute before a barrier, branch
    or exit run first, so that few groups accumulate; for independent warps.
    """

    def __init__(self, machine: Machine, code: Code, eager: bool = False) -> None:
        self.machine = machine
        self.code = code
        self.eager = eager
        self.ready: list[Group] = []
        self.parked: list[Group] = []
        self.waits: list[Waits] = []

    def start(self) -> None:
        """New blocks start at the first instruction."""
        self.ready = [Group(0, self.machine.alive)]
        self.parked = []

    def next(self) -> Group:
        """The group that is farthest behind, merged with those of other warps at the same place."""
        first = min(self.ready, key=self.turn)
        self.ready.remove(first)
        others = [group for group in self.ready if group.pc == first.pc]
        if others:
            taken = self.machine.warps_of(first.mask)
            for other in others:
                warps = self.machine.warps_of(other.mask)
                if not (taken & warps).any():
                    self.ready.remove(other)
                    first = Group(first.pc, either(first.mask, other.mask), max(first.turns, other.turns))
                    taken = taken | warps
                elif not self.join_later(first.pc, first.mask, other.mask):
                    where = self.code.program.ops[first.pc].where
                    self.machine.listener.uncertain(
                        f"lanes of a warp that reach {where} at the same time may reconverge early: "
                        "the code has no barrier there"
                    )
        self.machine.order.run_together(first.mask)
        return first

    def turn(self, group: Group) -> tuple[bool, int]:
        """The scheduling order of groups."""
        return not self.eager or bool(self.code.segments[group.pc].steps), group.pc

    def join_later(self, pc: int, some: Mask, others: Mask) -> bool:
        """Do lanes at one place wait for each other, or end, before it matters which of them go together?

        At barriers that only one of the groups has set the other is not waited for.
        """
        passed = frozenset[int]()
        while slots := waits_behind(self.code.dataflow, pc, passed):
            apart = frozenset(slot for slot in slots if not self._wait_for_each_other(slot, some, others))
            if not apart:
                return True
            passed |= apart
        return slots is not None

    def _wait_for_each_other(self, slot: int, some: Mask, others: Mask) -> bool:
        """Do lanes of the same warp wait for each other at a convergence barrier?"""
        machine = self.machine
        if isinstance(machine.slots[slot], Poison):
            return False
        lanes = both(either(some, others), both(machine.whole_warps(some), machine.whole_warps(others)))
        absent = machine.words_of(lanes) & ~machine.members_of(slot) != 0
        return not bool((absent & to_bools(lanes)).any())

    def read_by_others(self) -> int:
        """Live slots (a bit set) of lanes outside of the running group."""
        live = self.code.live
        found = 0
        for waits in self.waits:
            found |= waits.live()
        for other in (*self.ready, *self.parked):
            found |= live(other.pc)
        return found

    def is_alone(self) -> bool:
        """Are all threads that have not exited in the running group?"""
        return not (self.ready or self.parked or any(waits.waiting for waits in self.waits))

    def part(self, ways: Sequence[tuple[int, Mask]]) -> int | None:
        """The running group diverges."""
        ways = [(pc, mask) for pc, mask in ways if mask is not False]
        if len(ways) == 1:
            self.machine.mask = ways[0][1]
            return ways[0][0]
        self.ready.extend(Group(pc, mask) for pc, mask in ways)
        return None


@dataclass(frozen=True)
class Waiting:
    """Lanes that wait at an instruction, and go on behind it."""

    op: Op
    mask: Mask


Entry = TypeVar("Entry", bound=Waiting)


class WaitingLanes(Generic[Entry]):
    """Lanes of the running blocks that wait at a barrier for others."""

    def __init__(self, machine: Machine, code: Code, groups: Groups) -> None:
        self.machine = machine
        self.code = code
        self.groups = groups
        self.waiting: list[Entry] = []

    def start(self) -> None:
        """Reset for new blocks."""
        self.waiting = []

    def live(self) -> int:
        """Slots that waiting lanes will read."""
        found = 0
        for entry in self.waiting:
            found |= self.code.live(entry.op.index + 1)
        return found

    def go_behind(self, op: Op, lanes: Mask) -> None:
        """These lanes, if any, go on behind an instruction."""
        if lanes is not False:
            self.groups.ready.append(Group(op.index + 1, lanes))


#: Basic blocks on such ways that are looked at.
MOST_BLOCKS = 100

_PASSED = (
    *(None, Flow.BRANCH, Flow.EXIT),
    *(Flow.SET_BARRIER, Flow.LEAVE_BARRIER, Flow.WAIT_BARRIER, Flow.WARP_SYNC),
)


@lru_cache(maxsize=1024)
def waits_behind(
    graph: ControlGraph, start: int, passed: frozenset[int] = frozenset()
) -> frozenset[int] | None:
    """The convergence barriers at which the ways from the basic block at `start` end; None if on one of them
    an access is made, another lane asked, or a function left.

    Ways end at WARPSYNC and EXIT, too, but not at barriers that are `passed`.
    """
    work = [(start, frozenset[int]())]
    seen, found = set(work), set[int]()
    while work:
        place, held = work.pop()
        if place not in graph.basic_blocks or len(seen) > MOST_BLOCKS:
            return None
        ops = graph.block(place)
        for op in ops:
            if op.effect in (Effect.MEMORY, Effect.LANES) or op.flow not in _PASSED or not op.is_known:
                return None
            if op.flow is None and op.writes & graph.program.barriers:
                return None
        last = ops[-1]
        if last.flow is Flow.WARP_SYNC:
            continue
        if last.flow is Flow.SET_BARRIER:
            held |= {barrier_slot(last)}
        elif last.flow is Flow.WAIT_BARRIER and barrier_slot(last) not in held | passed:
            found.add(barrier_slot(last))
            continue
        for way in graph.successors(last):
            if (way, held) not in seen:
                seen.add((way, held))
                work.append((way, held))
    return frozenset(found)
