"""Branches that decide no access because all lanes of a warp take the same way, and both ways only compute.

Where compilers know that a condition is the same in all lanes, they branch without a BSYNC: around the rare
cases of `1 / z`, say, of one `z` for the whole block. Lanes do not part there, whichever way they take.
"""

from __future__ import annotations

from collections.abc import Iterable

from memsim.isa.op import BARRIER, PREDICATE, UNIFORM, UNIFORM_PREDICATE, Effect, Flow
from memsim.isa.program import Op
from memsim.simt.control_graph import ControlGraph
from memsim.simt.harmless_branches import Callers, Region, Where, following

#: One value for a warp, whichever lanes write it.
UNIFORM_REGISTERS = (1 << PREDICATE) - (1 << UNIFORM) | (1 << BARRIER) - (1 << UNIFORM_PREDICATE)
#: Loads that give lanes with one address one value.
LOADS = frozenset((("load", "shared"), ("load", "global"), ("load", "constant")))
#: Basic blocks on the ways of a branch that are looked at.
MOST_BLOCKS = 50

_PASSED = (None, Flow.BRANCH, Flow.CALL, Flow.RETURN)


def uniform_region_of(graph: ControlGraph, branch: Op, callers: Callers) -> Region | None:
    """The ways of a branch on which lanes do not part, if they make no access and meet; else None.

    Its `ends` are where they meet; nothing waits.
    """
    if branch.flow is not Flow.BRANCH or callers is None:
        return None
    start = max(first for first, _ in graph.basic_blocks if first <= branch.index)
    same = _uniform_after(graph.ops[start : branch.index], UNIFORM_REGISTERS)
    if _reads(branch) & ~same:
        return None
    ways = [(way, callers) for way in graph.successors(branch)]
    places = _reached(graph, ways)
    for end in sorted(place for place in places if place[1] == callers and place[0] > branch.index):
        writes = _writes_before(graph, ways, end, same)
        if writes is not None:
            return Region(writes, frozenset(), frozenset((end,)))
    return None


def _reached(graph: ControlGraph, ways: Iterable[Where]) -> set[Where]:
    """Basic blocks that are reached through those that only compute."""
    ends = dict(graph.basic_blocks)
    work = list(ways)
    found = set(work)
    while work and len(found) <= MOST_BLOCKS:
        start, callers = work.pop()
        if start not in ends or not all(map(_only_computes, graph.ops[start : ends[start]])):
            continue
        for place in following(graph, start, ends[start], callers):
            if place not in found:
                found.add(place)
                work.append(place)
    return found


def _writes_before(graph: ControlGraph, ways: Iterable[Where], end: Where, same: int) -> int | None:
    """The registers that are written on all ways until `end`; None if lanes may part, or do something else.

    same: the slots with the same value in all lanes.
    """
    ends = dict(graph.basic_blocks)
    entry = {way: same for way in ways if way != end}
    work = list(entry)
    writes = 0
    while work:
        place = work.pop()
        start, callers = place
        if start not in ends or len(entry) > MOST_BLOCKS:
            return None
        ops = graph.ops[start : ends[start]]
        if not all(map(_only_computes, ops)):
            return None
        last = ops[-1]
        known = _uniform_after(ops, entry[place])
        if last.flow is not None and _reads(last) & ~graph.program.barriers & ~known:
            return None
        writes |= _writes(ops)
        then = following(graph, start, ends[start], callers)
        if not then or any(one is None for _, one in then):
            return None
        for one in then:
            if one == end:
                continue
            held = known & entry.get(one, known)
            if entry.get(one) != held:
                entry[one] = held
                work.append(one)
    return writes


def _only_computes(op: Op) -> bool:
    """Does it neither access memory nor wait?"""
    called = op.flow is not Flow.CALL or bool(op.targets)
    return op.effect is not Effect.MEMORY and op.flow in _PASSED and op.is_known and called


def _uniform_after(ops: Iterable[Op], same: int) -> int:
    """The slots with the same value in all lanes after some instructions, of those that had it before."""
    for op in ops:
        own = op.effect is Effect.ALU or (op.touches and LOADS.issuperset(op.touches) and not op.spills)
        if own and not _reads(op) & ~same and (op.guard is None or not op.writes & ~same):
            same |= op.writes
        else:
            same &= ~op.writes | UNIFORM_REGISTERS
    return same


def _reads(op: Op) -> int:
    return op.reads | op.addresses


def _writes(ops: Iterable[Op]) -> int:
    found = 0
    for op in ops:
        found |= op.writes
    return found
