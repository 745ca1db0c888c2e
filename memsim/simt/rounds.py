"""Loops that never end: what comes back to a state it was in before, comes back for ever.

In: the machine, each time it is at the head of a loop. Out: whether registers, masks, memory and who
waits where are as they were at an earlier time. Found exactly, by Brent's cycle search: the state is
compared with the one kept at the last visit whose number is a power of two.
Left out on purpose: loops that never end and change something in each round; a budget of steps ends them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.state.registers import Part, Poison, Sum

if TYPE_CHECKING:
    from memsim.simt.joins import Fragment, Join
    from memsim.simt.machine import Machine


class Rounds:
    """The visits of loop heads by the blocks that run now."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.visits = 0
        self.renew = 1
        self.pc = -1
        self.slots: list[Any] = []
        self.differs = 0
        self.control: list[Any] = []
        self.content: bytes | None = None

    def come_again(self, pc: int, join: Join | None) -> bool:
        """The running fragment is at the loop head `pc`: is everything as it was before?"""
        self.visits += 1
        slots = self.machine.slots
        if self.visits == self.renew:
            self.renew *= 2
            self.pc, self.slots, self.control = pc, list(slots), self.control_state(join)
            self.content = None
            return False
        if pc != self.pc or not same(slots[self.differs], self.slots[self.differs]):
            return False  # the usual case at little cost: the counter of the loop has changed
        for index, (now, then) in enumerate(zip(slots, self.slots)):
            if not same(now, then):
                self.differs = index
                return False
        if not same(self.control_state(join), self.control):
            return False
        before, self.content = self.content, self.machine.memory.digest()
        if before is not None and before != self.content:
            self.pc = -1  # only memory changes; look again at the next power of two
        return before == self.content

    def control_state(self, join: Join | None) -> list[Any]:
        """Who runs and who waits where; a join is named by its place among all of them."""
        machine = self.machine
        number = {id(one): place for place, one in enumerate(machine.joins.all)}
        number[id(None)] = -1

        def fragment(one: Fragment) -> list[Any]:
            return [one.pc, one.mask, number[id(one.join)]]

        def joining(one: Join) -> list[Any]:
            place = [one.pc, number[id(one.parent)], one.opening, one.opened]
            return [*place, one.entered, one.arrived, one.outstanding]

        return [
            [machine.mask, machine.alive, number[id(join)]],
            [fragment(one) for one in machine.ready],
            [
                [one.number, one.asked, one.instruction, one.votes, *fragment(one.fragment)]
                for one in machine.barriers.waiting
            ],
            [[key, counts.copy()] for key, counts in sorted(machine.barriers.arrived.items())],
            list(map(joining, machine.joins.all)),
        ]


def same(a: Any, b: Any) -> bool:
    """Are two values, or lists of values, the same for all that follows?"""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Sum):
        if [part.uid for part in a.parts] == [part.uid for part in b.parts]:
            return bool(a.s == b.s)
        return np.array_equal(a.array, b.array)
    if isinstance(a, Part):
        return np.array_equal(a.array, b.array)
    if isinstance(a, np.ndarray):
        return (a.dtype, a.shape) == (b.dtype, b.shape) and a.tobytes() == b.tobytes()
    return isinstance(a, Poison) or bool(a == b)
