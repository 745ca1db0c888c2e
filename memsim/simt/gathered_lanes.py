"""Lanes of a diverged group, each as a row of its own: instructions then cost what these lanes do, not what
their warps do.

Registers that instructions read are gathered for these lanes, and those that they write are scattered after
them. Only for independent warps (prepared_launch.py), and for instructions that no other lane affects.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import cast

import numpy as np

from memsim.access import Listener, Site, SiteAccess
from memsim.isa.op import slots_of
from memsim.simt.active_lanes import Rows
from memsim.simt.machine import Machine
from memsim.simt.steps import Step
from memsim.state.partial import Partial, Value, known_in, merge_lanes
from memsim.state.parts import Mask, Part
from memsim.state.poison import Poison
from memsim.state.predicates import ScatteredLanes, from_bools
from memsim.state.registers import Sum, from_array, to_array

#: The lanes are gathered if there are this many times as many threads.
SPARSE = 2


def is_sparse(mask: Mask, shape: tuple[int, int]) -> bool:
    """Are there so few lanes, scattered over warps, that gathering them pays off?"""
    if not isinstance(mask, Part) or mask.shape != shape:
        return False
    return SPARSE * int(np.bitwise_count(mask.words).sum()) < shape[0] * shape[1]


class Own:
    """A register that differs between threads, in an array of its own, into which gathered lanes write."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    @property
    def value(self) -> Value:
        """As any other register; nothing may be written into the array from now on."""
        if self.array.dtype == np.bool_:
            return from_bools(self.array)
        return from_array(self.array) if self.array.dtype == np.int64 else self.array


#: What a slot of the register file holds.
Slot = Value | Own


class Gathered(ScatteredLanes):
    """The lanes of a group in a chunk of rows. mask: bool (B, T), as a register."""

    def __init__(self, mask: Part) -> None:
        super().__init__(mask.lanes)
        self.mask = mask
        self.shape = mask.shape

    @cached_property
    def rows(self) -> np.ndarray:
        """The row of each lane [n]."""
        found: np.ndarray = self.lanes // self.shape[1]
        return found

    @cached_property
    def columns(self) -> np.ndarray:
        """The place of each lane in its row [n]."""
        found: np.ndarray = self.lanes - self.rows * self.shape[1]
        return found

    def taken(self, array: np.ndarray) -> np.ndarray:
        """What these lanes have of an array that broadcasts to all threads [n, 1]."""
        rows, threads = array.shape
        if array.size == 1:
            return np.broadcast_to(array, (len(self), 1))
        index = self.rows if threads == 1 else self.columns if rows == 1 else self.lanes
        found: np.ndarray = array.reshape(-1)[index]
        return found[:, None]

    def gathered(self, value: Slot) -> Value:
        """A register as these lanes hold it."""
        if isinstance(value, Own):
            return Own(self.taken(value.array)).value
        if isinstance(value, Sum):
            first, *rest = (self.taken(part.array) for part in value.parts)
            for part in rest:
                first = first + part
            return from_array(first, value.s)
        if isinstance(value, Part):
            return from_bools(self.taken(value.array))
        if isinstance(value, np.ndarray):
            return self.taken(value)
        if isinstance(value, Partial):
            known = from_bools(self.taken(value.known.array))
            if isinstance(known, bool):
                return self.gathered(value.value) if known else value.poison
            return Partial(self.gathered(value.value), known, value.poison)
        return value

    def scattered(self, value: Value) -> Slot:
        """A register of these lanes as one of all threads, with anything in the others."""
        if isinstance(value, Partial):
            return known_in(self.where(value.known), plain(self.scattered(value.value)), value.poison)
        array = array_of(value)
        if array is None or type(value) in (int, bool):
            return value
        return Own(self.spread(array))

    def spread(self, array: np.ndarray) -> np.ndarray:
        """What these lanes have [n or 1, 1] in the places of all threads, with zeros in the others."""
        found = np.zeros(self.shape, array.dtype)
        found.reshape(-1)[self.lanes] = array[:, 0]
        return found

    def written(self, value: Value, held: Slot, is_read: bool) -> Slot:
        """A register with what these lanes hold now, and what the others held if that is read."""
        if not is_read and type(value) in (int, bool):
            return value
        mine, theirs = array_of(value), array_of(held)
        if mine is None or theirs is None or mine.dtype != theirs.dtype:
            found = self.scattered(value)
            return merge_lanes(self.mask, plain(found), plain(held)) if is_read else found
        if not isinstance(held, Own):
            if not is_read:
                return self.scattered(value)
            held = Own(np.array(np.broadcast_to(theirs, self.shape), order="C"))
        held.array.reshape(-1)[self.lanes] = mine[:, 0]
        return held

    def where(self, active: Mask) -> Mask:
        """Some of these lanes as a mask of all threads."""
        if isinstance(active, bool):
            return active and self.mask
        return from_bools(self.spread(active.array))


def plain(value: Slot) -> Value:
    """A register that nothing is written into from now on."""
    return value.value if isinstance(value, Own) else value


def array_of(value: Slot) -> np.ndarray | None:
    """A register as an array that broadcasts to all threads; None if it is unknown in some."""
    if isinstance(value, (Own, Part)):
        return value.array
    if type(value) is bool:
        return np.array([[value]])
    if isinstance(value, (int, Sum)):
        return to_array(value)
    return value if isinstance(value, np.ndarray) else None


class RowsOfLanes:
    """Lanes of a chunk as `Rows`, whose places few instructions ask for."""

    def __init__(self, lanes: Gathered, rows: Rows) -> None:
        self.lanes = lanes
        self.rows = rows

    def __len__(self) -> int:
        return len(self.lanes)

    @cached_property
    def blocks(self) -> np.ndarray:
        """As of `Rows`."""
        found: np.ndarray = self.rows.blocks[self.lanes.rows]
        return found

    @cached_property
    def first(self) -> np.ndarray:
        """As of `Rows`."""
        found: np.ndarray = self.rows.first[self.lanes.rows] + self.lanes.columns[:, None]
        return found


class OfAllThreads:
    """A listener for accesses of gathered lanes, which tells another one where in the chunk they are; they do
    nothing else that a listener is told of.
    """

    def __init__(self, listener: Listener, lanes: Gathered) -> None:
        self.listener = listener
        self.lanes = lanes

    def access(self, made: SiteAccess) -> None:
        """As `Listener.access`."""
        site, address, mask, active, arrays, other = made
        assert other is None and mask is True
        if active is False:
            self.listener.access(SiteAccess(site, 0, self.lanes.mask, False, arrays))
            return
        lanes: ScatteredLanes = self.lanes
        addresses = np.broadcast_to(to_array(address)[:, 0], (len(lanes),))
        if active is not True:
            chosen = active.array[:, 0]
            lanes, addresses = ScatteredLanes(lanes.lanes[chosen]), addresses[chosen]
        self.listener.scattered(site, addresses, lanes, len(self.lanes.warps), arrays)

    def unknown(self, site: Site, poison: Poison, mask: Mask, active: Mask) -> None:
        """As `Listener.unknown`."""
        self.listener.unknown(site, poison, self.lanes.where(mask), self.lanes.where(active))

    def uncounted(self, what: str, active: Mask) -> None:
        """As `Listener.uncounted`."""
        self.listener.uncounted(what, self.lanes.where(active))

    def noted(self, what: str, active: Mask) -> None:
        """As `Listener.noted`."""
        self.listener.noted(what, self.lanes.where(active))

    def passed_by(self, where: str, writes: int, mask: Mask) -> None:
        """As `Listener.passed_by`."""
        self.listener.passed_by(where, writes, self.lanes.where(mask))

    def uncertain(self, what: str) -> None:
        """As `Listener.uncertain`."""
        self.listener.uncertain(what)


def run_gathered(machine: Machine, steps: Sequence[Step], reads: int, writes: int) -> None:
    """Run steps for the lanes of the running group.

    reads, writes: slots, as bit sets: those whose values the steps may need, and those that they may write
    and that are needed afterwards.
    """
    assert isinstance(machine.mask, Part)  # a group of all lanes is not gathered
    lanes = Gathered(machine.mask)
    held, protected, listener = machine.slots, machine.protected, machine.listener
    rows, threads = machine.rows, machine.threads
    machine.slots = [None] * len(held)
    for slot in slots_of(reads):
        machine.slots[slot] = lanes.gathered(held[slot])
    given = machine.slots.copy()
    machine.mask, machine.protected, machine.before = True, 0, None
    machine.listener = cast(Listener, OfAllThreads(listener, lanes))
    machine.threads = 1
    machine.place_rows(RowsOfLanes(lanes, rows))
    for step in steps:
        step(machine)
    found = machine.slots
    machine.mask, machine.protected, machine.slots, machine.listener = lanes.mask, protected, held, listener
    machine.threads = threads
    machine.place_rows(rows)
    for slot in slots_of(writes):
        value = found[slot]
        if value is not given[slot]:
            held[slot] = lanes.written(value, held[slot], bool(protected >> slot & 1))
            machine.own |= 1 << slot


def settle_own(machine: Machine, chosen: int = -1) -> None:
    """Those of the slots (a bit set) that lanes write into become plain registers."""
    for slot in slots_of(machine.own & chosen):
        machine.slots[slot] = plain(machine.slots[slot])
    machine.own &= ~chosen


def slots_of_lanes(slots: Sequence[Slot]) -> int:
    """The registers, as a bit set, that lanes write into."""
    return sum(1 << slot for slot, held in enumerate(slots) if isinstance(held, Own))
