"""Loops that wait for what other warps store: they load the same place of shared memory again, with no
barrier in between, until its value lets them end. How often they go round depends on when the others store.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_

from memsim.isa.op import Flow, Op
from memsim.isa.reach import SHARED, spaces_read
from memsim.simt.control_graph import ControlGraph

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
    """The loops of a program that have no barrier in them."""

    def __init__(self, graph: ControlGraph) -> None:
        self.ops = graph.ops
        self.predicates = graph.program.predicates
        self.ends = dict(graph.basic_blocks)
        self.starts = sorted(self.ends)
        self.ahead = {
            start: () if self.last(start).flow in _ORDERS else ways
            for start, ways in graph.next_basic_blocks.items()
        }
        self.behind: dict[int, list[int]] = {start: [] for start in self.ahead}
        for start, ways in self.ahead.items():
            for way in ways:
                self.behind[way].append(start)
        self.around: dict[int, set[int]] = {}

    def last(self, start: int) -> Op:
        """The last instruction of a basic block."""
        return self.ops[self.ends[start] - 1]

    def of(self, start: int) -> set[int]:
        """The basic blocks that lead to this one and to which it leads."""
        if start not in self.around:
            self.around[start] = _reached(self.ahead, start) & _reached(self.behind, start)
        return self.around[start]

    def wait_for(self, load: Op) -> bool:
        """Is there a loop around a load in which its address stays, and that its value may end?"""
        loop = self.of(self.starts[bisect_right(self.starts, load.index) - 1])
        ops = (op for start in loop for op in self.ops[start : self.ends[start]])
        if load.addresses & reduce(or_, (op.writes for op in ops), 0) & ~self.predicates:
            return False
        exits = [
            start
            for start in loop
            if self.last(start).flow is Flow.EXIT or not loop.issuperset(self.ahead[start])
        ]
        return self._decides(load, loop, exits)

    def _decides(self, load: Op, loop: set[int], exits: Iterable[int]) -> bool:
        """Does the load's value decide a branch at the end of these basic blocks?"""
        needed = {start: self.last(start).reads for start in exits}  # at the end of a basic block
        work = list(needed)
        while work:
            start = work.pop()
            need = needed[start]
            for op in reversed(self.ops[start : self.ends[start]]):
                if not op.writes & need:
                    continue
                if op is load:
                    return True
                need = (need if op.guard is not None else need & ~op.writes) | op.reads
            for before in loop.intersection(self.behind[start]):
                if need & ~needed.get(before, 0):
                    needed[before] = needed.get(before, 0) | need
                    work.append(before)
        return False


def _reached(ways: Mapping[int, Iterable[int]], start: int) -> set[int]:
    """The basic blocks that a way of at least one step leads to."""
    found: set[int] = set()
    work = [*ways[start]]
    while work:
        one = work.pop()
        if one not in found:
            found.add(one)
            work += ways[one]
    return found
