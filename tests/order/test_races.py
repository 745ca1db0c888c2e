"""The rules of races in shared memory one by one, told to the listener as events, without a kernel.

A program is a text: events with the numbers of warps, all on one word of block 0. The races that are expected
are pairs (load, store) of places in the text, from 0.

    1 st 5              a lane of warp 1 stores 5; cp: by `cp.async`
    1 ld                and loads
    1 add 5, 1 exch 5   atomics
    bar                 a block barrier
    1 commit, 1 wait    for all of its copies by `cp.async`
    1 arrive, 12 sync   at a named barrier; 1 and 2 wait for each other and for who has arrived
    1 tma 5             copies 5 there in bulk, done at a phase of an mbarrier
    1 phase             the phase is complete, and the warp has waited for it
    meet                the barrier of the cluster
    1 near, 1 far       arrives at that mbarrier, and at one of the other block
    +1 ld               by a warp of another block; also a copy: +1 tma 5
    1.02 ld             lanes 0 and 2 of warp 1 have diverged from the others and run together; lane 2 loads
    12 id, 1 lanes      a lane of each of these warps, or two of one, store different values at once
    1 lost, 1 run       the value becomes unknown; nothing
"""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from memsim.launch import Launch
from memsim.order.order_listener import Race
from memsim.order.shared_listener import SharedListener
from memsim.simt.active_lanes import Lanes
from memsim.state.poison import Poison
from memsim.state.predicates import from_bools

WARPS, BLOCKS = 32, 2
FIRST = np.zeros(1, np.int64)
PLAIN = {"st", "ld", "add", "exch", "bar", "id", "lanes", "lost", "run"}


class Events:
    """Tells a listener the events of a program."""

    def __init__(self, partly: bool) -> None:
        self.races: list[Race] = []
        self.lanes = Lanes(Launch((BLOCKS, 1, 1), (32 * WARPS, 1, 1)), (BLOCKS, 1, 1))
        self.lanes.start(np.arange(BLOCKS))
        self.together: Any = True
        self.listener = SharedListener(self.races.append, partly)
        memory: Any = SimpleNamespace(shared_size=64)
        self.listener.start_chunk(self.lanes, memory)
        data = np.zeros((BLOCKS, 64), np.uint8)
        self.space = memory.shared_as(data, 0, self.lanes.shape, "block")

    def tell(self, place: int, who: str, what: str, value: int) -> None:
        listener, block = self.listener, int(who.startswith("+"))
        of_warps, _, of_lanes = who.removeprefix("+").partition(".")
        warps, lanes = ([int(digit) for digit in digits] for digits in (of_warps, of_lanes))
        together = self.mask(block, warps, lanes) if lanes else True
        if together is not True or self.together is not True:
            listener.run_together(together)
        self.together = together
        listener.execute(place)
        mask = self.mask(block, warps, [0, 1] if what == "lanes" else lanes[-1:] or [0])
        space = self.space if not block else self.space.of_rows(np.zeros(self.lanes.shape, np.int64))
        values: np.ndarray = np.full((1, 1), value, np.int32)
        if what in ("id", "lanes"):
            values = np.arange(self.lanes.threads, dtype=np.int32)[None, :]
        if what in ("st", "cp", "id", "lanes"):
            space.store(0, values, mask)
            if what == "cp":
                listener.store_later(space, 0, np.int32, mask)
        elif what == "ld":
            space.load(0, np.int32, mask)
        elif what == "lost":
            space.forget(0, np.int32, mask, Poison("lost", None))
        elif what in ("add", "exch"):
            space.update(0, np.int32, mask, what, [values], True)
        elif what == "bar":
            listener.block_barrier()
        elif what == "commit":
            listener.commit(mask)
        elif what == "wait":
            listener.wait(mask, value)
        elif what == "arrive":
            listener.arrive_named(1, mask)
        elif what == "sync":
            listener.pass_named(1, mask)
        elif what == "meet":
            listener.arrive_cluster(True)
            listener.pass_cluster(True)
        elif what == "tma":
            listener.copy_to_phase(0, block, warps[0])
            self.space.put(0, np.arange(4), values.view(np.uint8)[0], None)
        elif what == "phase":
            listener.complete_phase(np.array([block]), FIRST)
            listener.pass_phase(np.array([block]), np.array(warps), FIRST)
        elif what in ("near", "far"):
            there = np.array([block if what == "near" else 1 - block])
            listener.arrive(np.array([block]), np.array(warps), there, FIRST)
        else:
            assert what == "run"

    def mask(self, block: int, warps: list[int], lanes: list[int]) -> Any:
        mask = np.zeros(self.lanes.shape, bool)
        for warp in warps:
            mask[block, 32 * warp + np.array(lanes)] = True
        return from_bools(mask)


def races(program: str, partly: bool) -> set[tuple[int, int]]:
    """What a program races with. partly: it is known that something else than block barriers may order it."""
    told = Events(partly)
    for place, event in enumerate(program.split(", ")):
        who, what, value = re.fullmatch(r"(\+?[\d.]+)? ?(\w+?) ?(\d+)?", event).groups()  # type: ignore[union-attr]
        told.tell(place, who or "", what, int(value or 0))
    return {(race.load, race.store) for race in told.races}


#: Programs and their races: each rule with a program beside it that the rule does not meet.
PROGRAMS: dict[str, set[tuple[int, int]]] = {
    "0 st 5, 1 ld": {(1, 0)},
    "0 st 5, bar, 1 ld": set(),
    "0 st 5, 0 ld": set(),
    "1 ld, 0 st 5": {(0, 1)},
    "1 ld, bar, 0 st 5": set(),
    "1 ld, 2 ld, 0 st 5": {(1, 2)},
    # A store of what is there changes nothing for who loaded it.
    "1 ld, 0 st 0": set(),
    # Stores of the same value: who made one of them finds it, others may come before all of them.
    "0 st 5, 1 st 5, 0 ld": set(),
    "0 st 5, 1 st 5, 1 ld": set(),
    "0 st 5, 1 st 5, 2 ld": {(2, 1)},
    "0 st 5, 1 st 5, bar, 2 ld": set(),
    "0 st 5, 1 st 6, bar, 2 ld": {(3, 1)},
    "0 st 5, bar, 1 st 6, bar, 2 ld": set(),
    # Who stored the value before a barrier has not stored it since.
    "0 st 5, 1 st 5, bar, 2 st 6, 0 ld": {(4, 3)},
    "0 st 5, 1 st 5, bar, 2 st 5, 1 st 5, 0 ld": {(5, 4)},
    "0 st 5, 1 st 5, bar, 2 st 5, 1 st 5, 2 ld": set(),
    "0 st 5, 1 st 5, bar, 12 st 5, 0 ld": {(4, 3)},
    "0 st 5, 1 st 5, bar, 12 st 5, 1 ld": set(),
    # Nor is it known that what is unknown is the same.
    "1 ld, 0 lost, 2 st 0": {(0, 2)},
    # In one instruction.
    "01 st 5, bar, 2 ld": set(),
    "01 id, bar, 2 ld": {(2, 0)},
    "0 lanes, bar, 0 ld": {(2, 0)},
    "0 id, bar, 1 ld": set(),
    "01 add 5, bar, 2 ld": set(),
    "01 exch 5, bar, 2 ld": {(2, 0)},
    # Different values, one of which is stored over, are one value again.
    "0 st 5, 1 st 6, bar, 2 st 7, bar, 1 ld": set(),
    # Additions may change places, not with a store or an exchange.
    "0 add 1, 1 add 2, bar, 2 ld": set(),
    "0 add 1, 1 add 2, 2 ld": {(2, 1)},
    "0 add 1, 1 exch 2, bar, 2 ld": {(3, 1)},
    "0 add 1, 1 st 2, bar, 2 ld": {(3, 1)},
    "0 add 1, 1 add 1, 2 st 2, bar, 0 ld": {(4, 2)},
    "0 add 1, 1 add 1, bar, 2 st 2, bar, 0 ld": set(),
    "0 st 1, 0 add 1, 1 add 1, bar, 2 ld": {(4, 2)},
    "0 st 1, bar, 0 add 1, 1 add 1, bar, 2 ld": set(),
    # What different stores leave shows in a sum, not in what an exchange leaves.
    "0 st 5, 1 st 6, bar, 2 add 1, bar, 2 ld": {(5, 3)},
    "0 st 5, 1 st 6, bar, 2 exch 1, bar, 2 ld": set(),
    # A named barrier orders those that meet there, and who waits learns of who arrives.
    "0 st 5, 01 sync, 1 ld": set(),
    "0 st 5, 02 sync, 1 ld": {(2, 0)},
    "0 st 5, 0 arrive, 1 sync, 1 ld": set(),
    "0 arrive, 0 st 5, 1 sync, 1 ld": {(3, 1)},
    "0 st 5, 0 arrive, 1 sync, 2 ld": {(3, 0)},
    "0 st 5, 0 arrive, 1 sync, 1 arrive, 2 sync, 2 ld": set(),  # through others
    # What was told for one round of the barrier is not there in the next one.
    "0 st 5, 0 arrive, 1 sync, 2 sync, 2 ld": {(4, 0)},
    # Each of several that loaded has to be known, but for oneself.
    "0 ld, 1 ld, 0 arrive, 2 sync, 2 st 5": {(0, 4)},
    "0 ld, 1 ld, 1 arrive, 2 sync, 2 st 5": {(0, 4)},
    "0 ld, 1 ld, 01 arrive, 2 sync, 2 st 5": set(),
    "0 ld, 1 ld, 1 near, 0 phase, 0 st 5": set(),
    "0 ld, 1 ld, 0 phase, 0 st 5": {(0, 3)},
    # A block barrier passes on what one warp has learnt.
    "0 cp 5, 0 commit, 0 wait, bar, 1 ld": set(),
    "0 cp 5, 0 commit, bar, 0 wait, 1 ld": {(4, 0)},
    "0 cp 5, 0 commit, 0 ld": {(2, 0)},
    "0 cp 5, 0 commit, 0 wait, 0 ld": set(),
    "0 cp 5, 0 wait, 0 ld": {(2, 0)},  # in no group
    "0 cp 5, 0 commit, 0 wait 17, 0 ld": {(3, 0)},  # for more groups than are remembered
    # A copy does not end a race that its store was in.
    "1 st 6, 0 cp 5, 0 commit, 0 wait, 0 ld": {(4, 1)},
    # A copy in bulk is there for who waits for its phase, after what its warp did before.
    "0 tma 5, 1 phase, 1 ld": set(),
    "0 tma 5, 1 phase, 2 ld": {(2, 0)},
    "0 tma 5, bar, 1 ld": {(2, 0)},
    "0 ld, 0 tma 5, 1 phase, 1 ld": set(),
    "1 ld, 0 tma 5, 1 phase, 1 ld": {(0, 1)},
    # By a warp of another block: whether the word is still read is not followed.
    "1 ld, +1 tma 5, 1 phase, 1 ld": set(),
    "0 ld, +1 tma 5, 1 phase, 1 ld": set(),
    "+1 tma 5, 2 ld": {(1, 0)},
    # Warps of other blocks.
    "0 st 5, +0 ld": {(1, 0)},
    "0 st 5, bar, +0 ld": {(2, 0)},
    "0 st 5, meet, +0 ld": set(),
    "+0 st 5, bar, 0 ld": {(2, 0)},
    "+0 st 5, meet, 0 ld": set(),
    "0 st 5, 1 st 5, +0 ld": {(2, 1)},
    "0 st 5, 1 far, +0 ld": {(2, 0)},
    "0 st 5, bar, 1 far, +0 ld": set(),
    "1 st 5, 1 far, +0 ld": set(),
    # Of stores of the same value only block barriers order all.
    "0 st 5, 1 st 5, meet, +0 ld": {(3, 1)},
    # Lanes that have diverged are ordered where they run together.
    "0.0 st 5, 0.1 ld": {(1, 0)},
    "0.0 st 5, 0.0 ld": set(),
    "0.0 st 5, 0 run, 0.1 ld": set(),
    "0.0 st 5, 0.12 run, 0.1 ld": {(2, 0)},
    "0.10 st 5, 0.01 ld": set(),
    "0.0 ld, 0.1 ld, 0.012 st 5": set(),
    "0.0 ld, 0.1 ld, 0.02 st 5": {(1, 2)},  # has met one of those that loaded
    # The latest groups are known, those that others contain left out.
    "0.0 st 5, 0.01 run" + ", 0.23 run, 0.34 run" * 5 + ", 0.1 ld": set(),
    # The other lanes of a warp have not stored the value.
    "0.0 st 5, 1 st 5, 0.1 ld": {(2, 1)},
    "1 st 5, 0.0 st 5, 0.1 ld": {(2, 1)},
    "1 st 5, 0 st 5, 0.1 ld": set(),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_rule(program: str) -> None:
    needs_clocks = "+" in program or not set(re.findall("[a-z]+", program)) <= PLAIN
    assert races(program, partly=needs_clocks) == PROGRAMS[program]
    assert bool(races(program, partly=True)) == bool(PROGRAMS[program])
