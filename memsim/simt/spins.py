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
    return [op for op in loads if _ends_a_loop(graph, op)]


def _ends_a_loop(graph: ControlGraph, load: Op) -> bool:
    """Is there a loop around it without a barrier, in which its address stays, and that its value may end?"""
    ends = dict(graph.basic_blocks)
    ahead = {
        start: () if graph.ops[ends[start] - 1].flow in _ORDERS else ways
        for start, ways in graph.next_basic_blocks.items()
    }
    behind: dict[int, list[int]] = {start: [] for start in ahead}
    for start, ways in ahead.items():
        for way in ways:
            behind[way].append(start)
    starts = sorted(ends)
    own = starts[bisect_right(starts, load.index) - 1]
    loop = _reached(ahead, own) & _reached(behind, own)
    ops = [op for start in sorted(loop) for op in graph.ops[start : ends[start]]]
    written = reduce(or_, (op.writes for op in ops), 0)
    if load.addresses & written & ~graph.program.predicates:
        return False
    ends_of_loop = {start: ends[start] for start in loop}
    leaves = {start for start in loop if graph.ops[ends[start] - 1].flow is Flow.EXIT}
    exits = [start for start in loop if start in leaves or not loop.issuperset(ahead[start])]
    return _decides(load, graph, ends_of_loop, exits, behind)


def _decides(
    load: Op,
    graph: ControlGraph,
    ends: Mapping[int, int],
    exits: Iterable[int],
    behind: Mapping[int, Iterable[int]],
) -> bool:
    """Does the load's value decide a branch at the end of the blocks `exits`? ends: of the loop's blocks."""
    needed = {start: graph.ops[ends[start] - 1].reads for start in exits}  # at the end of a basic block
    work = list(needed)
    while work:
        start = work.pop()
        need = needed[start]
        for op in reversed(graph.ops[start : ends[start]]):
            if not op.writes & need:
                continue
            if op is load:
                return True
            need = (need if op.guard is not None else need & ~op.writes) | op.reads
        for before in behind[start]:
            if before in ends and need & ~needed.get(before, 0):
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
