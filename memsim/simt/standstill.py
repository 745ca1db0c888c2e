"""Groups that loop while nothing changes any more: they wait for what no thread will do."""

from __future__ import annotations

import zlib

import numpy as np

from memsim.isa.op import Effect
from memsim.isa.program import Op
from memsim.simt.code import Code
from memsim.simt.faults import Deadlock, KernelFault, place_in_source, together
from memsim.simt.gathered_lanes import settle_own
from memsim.simt.groups import Group, Groups
from memsim.simt.machine import Machine
from memsim.state.registers import content

#: Bytes of memory, above which it is not looked at.
MOST_BYTES = 1 << 28
#: Instructions among which the end of a loop is looked for.
LOOP = 256


class Standstill:
    """Of the running blocks; looked for when each group has looped for long."""

    def __init__(self, machine: Machine, code: Code, groups: Groups) -> None:
        self._machine, self._code, self._groups = machine, code, groups
        self.start()

    def start(self) -> None:
        """New blocks start."""
        self._before: object = None
        self._memory: int | None = None

    def is_reached(self, live: int) -> bool:
        """Whether all that decides what happens is as it was the last time. live: slots that waiting lanes
        will read. Memory is looked at only where registers have stayed, so it takes three times.
        """
        state = self._state(live)
        if state != self._before:
            self._before, self._memory = state, None
            return False
        before, self._memory = self._memory, self._content()
        return before is not None and before == self._memory

    def _state(self, live: int) -> object:
        machine, parked = self._machine, self._groups.parked
        settle_own(machine)
        for group in parked:
            live |= self._code.live(group.pc)
        slots = [content(held) for slot, held in enumerate(machine.slots) if live >> slot & 1]
        groups = [(one.pc, content(one.mask), one.yields, one.passed) for one in parked]
        waiting = [len(waits.waiting) for waits in self._groups.waits]
        return groups, slots, content(machine.alive), waiting, machine.mbarriers.changes

    def _content(self) -> int | None:
        """What stands for that of memory; None: it is too large."""
        parts = [part for one in self._machine.memory.made for part in (one.data, one.unknown)]
        some = [part for part in parts if part is not None]
        if sum(part.nbytes for part in some) > MOST_BYTES:
            return None
        found = 0
        for part in some:
            found = zlib.crc32(np.ascontiguousarray(part).data, found)
        return found

    def error(self, are_all: bool, stuck: list[Deadlock]) -> Deadlock | KernelFault:
        """Who waits for what. are_all: all blocks of the launch have begun. stuck: who waits elsewhere."""
        loops = [self._deadlock(group) for group in self._groups.parked]
        if are_all:
            return together([*loops, *stuck])
        said = f"{loops[0].message}, unless blocks that have not begun do"
        return KernelFault(said, "endless", **place_in_source(loops[0].by.op))

    def _deadlock(self, group: Group) -> Deadlock:
        op, places = self._waits_at(group.pc), self._machine.places(group.mask)
        waits = f"wait at {op.text} for what no thread changes any more"
        if op.effect is not Effect.MEMORY:
            waits = f"are in it at {op.text}, and nothing changes any more"
        said = f"a loop that never ends: {places} {waits}"
        return Deadlock(said, self._machine.wrong(op, group.mask))

    def _waits_at(self, start: int) -> Op:
        """What the loop around an instruction reads."""
        ops = self._code.program.ops
        ends = (op for op in ops[start : start + LOOP] if op.targets and op.targets[0] <= start)
        end = next(ends, ops[start])
        first = end.targets[0] if end.targets else start
        reads = (op for op in ops[first : end.index] if op.effect is Effect.MEMORY and op.writes)
        return next(reads, ops[start])
