"""Groups: lanes that are at one place, and which of them runs next.

In: groups that part at branches, and those that may go on. Out: the group that is farthest behind. Groups of
different warps at the same place run together, which changes nothing for any of them; those of one warp come
together only where the code says so (BSYNC, WARPSYNC); where the chip may join others, the listener is told.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Any, Protocol

from memsim.isa.op import Effect, Flow
from memsim.simt.code import Code
from memsim.simt.machine import Machine
from memsim.state.registers import (
    either,
)


@dataclass(eq=False)
class Group:
    """Lanes with one program counter, of one or of many warps; `turns` counts their ways back."""

    pc: int
    mask: Any
    turns: int = 0


class Waits(Protocol):
    """Where lanes wait for others."""

    @property
    def waiting(self) -> Sized:
        """Who waits."""

    def live(self) -> int:
        """Slots that waiting lanes will read."""


class Groups:
    """The groups of the blocks that run: `ready` to go on, or `parked` because they may wait for others.

    waits: where lanes are that are in no group.
    """

    def __init__(self, machine: Machine, code: Code) -> None:
        self.machine = machine
        self.code = code
        self.ready: list[Group] = []
        self.parked: list[Group] = []
        self.waits: list[Waits] = []

    def start(self) -> None:
        """New blocks begin, at the first instruction."""
        self.ready = [Group(0, self.machine.alive)]
        self.parked = []

    def next(self) -> Group:
        """The group that is farthest behind, with those of other warps at the same place."""
        first = min(self.ready, key=lambda group: group.pc)
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
                elif not self.joins_at_once(first.pc):
                    where = self.code.program.ops[first.pc].where
                    self.machine.listener.unsure(
                        f"lanes of a warp that are at the same time at {where} may go on together: "
                        "nothing there joins them"
                    )
        return first

    def joins_at_once(self, pc: int) -> bool:
        """Is no more than a barrier or the end ahead, so that it is all the same who comes together?"""
        segment = self.code.segments[pc]
        control = segment.control
        ends = control is not None and (
            control.flow in (Flow.WAIT_BARRIER, Flow.WARP_SYNC)
            or (control.flow is Flow.EXIT and control.guard is None)
        )
        return ends and not any(op.effect is Effect.MEMORY for op in self.code.program.ops[pc : segment.stop])

    def read_by_others(self) -> int:
        """Slots (a bit set) that lanes outside the running group will still read."""
        live = self.code.live
        found = 0
        for waits in self.waits:
            found |= waits.live()
        for other in (*self.ready, *self.parked):
            found |= live(other.pc)
        return found

    def is_alone(self) -> bool:
        """Are all threads that have not ended in the running group?"""
        return not (self.ready or self.parked or any(waits.waiting for waits in self.waits))

    def part(self, ways: Sequence[tuple[int, Any]]) -> int | None:
        """The running group goes several ways."""
        ways = [(pc, mask) for pc, mask in ways if mask is not False]
        if len(ways) == 1:
            self.machine.mask = ways[0][1]
            return ways[0][0]
        self.ready.extend(Group(pc, mask) for pc, mask in ways)
        return None
