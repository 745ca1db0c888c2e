"""Branches that a trace passes by: what their ways compute decides no access, whichever is taken.

One IEEE division ends in a branch to its rare cases, and what decides that is a number: if the branch had to
be known, all float arithmetic before it would have to be executed.

Of a division, a root or a reciprocal the instructions of the shortest way are counted, which nearly all warps
take; of other branches those that every way has. So that this is never far off, a branch is passed by only if
its ways have no loop, and are long only in functions of the compiler for rare cases.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush

from memsim.isa.control import is_fence_of_system
from memsim.isa.op import Flow
from memsim.isa.program import Op
from memsim.simt.control_graph import ControlGraph
from memsim.simt.harmless_branches import Where, following, region_of, uniform_region_of

#: What names of the compiler's functions for rare cases contain.
RARE = "$__cuda_sm"
#: Instructions on all ways together, but for those in such functions.
MOST_INSTRUCTIONS = 32


@dataclass(frozen=True, slots=True)
class PassedBranch:
    """A branch that is passed by.

    end: where its lanes go on. writes: the registers that its ways write, as bits. counted: the instructions
    that count as executed, as (first, one past the last). is_short: all its ways are, but for rare cases.
    """

    end: int
    writes: int
    counted: tuple[tuple[int, int], ...]
    is_short: bool


def branches_to_pass(graph: ControlGraph) -> dict[int, PassedBranch]:
    """The branches that may be passed by if nothing needs what their ways write, by number."""
    found = {}
    for op in graph.ops:
        if op.flow is Flow.BRANCH and len(set(graph.successors(op))) > 1:
            passed = passed_branch(graph, op.index)
            if passed is not None and passed.is_short:
                found[op.index] = passed
    return found


@lru_cache(maxsize=1024)
def passed_branch(graph: ControlGraph, number: int) -> PassedBranch | None:
    """The branch of this number, if its ways make no access, and meet; None if they may do more."""
    branch = graph.ops[number]
    region = region_of(graph, branch, ()) or uniform_region_of(graph, branch, ())
    if region is None or len(region.waits or region.ends) != 1:
        return None
    (end,) = region.waits or {place for place, _ in region.ends}
    ends = dict(graph.basic_blocks)
    inside = (op for start, _ in region.places for op in graph.ops[start : ends[start]])
    if any(map(is_fence_of_system, inside)):  # some machines make a store for it
        return None
    own = {start for start, callers in region.places if not callers}
    calls = [graph.ops[ends[at] - 1] for at in own if graph.ops[ends[at] - 1].flow is Flow.CALL]
    rare = {at for name, at in graph.program.functions.items() if RARE in name}
    shortest = _shortest_way(graph, branch, end)
    if shortest is None or end not in ends:
        return None
    if not any(rare.issuperset(call.targets) for call in calls):
        shortest = [at for at in shortest if _shortest_way(graph, branch, end, without=at) is None]
    return PassedBranch(
        end,
        region.writes,
        tuple((at, ends[at]) for at in shortest),
        is_short=sum(ends[at] - at for at in own) <= MOST_INSTRUCTIONS
        and all(rare.issuperset(call.targets) for call in calls)
        and not any(_leads_back(graph, branch, at, own) for at in own),
    )


def _leads_back(graph: ControlGraph, branch: Op, block: int, own: Container[int]) -> bool:
    """May one of a branch's `own` basic blocks be in a loop?"""
    last = graph.ops[dict(graph.basic_blocks)[block] - 1]
    if last.flow is Flow.CALL:
        return False
    return block <= branch.index or any(way <= block and way in own for way in last.targets)


def _shortest_way(graph: ControlGraph, branch: Op, end: int, without: int = -1) -> list[int] | None:
    """The basic blocks on the way of a branch to `end` with the fewest instructions; None if there is no way
    without that one.
    """
    ends = dict(graph.basic_blocks)
    work: list[tuple[int, Where, list[int]]] = [(0, (way, ()), []) for way in graph.successors(branch)]
    seen: set[Where] = set()
    while work:
        length, (start, callers), way = heappop(work)
        if start == end and callers == ():
            return way
        if (start, callers) in seen or start not in ends or start == without:
            continue
        seen.add((start, callers))
        for place, one in following(graph, start, ends[start], callers):
            if one is not None:
                heappush(work, (length + ends[start] - start, (place, one), [*way, start]))
    return None


def ways_past(graph: ControlGraph, passed: Mapping[int, PassedBranch]) -> dict[int, tuple[int, ...]]:
    """The successors of each basic block that is reached if these branches are passed by."""
    ends = dict(graph.basic_blocks)
    found: dict[int, tuple[int, ...]] = {}
    work = [0] if ends else []
    while work:
        start = work.pop()
        if start not in found:
            by = passed.get(ends[start] - 1)
            found[start] = graph.next_basic_blocks[start] if by is None else (by.end,)
            work += found[start]
    return found
