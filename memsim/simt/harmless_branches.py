"""Branches that decide no access: both ways only compute, and their lanes are together again at a BSYNC.

Compilers branch around the rare cases of divisions and roots. Which lanes take such a branch changes
registers, but no request to memory.

Where compilers know that a condition is the same in all lanes, they branch without a BSYNC: around the rare
cases of `1 / z`, say, of one `z` for the whole block. Lanes do not part there, whichever way they take.

A trace passes such branches by. One IEEE division ends in a branch to its rare cases, and what decides that
is a number: if the branch had to be known, all float arithmetic before it would have to be executed. Of a
division, a root or a reciprocal the instructions of the shortest way are counted, which nearly all warps
take; of other branches those that every way has. So that this is never far off, a branch is passed by only if
its ways have no loop, and are long only in functions of the compiler for rare cases.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush

from memsim.isa.control import is_fence_of_system
from memsim.isa.op import BARRIER, PREDICATE, UNIFORM, UNIFORM_PREDICATE, Effect, Flow
from memsim.isa.program import Op
from memsim.simt.control_graph import RARE, Callers, ControlGraph, Where, barrier_slot

#: Basic blocks on the ways of a branch that are looked at.
MOST_BLOCKS = 500

_PASSED = (None, Flow.BRANCH, Flow.CALL, Flow.RETURN, Flow.SET_BARRIER, Flow.WAIT_BARRIER)


@dataclass(frozen=True, slots=True)
class Region:
    """The ways of a branch.

    writes: registers that they write, as bits. waits: the BSYNCs where its lanes wait for each other. ends:
    where they are together again, and the callers. places: the basic blocks on the ways. same: the slots with
    the same value in all lanes of a warp at the end.
    """

    writes: int
    waits: frozenset[int]
    ends: frozenset[Where]
    places: frozenset[Where]
    same: int = 0


def region_of(graph: ControlGraph, branch: Op, callers: Callers) -> Region | None:
    """The ways of a branch, if they make no access and all end at one BSYNC; else None."""
    if branch.flow is not Flow.BRANCH:
        return None
    ends = graph.basic_blocks
    work = [(way, callers, frozenset[int]()) for way in graph.successors(branch)]
    seen, writes, last = set(work), 0, set()
    while work:
        start, where, held = work.pop()
        if len(seen) > MOST_BLOCKS or start not in ends:
            return None
        block = graph.block(start)
        for op in block:
            if op.effect is Effect.MEMORY or op.flow not in _PASSED or not op.is_known:
                return None
            if op.writes & graph.program.barriers and op.flow is None:
                return None
            if op.flow is Flow.CALL and not op.targets:  # of a function of the system
                return None
            writes |= op.writes & ~graph.program.barriers
        op = block[-1]
        if op.flow is Flow.SET_BARRIER:
            held |= {barrier_slot(op)}
        elif op.flow is Flow.WAIT_BARRIER:
            if op.guard is not None:
                return None
            if barrier_slot(op) not in held:
                last.add((op.index, where))
                continue
            held -= {barrier_slot(op)}
        ways = graph.following(start, where)
        if not ways or (op.flow in (Flow.CALL, Flow.RETURN) and any(one is None for _, one in ways)):
            return None
        for way, one in ways:
            if (way, one, held) not in seen:
                seen.add((way, one, held))
                work.append((way, one, held))
    if len({barrier_slot(graph.ops[index]) for index, _ in last}) != 1:
        return None
    behind = ((way, where) for index, where in last for way in graph.successors(graph.ops[index]))
    waits = frozenset(index for index, _ in last)
    places = frozenset((start, where) for start, where, _ in seen if start not in waits)
    return Region(writes, waits, frozenset((way, where) for way, where in behind if way in ends), places)


# --- branches that all lanes of a warp take alike --------------------------------------------

#: One value for a warp, whichever lanes write it.
UNIFORM_REGISTERS = (1 << PREDICATE) - (1 << UNIFORM) | (1 << BARRIER) - (1 << UNIFORM_PREDICATE)
#: Loads that give lanes with one address one value.
LOADS = frozenset((("load", "shared"), ("load", "global"), ("load", "constant")))
#: Basic blocks on the ways of a branch that are looked at.
MOST_BLOCKS_ALIKE = 50

_PASSED_ALIKE = (None, Flow.BRANCH, Flow.CALL, Flow.RETURN)


def uniform_region_of(graph: ControlGraph, branch: Op, callers: Callers) -> Region | None:
    """The ways of a branch on which lanes do not part, if they make no access and meet; else None.

    Its `ends` are where they meet; nothing waits.
    """
    if branch.flow is not Flow.BRANCH or callers is None:
        return None
    return _uniform_region(graph, branch, callers, _same_at(graph) if callers == () else {})


def _uniform_region(
    graph: ControlGraph, branch: Op, callers: Callers, same_at: Mapping[int, int]
) -> Region | None:
    """As `uniform_region_of`. same_at: as `_same_at`."""
    start = graph.block_of(branch.index)
    same = _uniform_after(graph.ops[start : branch.index], same_at.get(start, UNIFORM_REGISTERS))
    if _reads(branch) & ~same:
        return None
    ways = [(way, callers) for way in graph.successors(branch)]
    places = _reached(graph, ways)
    for end in sorted(place for place in places if place[1] == callers and place[0] > branch.index):
        found = _region_before(graph, ways, end, same)
        if found is not None:
            return found
    return None


@lru_cache(maxsize=16)
def _same_at(graph: ControlGraph) -> dict[int, int]:
    """By basic block the slots with the same value in all lanes of a warp: of those where the ways of such a
    branch meet, and where nothing else leads.
    """
    found: dict[int, int] = {}
    for start in graph.basic_blocks:
        branch = graph.block(start)[-1]
        if branch.flow is not Flow.BRANCH or len(graph.next_basic_blocks[start]) < 2:
            continue
        region = _uniform_region(graph, branch, (), found)
        if region is not None:
            (behind, _), *_ = region.ends
            inside = {first for first, where in region.places if where == ()}
            if _is_entered_by(graph, {behind, *inside}, {start, *inside}):
                found[behind] = region.same
    return found


def _is_entered_by(graph: ControlGraph, blocks: set[int], others: set[int]) -> bool:
    """Do only these others lead to some basic blocks? A function returns to behind its calls."""
    for start, end in graph.basic_blocks.items():
        flow, ways = graph.ops[end - 1].flow, graph.next_basic_blocks[start]
        leads = end in blocks if flow is Flow.CALL else not blocks.isdisjoint(ways)
        if leads and start not in others and flow is not Flow.RETURN:
            return False
    return True


def _reached(graph: ControlGraph, ways: Iterable[Where]) -> set[Where]:
    """Basic blocks that are reached through those that only compute."""
    ends = graph.basic_blocks
    work = list(ways)
    found = set(work)
    while work and len(found) <= MOST_BLOCKS_ALIKE:
        start, callers = work.pop()
        if start not in ends or not all(map(_only_computes, graph.block(start))):
            continue
        for place in graph.following(start, callers):
            if place not in found:
                found.add(place)
                work.append(place)
    return found


def _region_before(graph: ControlGraph, ways: Collection[Where], end: Where, same: int) -> Region | None:
    """The ways until `end`; None if lanes may part on them, or do something else.

    same: the slots with the same value in all lanes.
    """
    ends = graph.basic_blocks
    entry = {way: same for way in ways if way != end}
    work = list(entry)
    writes, left = 0, same if end in ways else -1
    while work:
        place = work.pop()
        start, callers = place
        if start not in ends or len(entry) > MOST_BLOCKS_ALIKE:
            return None
        ops = graph.block(start)
        if not all(map(_only_computes, ops)):
            return None
        last = ops[-1]
        known = _uniform_after(ops, entry[place])
        if last.flow is not None and _reads(last) & ~graph.program.barriers & ~known:
            return None
        writes |= _writes(ops)
        then = graph.following(start, callers)
        if not then or any(one is None for _, one in then):
            return None
        for one in then:
            if one == end:
                left &= known
                continue
            held = known & entry.get(one, known)
            if entry.get(one) != held:
                entry[one] = held
                work.append(one)
    return Region(writes, frozenset(), frozenset((end,)), frozenset(entry), left)


def _only_computes(op: Op) -> bool:
    """Does it neither access memory nor wait?"""
    called = op.flow is not Flow.CALL or bool(op.targets)
    return op.effect is not Effect.MEMORY and op.flow in _PASSED_ALIKE and op.is_known and called


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


#: Instructions on all ways together, but for those in such functions.
MOST_INSTRUCTIONS = 32


@dataclass(frozen=True, slots=True)
class PassedBranch:
    """A branch that is passed by.

    end: where its lanes go on. writes: the registers that its ways write, as bits. ways: the instructions on
    them. counted: those that count as executed, as (first, one past the last). is_short: all its ways are,
    but for rare cases.
    """

    end: int
    writes: int
    ways: frozenset[int]
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
    ends = graph.basic_blocks
    inside = [op for start, _ in region.places for op in graph.block(start)]
    if any(map(is_fence_of_system, inside)):  # some machines make a store for it
        return None
    own = {start for start, callers in region.places if not callers}
    calls = [last for at in own if (last := graph.block(at)[-1]).flow is Flow.CALL]
    rare = {at for name, at in graph.program.functions.items() if RARE in name}
    shortest = _shortest_way(graph, branch, end)
    if shortest is None or end not in ends:
        return None
    if not any(rare.issuperset(call.targets) for call in calls):
        shortest = [at for at in shortest if _shortest_way(graph, branch, end, without=at) is None]
    return PassedBranch(
        end,
        region.writes,
        frozenset(op.index for op in inside),
        tuple((at, ends[at]) for at in shortest),
        is_short=sum(ends[at] - at for at in own) <= MOST_INSTRUCTIONS
        and all(rare.issuperset(call.targets) for call in calls)
        and not any(_leads_back(graph, branch, at, own) for at in own),
    )


def _leads_back(graph: ControlGraph, branch: Op, block: int, own: Container[int]) -> bool:
    """May one of a branch's `own` basic blocks be in a loop?"""
    last = graph.block(block)[-1]
    if last.flow is Flow.CALL:
        return False
    return block <= branch.index or any(way <= block and way in own for way in last.targets)


def _shortest_way(graph: ControlGraph, branch: Op, end: int, without: int = -1) -> list[int] | None:
    """The basic blocks on the way of a branch to `end` with the fewest instructions; None if there is no way
    without that one.
    """
    ends = graph.basic_blocks
    work: list[tuple[int, Where, list[int]]] = [(0, (way, ()), []) for way in graph.successors(branch)]
    seen: set[Where] = set()
    while work:
        length, (start, callers), way = heappop(work)
        if start == end and callers == ():
            return way
        if (start, callers) in seen or start not in ends or start == without:
            continue
        seen.add((start, callers))
        for place, one in graph.following(start, callers):
            if one is not None:
                heappush(work, (length + ends[start] - start, (place, one), [*way, start]))
    return None


def ways_past(graph: ControlGraph, passed: Mapping[int, PassedBranch]) -> dict[int, tuple[int, ...]]:
    """The successors of each basic block that is reached if these branches are passed by."""
    ends = graph.basic_blocks
    found: dict[int, tuple[int, ...]] = {}
    work = [0] if ends else []
    while work:
        start = work.pop()
        if start not in found:
            by = passed.get(ends[start] - 1)
            found[start] = graph.next_basic_blocks[start] if by is None else (by.end,)
            work += found[start]
    return found
