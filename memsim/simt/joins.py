"""Where parted threads are together again: who waits for whom, and who does not.

In: fragments that part, enter blocks, and end. Out: the same fragments, put together where all that are to
come have come. Which places those are: `memsim.ptx.reconvergence`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.ptx.flow import Opening
from memsim.state.registers import both, either, from_bools, invert, place_of

if TYPE_CHECKING:
    from memsim.simt.machine import Machine


@dataclass(eq=False)
class Join:
    """A place where parted threads meet: instruction `pc`; `outstanding` fragments still to come.

    `parent`: where they go then. `opening`: if not all of them come, which blocks lead there, and `opened`,
    the one where that begins.
    """

    pc: int
    parent: Join | None
    entered: Any
    outstanding: int = 1
    arrived: Any = False
    opening: Opening | None = None
    opened: int = -1


@dataclass(eq=False)
class Fragment:
    """Threads with one program counter."""

    pc: int
    mask: Any
    join: Join | None


class Joins:
    """The joins of the blocks that run now."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.flow = machine.flow
        self.all: list[Join] = []

    @property
    def with_somebody(self) -> list[Join]:
        """Those where threads wait."""
        return [join for join in self.all if join.arrived is not False]

    def part(self, branch: int, ways: Sequence[tuple[int, Any]], join: Join | None) -> None:
        """The running fragment splits at a branch, to meet again at its meeting point."""
        meet = self.flow.reconvergence.get(branch)
        if meet is not None:
            join = self.on_the_way(meet, join)
        if join is not None:
            join.outstanding += len(ways) - 1
        self._tell_if_contested(branch, [mask for _, mask in ways], join)
        # The last one runs first: who leaves a loop is at the meeting place before the others come round.
        ordered = sorted(ways, key=lambda way: way[0])
        self.machine.ready.extend(Fragment(pc, mask, join) for pc, mask in ordered)

    def on_the_way(self, pc: int, join: Join | None) -> Join:
        """The next join of threads that will come to the one at `pc`, now or after others."""
        if join is not None and pc in places_of(join):
            return join
        return self._open(Join(pc, join, self.machine.mask))

    def enter(self, pc: int, join: Join | None) -> tuple[Join | None, bool]:
        """The running fragment comes to `pc`: its next join from here on, and whether it goes on at once."""
        if join is not None and join.opening is not None:
            join = self._abandon(pc, join)
        if join is not None and pc == join.pc:
            join.arrived = either(join.arrived, self.machine.mask)
            self.leave(join)
            return None, False
        if pc in self.flow.yields and self._let_others_go(pc, join):
            return None, False
        for opening in self.flow.gatherings.get(pc, ()):
            for place in self._still_to_open(opening, join):
                join = self._open(Join(place, join, self.machine.mask))
            join = self._open(Join(opening.pc, join, self.machine.mask, opening=opening, opened=pc))
        return join, True

    def _still_to_open(self, opening: Opening, join: Join | None) -> Sequence[int]:
        """The places beyond an opening that lie within the next join, the outermost first.

        Those farther out come when lanes part for them: a join within one that is nearer would never be left.
        """
        ahead = places_of(join)
        known = (number for number, place in enumerate(opening.beyond, start=1) if place in ahead)
        return opening.beyond[max(known, default=0) :]

    def leave(self, join: Join | None) -> None:
        """One fragment fewer is on its way to `join`; the last one lets all that have come go on."""
        while join is not None:
            join.outstanding -= 1
            if join.outstanding:
                return
            self.all.remove(join)
            if join.arrived is not False:
                self.machine.ready.append(Fragment(join.pc, join.arrived, join.parent))
                return
            join = join.parent

    def release_warps(self) -> bool:
        """Let whole warps leave a join where they wait for other warps only; True if there was one."""
        full = self.machine.full
        for join in self.with_somebody:
            arrived = full(join.arrived)
            missing = full(join.entered) & full(self.machine.alive) & ~arrived
            free = warps(arrived) & ~warps(missing)
            if free.any():
                self._send_on(join, self._lanes_of(free, join.arrived))
                return True
        return False

    def unite(self, first: int) -> None:
        """Fragments in `ready` from the `first` on have left a barrier: those at one place go on as one."""
        ready = self.machine.ready
        for fragment in ready[first:]:
            before = ready[first : ready.index(fragment)]
            same = (one for one in before if one.pc == fragment.pc and lead_alike(one.join, fragment.join))
            other = next(same, None)
            if other is not None:
                self._put_together(other.join, fragment.join)
                ready.remove(fragment)
                other.mask = either(other.mask, fragment.mask)

    def _put_together(self, join: Join | None, other: Join | None) -> None:
        """A fragment on its way to `other` becomes part of one on its way to `join`, which leads alike."""
        while join is not None and other is not None and join is not other:
            join.outstanding += other.outstanding - 1
            join.entered = either(join.entered, other.entered)
            join.arrived = either(join.arrived, other.arrived)
            self.all.remove(other)
            waiting = [entry.fragment for entry in self.machine.barriers.waiting]
            for fragment in (*self.machine.ready, *waiting):
                fragment.join = join if fragment.join is other else fragment.join
            for inner in self.all:
                inner.parent = join if inner.parent is other else inner.parent
            join, other = join.parent, other.parent
        if join is not None:
            join.outstanding -= 1

    def _open(self, join: Join) -> Join:
        self.all.append(join)
        return join

    def _abandon(self, pc: int, join: Join | None) -> Join | None:
        """Nobody waits for the running fragment where the block at `pc` does not lead."""
        while join is not None and join.opening is not None and pc in self.flow.starts and pc != join.pc:
            if pc in join.opening.region and pc != join.opened:
                break
            join.entered = both(join.entered, invert(self.machine.mask))
            if join.parent is not None:
                join.parent.outstanding += 1
            self.leave(join)
            join = join.parent
        return join

    def _let_others_go(self, pc: int, join: Join | None) -> bool:
        """Lanes that wait for the running fragment, in its own warps, go on without it, and before it."""
        machine = self.machine
        here, running = Fragment(pc, machine.mask, join), warps(machine.full(machine.mask))
        waits = False
        while join is not None:
            going = False if join.arrived is False else self._lanes_of(running, join.arrived)
            if going is not False:
                if not waits:
                    machine.ready.append(here)
                self._send_on(join, going)
                waits = True
            join = join.parent
        if waits:
            loop = place_of(machine.plan.function.instructions[pc])
            machine.listener.unsure(f"which lanes go on together after the loop at {loop}")
        return waits

    def _send_on(self, join: Join, going: Any) -> None:
        """Some who have come to `join` go on; they and the others do not wait for each other."""
        join.arrived = both(join.arrived, invert(going))
        join.entered = both(join.entered, invert(going))
        if join.parent is not None:
            join.parent.outstanding += 1
        self.machine.ready.append(Fragment(join.pc, going, join.parent))

    def _tell_if_contested(self, branch: int, masks: Sequence[Any], join: Join | None) -> None:
        """Say so if lanes of a warp part on their way to a gathering that ptxas may have left out."""
        while join is not None and not (join.opening is not None and join.opening.contested):
            join = join.parent
        if join is not None and np.sum([warps(self.machine.full(mask)) for mask in masks], axis=0).max() > 1:
            place = place_of(self.machine.plan.function.instructions[branch])
            self.machine.listener.unsure(f"which lanes meet after the branch at {place}")

    def _lanes_of(self, chosen: np.ndarray, mask: Any) -> Any:
        """The threads of a mask that are in the chosen warps, bool (B, W)."""
        return from_bools(self.machine.full(mask) & np.repeat(chosen, 32, axis=1))


def places_of(join: Join | None) -> set[int]:
    """Where threads meet that are on their way to a join: there, and behind it."""
    places = set()
    while join is not None:
        places.add(join.pc)
        join = join.parent
    return places


def lead_alike(join: Join | None, other: Join | None) -> bool:
    """Whether threads go the same way by two joins: those that parted before have opened each its own."""
    while join is not other:
        if join is None or other is None:
            return False
        if (join.pc, join.opening, join.opened) != (other.pc, other.opening, other.opened):
            return False
        join, other = join.parent, other.parent
    return True


def warps(threads: np.ndarray) -> np.ndarray:
    """Warps with one of the threads, bool (B, W) for (B, T)."""
    by_warp: np.ndarray = threads.reshape(threads.shape[0], -1, 32)
    return np.asarray(by_warp.any(2))
