"""Reconvergence of the lanes of a warp: convergence barriers (BSSY, BSYNC, BREAK), WARPSYNC and YIELD.

Lanes wait for those that their barrier register names, but not for lanes that have exited, and at BSYNC not
for those that have yielded (YIELD) and not gone on since. Source: the counters of an H100 and an H200 on
divergent kernels (docs/model.md).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np

from memsim.isa.op import Flow, Trait
from memsim.isa.program import Op
from memsim.simt.code import Code
from memsim.simt.control_graph import barrier_slot
from memsim.simt.faults import Deadlock, unknown_branch
from memsim.simt.groups import Group, Groups
from memsim.simt.machine import Machine
from memsim.simt.yielded_lanes import YieldedLanes
from memsim.state.parts import Mask, select
from memsim.state.poison import Poisoned
from memsim.state.predicates import both, either, from_bools, invert, to_bools

#: Of a warp.
LANES = 32
#: In place of a barrier register, for lanes that return from another's ENDCOLLECTIVE.
RETURNING = -2


@dataclass(eq=False)
class Meeting:
    """Lanes waiting at a barrier: `members` holds for each lane the mask of lanes that it waits for, int64.

    They continue at `pc`. returning: they do so from another's ENDCOLLECTIVE, and wait for nobody.
    """

    op: Op
    pc: int
    mask: Mask
    members: np.ndarray
    returning: bool = False


class Convergence:
    """The waiting lanes of the blocks that are running."""

    def __init__(self, machine: Machine, code: Code, groups: Groups) -> None:
        self.machine = machine
        self.code = code
        self.groups = groups
        self.yielded = YieldedLanes(machine, code, groups)
        self.waiting: dict[tuple[int, int], Meeting] = {}

    def start(self) -> None:
        """Reset for new blocks."""
        self.waiting = {}

    def live(self) -> int:
        """Slots that waiting lanes will read."""
        found = 0
        for meeting in self.waiting.values():
            found |= self.code.live(meeting.pc)
        return found

    # --- instructions -------------------------------------------------------------------

    def set(self, op: Op, active: Mask, rest: Mask) -> int:
        """BSSY: the group's lanes will reconverge."""
        slot = barrier_slot(op)
        lanes = self.machine.words_of(active)
        old = self.machine.slots[slot]
        if old is not None and (rest is not False or self.machine.protected >> slot & 1):
            lanes = select(to_bools(active), lanes, self.machine.members_of(slot))
        self.machine.set_members(slot, lanes)
        return op.index + 1

    def leave(self, op: Op, active: Mask, rest: Mask) -> int:
        """BREAK: these lanes are no longer waited for."""
        slot = barrier_slot(op)
        leaving = self.machine.words_of(active)
        members = self.machine.members_of(slot)
        self.machine.set_members(slot, members & ~leaving)
        for key, meeting in list(self.waiting.items()):
            if barrier_slot(meeting.op) == slot:
                meeting.members = meeting.members & ~leaving
                self.release(key)
        return op.index + 1

    def wait(self, op: Op, active: Mask, rest: Mask) -> int | None:
        """BSYNC: wait for the lanes named in the barrier."""
        pc = self.code.dataflow.meeting[op.index]
        return self._meet(op, pc, active, rest, self.machine.members_of(barrier_slot(op)))

    def warp_sync(self, op: Op, active: Mask, rest: Mask) -> int | None:
        """WARPSYNC: wait for the lanes of the mask."""
        read = self.code.values.get(op.index)
        try:
            value = -1 if read is None else self.machine.known_value(op, read)
        except Poisoned as unknown:
            raise unknown_branch(op, unknown.poison) from None
        if Trait.EXCLUSIVE in op.traits and not self.groups.is_alone():
            others = self.machine.words_of(self.machine.alive) & ~self.machine.words_of(active)
            if (others.astype(bool) & to_bools(active)).any():
                self.machine.listener.uncertain(f"which lanes reconverge after {op.name} at {op.where}")
        members = self.machine.lane_words(value)
        if value != -1:
            self.machine.order.name_lanes(op.index, members, active)
        return self._meet(op, op.index + 1, active, rest, members)

    def give_way(self, op: Op, active: Mask, rest: Mask) -> int | None:
        """YIELD: the other lanes of these warps run first, and until then BSYNC does not wait for these."""
        waiting = [(one.pc, one.mask) for one in self.waiting.values() if one.op.flow is Flow.WAIT_BARRIER]
        if not self.yielded.give_way(op, active, rest, waiting):
            return op.index + 1
        self.check()
        return None

    def end_collective(self, op: Op, active: Mask, rest: Mask) -> int | None:
        """ENDCOLLECTIVE: lanes that came from another WARPSYNC.COLLECTIVE go back behind its own."""
        ways = []
        for key, meeting in list(self.waiting.items()):
            here = both(meeting.mask, active) if meeting.returning else False
            if here is not False:
                ways.append((meeting.pc, here))
                active = both(active, invert(here))
                self._withdraw(key, here)
        return self.groups.part([*ways, (op.index + 1, active)]) if ways else op.index + 1

    # --- reconvergence ------------------------------------------------------------------------

    def _meet(self, op: Op, pc: int, active: Mask, rest: Mask, members: np.ndarray) -> int | None:
        if rest is False and self._complete(op, active, members):
            ways = self._ways(op, active, members)
            return pc if len(ways) == 1 else self.groups.part([(pc, mask) for mask in ways])
        if rest is not False:
            self.groups.ready.append(Group(op.index + 1, rest))
        key = (pc, barrier_slot(op))
        meeting = self.waiting.get(key)
        if meeting is None:
            self.waiting[key] = Meeting(op, pc, active, members)
        else:
            meeting.members = self._with(meeting, active, members)
            meeting.mask = either(meeting.mask, active)
        self.release(key)
        if any(one.op.flow is Flow.WARP_SYNC for one in self.waiting.values()):
            self.check()  # whether others wait for lanes that are stuck by now
        return None

    def _with(self, meeting: Meeting, active: Mask, members: np.ndarray) -> np.ndarray:
        """Whom lanes of a meeting wait for if these come too; a word for each warp where that is enough."""
        if members.shape[1] == meeting.members.shape[1] == 1 and self.machine.threads == LANES:
            new, here = self.machine.warps_of(active), self.machine.warps_of(meeting.mask)
            if not (new & here & (members != meeting.members)).any():
                return select(new, members, meeting.members)
        return select(to_bools(active), members, meeting.members)

    def _complete(self, op: Op, active: Mask, members: np.ndarray) -> bool:
        """Have all lanes arrived that a lane of the group waits for?"""
        if self.groups.is_alone():
            return True
        here = self.machine.words_of(active)
        missing = members & self.machine.words_of(self.machine.alive) & ~here
        excused = self._excused(op, missing, here)
        waits = missing != excused
        if (waits & (to_bools(active) if waits.shape[1] > 1 else here != 0)).any():
            return False
        self.yielded.clear(op, active, excused)
        return True

    def _excused(self, op: Op, missing: np.ndarray, here: np.ndarray) -> np.ndarray | int:
        """Those of the `missing` lanes that `op`, where lanes are `here`, does not wait for.

        BSYNC does not for those that have yielded, nor for those that are stuck at a WARPSYNC: they wait for
        lanes that wait, too. The sanitizer tells of these, and its execution ends.
        """
        if op.flow is not Flow.WAIT_BARRIER or not missing.any():
            return 0
        lanes = self.yielded.lanes()
        at_syncs = [
            one for one in self.waiting.values() if one.op.flow is Flow.WARP_SYNC and not one.returning
        ]
        if at_syncs and self.machine.collect is None:
            blocked = reduce(or_, (self.machine.words_of(one.mask) for one in self.waiting.values()), here)
            running = self.machine.words_of(self.machine.alive) & ~blocked
            for one in at_syncs:
                stuck = both(one.mask, from_bools((one.members & running) == 0))
                lanes = lanes | self.machine.words_of(stuck)
        return 0 if type(lanes) is int else missing & lanes

    def check(self) -> None:
        """Release lanes that no longer wait for anyone, because others have exited, or are stuck."""
        for key in list(self.waiting):
            if key in self.waiting:
                self.release(key)

    def release(self, key: tuple[int, int]) -> None:
        """Release lanes of a meeting that no longer wait for anyone."""
        meeting = self.waiting[key]
        if meeting.returning:
            return
        alive, here = self.machine.words_of(self.machine.alive), self.machine.words_of(meeting.mask)
        missing = meeting.members & alive & ~self._arrived(meeting, here)
        excused = self._excused(meeting.op, missing, here)
        released = missing == excused
        if not (released & ((here & alive) != 0)).any():
            if meeting.op.index in self.code.dataflow.alike:
                self._gather(meeting)
            return
        free = from_bools(released)
        waiting = both(meeting.mask, self.machine.alive)
        going, staying = both(waiting, free), both(waiting, invert(free))
        self.yielded.clear(meeting.op, going, excused)
        if staying is False:
            del self.waiting[key]
        else:
            meeting.mask = staying
        if going is not False:
            ways = self._ways(meeting.op, going, meeting.members)
            self.groups.ready.extend(Group(meeting.pc, mask) for mask in ways)

    def _arrived(self, meeting: Meeting, here: np.ndarray) -> np.ndarray:
        """For each lane of a meeting those whose arrival it sees: at BSYNC, that wait for the same lanes.

        Where a function has called itself, lanes of the outer call wait where those of the inner one do; the
        register names the latter, and the former is saved by BMOV.
        """
        if meeting.op.flow is not Flow.WAIT_BARRIER or meeting.members.shape[1] == 1:
            return here
        alike = self._alike(meeting.mask, meeting.members)
        for lanes in alike if len(alike) > 1 else ():
            here = select(to_bools(lanes), self.machine.words_of(lanes), here)
        return here

    def _gather(self, last: Meeting) -> None:
        """Release lanes at WARPSYNC.COLLECTIVE that wait for lanes at another that does the same.

        They execute what comes before the ENDCOLLECTIVE together, where `last` waits.
        """
        others = self.code.dataflow.alike[last.op.index]
        meetings = [last, *(one for one in self.waiting.values() if one.op.index in others)]
        meetings = [one for one in meetings if not one.returning]
        if len(meetings) == 1:
            return
        here = reduce(or_, (self.machine.words_of(one.mask) for one in meetings))
        alive = self.machine.words_of(self.machine.alive)
        free = [from_bools((one.members & alive & ~here) == 0) for one in meetings]
        led = self.machine.whole_warps(both(both(last.mask, self.machine.alive), free[0]))
        going: Mask = False
        members = last.members
        for one, released in zip(meetings, free, strict=True):
            lanes = both(both(both(one.mask, self.machine.alive), released), led)
            if lanes is False:
                continue
            going = either(going, lanes)
            if one is not last:
                members = select(to_bools(lanes), one.members, members)
                back = self.code.dataflow.collectives[one.op.index] + 1
                key = back, RETURNING
                waiting = either(self.waiting[key].mask, lanes) if key in self.waiting else lanes
                self.waiting[key] = Meeting(one.op, back, waiting, np.zeros_like(one.members), True)
            self._withdraw((one.pc, barrier_slot(one.op)), lanes)
        if going is not False:
            self.groups.ready.extend(Group(last.pc, mask) for mask in self._alike(going, members))

    def _withdraw(self, key: tuple[int, int], lanes: Mask) -> None:
        """These lanes no longer wait there."""
        meeting = self.waiting[key]
        staying = both(meeting.mask, invert(lanes))
        if staying is False:
            del self.waiting[key]
        else:
            meeting.mask = staying

    def _ways(self, op: Op, going: Mask, members: np.ndarray) -> list[Mask]:
        """The groups that continue: one, or for WARPSYNC.EXCLUSIVE and .COLLECTIVE one for each mask."""
        apart = not op.traits.isdisjoint((Trait.EXCLUSIVE, Trait.COLLECTIVE))
        return self._alike(going, members) if apart else [going]

    def _alike(self, going: Mask, members: np.ndarray) -> list[Mask]:
        """Lanes of a warp that waited for the same lanes continue together, others separately."""
        if members.size == 1:
            return [going]
        rows = self.machine.by_warp(
            np.broadcast_to(members, (max(members.shape[0], to_bools(going).shape[0]), members.shape[1]))
        )
        lanes = np.broadcast_to(self.machine.by_warp(to_bools(going)), rows.shape)
        found = []
        left = lanes.copy()
        while left.any():
            first = np.take_along_axis(rows, left.argmax(2)[..., None], axis=2)
            same = left & (rows == first)
            found.append(from_bools(same.reshape(same.shape[0], -1)))
            left &= ~same
        return found

    def deadlock(self) -> Deadlock | None:
        """The error for lanes that wait for others that never arrive; for those of a mask, if there are."""
        meetings = [one for one in self.waiting.values() if not one.returning]
        if not meetings:
            return None
        meeting = min(meetings, key=lambda one: one.op.flow is not Flow.WARP_SYNC)
        machine = self.machine
        missing = meeting.members & machine.words_of(machine.alive) & ~machine.words_of(meeting.mask)
        row, thread = (int(one[0]) for one in np.nonzero(machine.full(meeting.mask)))
        absent = int(np.broadcast_to(missing, machine.shape)[row, thread])
        named, also, op = "", "", meeting.op
        if op.flow is Flow.WARP_SYNC:
            named = " of the mask"
            behind = self.code.program.ops[op.index + 1]
            if op.index not in self.code.values and behind.flow is Flow.BLOCK_BARRIER:
                named, also, op = " of their warp", PART_OF_WARP, behind
        return Deadlock(
            f"deadlock: {machine.places(meeting.mask)} wait forever at {op.text} for lanes"
            f"{named} that do not come: {lanes_in_words(absent)}{also}",
            machine.wrong(op, meeting.mask),
        )


#: Source: PTX ISA, `barrier`: it is `.aligned`, which all threads of a warp execute that have not exited.
PART_OF_WARP = "; PTX leaves bar.sync by a part of a warp undefined: a chip may go on"


def lanes_in_words(lanes: int) -> str:
    """Lanes of a warp as bits: `0, 16 to 31`."""
    bits = f"{lanes:032b}"[::-1]
    runs = [(one.start(), one.end() - 1) for one in re.finditer("1+", bits)]
    return ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in runs)
