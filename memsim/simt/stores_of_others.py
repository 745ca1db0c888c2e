"""Loads of shared memory, and stores of other warps there: loops that wait for these, and barriers that keep
them behind a load.

A loop waits if it loads the same place again, with no barrier in between, until its value lets it end. How
often it goes round depends on when the others store.

Loops of a load and a compare-and-swap on shared memory ptxas makes of an atomic that no chip has. How often
such a loop goes round depends on other lanes and warps, but nothing else does: it ends with its update made.
What that costs is in `memsim.analysis.sites`.

A load does not read a store to which every way leads through a barrier of the whole block from which none
leads back to the load. So the data of tiles need not be known where a kernel made a tensor map before.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence
from functools import cached_property, reduce
from operator import or_
from typing import NamedTuple

from memsim.isa.op import Effect, Flow, Trait
from memsim.isa.program import SHARED, Op, spaces_read
from memsim.simt.control_graph import ControlGraph, Where, predecessors_by_node, reached_from

#: Where a block's warps wait for each other: what is loaded behind it was stored before it.
_ORDERS = (Flow.BLOCK_BARRIER, Flow.WAIT_CLUSTER, Flow.WAIT_PHASE)


def spinning_loads(graph: ControlGraph, needed: Iterable[int]) -> list[Op]:
    """Those of the needed instructions whose loop waits for another value in shared memory.

    Loops that load from one place after another, such as a binary search, are not meant.
    """
    loads = [graph.ops[index] for index in sorted(needed) if SHARED in spaces_read(graph.ops[index])]
    if not loads:
        return []
    loops = _Loops(graph)
    return [op for op in loads if loops.wait_for(op)]


class _Loops:
    """The loops of a program that have no barrier in them, through functions from each call separately."""

    def __init__(self, graph: ControlGraph) -> None:
        self.graph = graph
        self.predicates = graph.program.predicates

        def ways(place: Where) -> list[Where]:
            return [way for way in graph.following(*place) if way[0] in graph.basic_blocks]

        places: set[Where] = reached_from([(0, ())], ways)
        self.ahead = {one: [] if self.last(one).flow in _ORDERS else ways(one) for one in places}
        self.behind = predecessors_by_node(self.ahead)
        self.around: dict[Where, set[Where]] = {}

    def last(self, place: Where) -> Op:
        """The last instruction of a basic block."""
        return self.graph.block(place[0])[-1]

    def of(self, place: Where) -> set[Where]:
        """The basic blocks that lead to this one and to which it leads."""
        if place not in self.around:
            both = (reached_from(ways[place], ways.__getitem__) for ways in (self.ahead, self.behind))
            self.around[place] = set.intersection(*both)
        return self.around[place]

    def wait_for(self, load: Op) -> bool:
        """Is there a loop around a load in which its address stays, and that its value may end?"""
        start = self.graph.block_of(load.index)
        return any(self._waits(load, self.of(place)) for place in self.ahead if place[0] == start)

    def _waits(self, load: Op, loop: set[Where]) -> bool:
        ops = (op for place in loop for op in self.graph.block(place[0]))
        if load.addresses & reduce(or_, (op.writes for op in ops), 0) & ~self.predicates:
            return False
        exits = [
            place
            for place in loop
            if self.last(place).flow is Flow.EXIT or not loop.issuperset(self.ahead[place])
        ]
        return self._decides(load, loop, exits)

    def _decides(self, load: Op, loop: set[Where], exits: Iterable[Where]) -> bool:
        """Does the load's value decide a branch at the end of these basic blocks?"""
        needed = {place: self.last(place).reads for place in exits}  # at the end of a basic block
        work = list(needed)
        while work:
            place = work.pop()
            need = needed[place]
            for op in reversed(self.graph.block(place[0])):
                if not op.writes & need:
                    continue
                if op is load:
                    return True
                need = (need if op.guard is not None else need & ~op.writes) | op.reads
            for before in loop.intersection(self.behind[place]):
                if need & ~needed.get(before, 0):
                    needed[before] = needed.get(before, 0) | need
                    work.append(before)
        return False


# --- loops of a compare-and-swap -------------------------------------------------------------

#: Instructions between the compare-and-swap and the end of its loop: a comparison.
BEHIND = 3


class SwapLoop(NamedTuple):
    """`load` finds the old value, `swap` stores the new one, `branch` goes back if another came first."""

    load: Op
    swap: Op
    branch: Op


def swap_loops(ops: Sequence[Op]) -> list[SwapLoop]:
    """Those of a program."""
    return [loop for op in ops if (loop := _around(ops, op)) is not None]


def _around(ops: Sequence[Op], swap: Op) -> SwapLoop | None:
    """The loop of a compare-and-swap that spins; None if it is none, or does anything else."""
    if Trait.SPINS not in swap.traits:
        return None
    behind = ops[swap.index + 1 : swap.index + 1 + BEHIND]
    branch = next((op for op in behind if op.effect is Effect.CONTROL), None)
    if branch is None or branch.flow is not Flow.BRANCH or branch.guard is None or not branch.targets:
        return None
    body = ops[branch.targets[0] : branch.index]
    loads = [op for op in body if op.effect is Effect.MEMORY and op is not swap]
    if swap not in body or len(loads) != 1 or any(op.effect is Effect.CONTROL for op in body):
        return None
    load = loads[0]
    feeds = load.touches == (("load", "shared"),) and load.writes & swap.reads
    return SwapLoop(load, swap, branch) if feeds else None


# --- stores behind barriers ------------------------------------------------------------------


class StoresBehind:
    """Stores behind barriers in one program; none if other blocks of a cluster may store."""

    def __init__(self, graph: ControlGraph) -> None:
        self._graph = graph
        self._before: dict[int, frozenset[int]] = {}

    def is_behind(self, load: int, store: int) -> bool:
        """Do all threads of the block make the load, if they do, before any comes to the store?"""
        if self._in_clusters:
            return False
        of_load, of_store = map(self._graph.block_of, (load, store))
        if of_load not in self._before:
            last = {at for at, after in self._barriers.items() if of_load not in after}
            self._before[of_load] = self._reached([0], last)
        return of_store not in self._before[of_load]

    @cached_property
    def _barriers(self) -> dict[int, frozenset[int]]:
        """Basic blocks that end at a barrier of all threads, with those that are reached from there."""
        graph = self._graph
        return {
            start: self._reached(graph.next_basic_blocks[start], ())
            for start in graph.basic_blocks
            if _is_of_all(graph.block(start)[-1])
        }

    @cached_property
    def _in_clusters(self) -> bool:
        flows = (Flow.ARRIVE_CLUSTER, Flow.WAIT_CLUSTER)
        return any(
            op.flow in flows or any("cluster" in access or "multicast" in access for access, _ in op.touches)
            for op in self._graph.ops
        )

    def _reached(self, first: Collection[int], last: Container[int]) -> frozenset[int]:
        """The basic blocks to which one comes from the `first`, these included, and not beyond the `last`."""
        ways = self._graph.next_basic_blocks
        return frozenset(reached_from(first, lambda here: () if here in last else ways[here]))


def _is_of_all(op: Op) -> bool:
    """Is it a barrier at which all threads of the block wait?"""
    whole = op.guard is None and len(op.form.operands) == 1 and Trait.ARRIVES not in op.traits
    return op.flow is Flow.BLOCK_BARRIER and whole
