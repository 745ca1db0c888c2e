"""Lanes that have yielded (YIELD): the others of their warp run first, and BSYNC does not wait for them.

A barrier that others pass without lanes that have yielded is cleared. In which order lanes go on is not known
if several groups of a warp have yielded, if the others are at several places, or if these pass two barriers:
counts are then uncertain. Source: NVIDIA's patent US 10,067,768 B2 (claim 1), equal in `meeting.npz` and
`turns.npz`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce
from operator import or_

import numpy as np

from memsim.isa.program import SHARED, Op, spaces_read
from memsim.simt.code import Code
from memsim.simt.control_graph import barrier_slot
from memsim.simt.groups import Group, Groups
from memsim.simt.machine import Machine
from memsim.state.parts import Mask
from memsim.state.predicates import both, either

#: Where lanes go on, and their mask.
Place = tuple[int, Mask]


class YieldedLanes:
    """The parked groups that have yielded."""

    def __init__(self, machine: Machine, code: Code, groups: Groups) -> None:
        self.machine = machine
        self.code = code
        self.groups = groups

    def give_way(self, op: Op, active: Mask, rest: Mask, waiting: Sequence[Place]) -> bool:
        """Park the lanes `active` behind others of their warps; False if there are none.

        waiting: the lanes that wait at a BSYNC.
        """
        lanes = self.machine.words_of(active)
        others = self.machine.words_of(self.machine.alive) & ~lanes
        if not ((lanes != 0) & (others != 0)).any():
            return False
        if ((lanes != 0) & (self.lanes() != 0)).any():
            self.machine.listener.uncertain(
                f"lanes that yield at {op.where} while others of their warp have: the order is not known"
            )
        elif self._are_apart(lanes, waiting):
            self.machine.listener.uncertain(
                f"lanes that yield at {op.where} while others of their warp are apart: the order is not known"
            )
        if self._awaits_stores:
            self.machine.listener.uncertain(
                f"lanes that yield at {op.where} may wait for a store to shared memory by their warp"
            )
        if rest is not False:
            self.groups.ready.append(Group(op.index + 1, rest))
        self.groups.parked.append(Group(op.index + 1, active, yields=True))
        return True

    def clear(self, op: Op, passing: Mask, excused: np.ndarray | int) -> None:
        """Clear the barriers that lanes pass while others of them are excused."""
        if type(excused) is int:
            return
        passed = np.where(excused != 0, self.machine.words_of(passing), 0)
        slot = barrier_slot(op)
        members = self.machine.members_of(slot)
        self.machine.set_members(slot, np.where(members & passed, 0, members))
        for group in self.groups.parked:
            if group.yields and (self.machine.words_of(group.mask) & np.where(passed != 0, excused, 0)).any():
                if group.passed not in (None, slot):
                    self.machine.listener.uncertain(
                        f"lanes that pass {op.name} at {op.where} as the second without those of their warp "
                        "that yielded: whether they wait is not known"
                    )
                group.passed = slot

    def lanes(self) -> np.ndarray | int:
        """The lanes that have yielded and not gone on: words as of `Machine.words_of`, or 0."""
        words = (self.machine.words_of(group.mask) for group in self.groups.parked if group.yields)
        return reduce(or_, words, 0)

    def _are_apart(self, yielding: np.ndarray, waiting: Sequence[Place]) -> bool:
        """Are the other lanes of the warps of these at several places? WARPSYNC waits all the same."""
        seen: np.ndarray | bool = False
        places: dict[int, Mask] = {}
        others = [(group.pc, group.mask) for group in (*self.groups.ready, *self.groups.parked)]
        for pc, mask in (*others, *waiting):
            places[pc] = either(places.get(pc, False), mask)
        for mask in places.values():
            here = (self.machine.words_of(both(mask, self.machine.alive)) != 0) & (yielding != 0)
            if (seen & here).any():
                return True
            seen = seen | here
        return False

    @cached_property
    def _awaits_stores(self) -> bool:
        """Do addresses or branches depend on shared memory? Lanes may loop until others store to it."""
        ops = self.code.program.ops
        return any(SHARED in spaces_read(ops[index]) for index in self.code.needed or ())
