"""Branches that decide no access: both ways only compute, and their lanes are together again at a BSYNC.

Compilers branch around the rare cases of divisions and roots. Which lanes take such a branch changes
registers, but no request to memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from memsim.isa.op import Effect, Flow, Immediate
from memsim.isa.program import Op
from memsim.simt.control_graph import ControlGraph, barrier_slot

#: Where a function returns to, innermost first; None if that is not known.
Callers = tuple[int, ...] | None
#: A basic block by its first instruction, and where its function returns to.
Where = tuple[int, Callers]

#: Calls within calls that are told apart.
DEEPEST = 3
#: Basic blocks on the ways of a branch that are looked at.
MOST_BLOCKS = 500

_PASSED = (None, Flow.BRANCH, Flow.CALL, Flow.RETURN, Flow.SET_BARRIER, Flow.WAIT_BARRIER)


@dataclass(frozen=True, slots=True)
class Region:
    """The ways of a branch.

    writes: registers that they write, as bits. waits: the BSYNCs where its lanes wait for each other. ends:
    where they are together again, and the callers.
    """

    writes: int
    waits: frozenset[int]
    ends: frozenset[Where]


def following(graph: ControlGraph, start: int, end: int, callers: Callers) -> list[Where]:
    """Where a basic block may lead, with the callers there."""
    op = graph.ops[end - 1]
    ways = graph.next_basic_blocks[start]
    if op.flow is Flow.CALL and op.targets:
        inside: Callers = None
        if callers is not None and len(callers) < DEEPEST and returns_here(graph, start, op):
            inside = (op.index + 1, *callers)
        return [(way, inside if way in op.targets else callers) for way in ways]
    if op.flow is Flow.RETURN and callers:
        guarded = [(op.index + 1, callers)] if op.guard is not None else []
        return [(callers[0], callers[1:]), *guarded]
    return [(way, None if op.flow is Flow.RETURN else callers) for way in ways]


def returns_here(graph: ControlGraph, start: int, call: Op) -> bool:
    """Does the basic block that ends in a call hand over the address behind it?"""
    if call.index + 1 >= len(graph.ops):
        return False
    behind = graph.ops[call.index + 1].address
    return any(
        isinstance(operand, Immediate) and operand.value == behind
        for op in graph.ops[start : call.index]
        for operand in op.form.operands
    )


def region_of(graph: ControlGraph, branch: Op, callers: Callers) -> Region | None:
    """The ways of a branch, if they make no access and all end at one BSYNC; else None."""
    if branch.flow is not Flow.BRANCH:
        return None
    ends = dict(graph.basic_blocks)
    work = [(way, callers, frozenset[int]()) for way in graph.successors(branch)]
    seen, writes, last = set(work), 0, set()
    while work:
        start, where, held = work.pop()
        if len(seen) > MOST_BLOCKS or start not in ends:
            return None
        block = graph.ops[start : ends[start]]
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
        ways = following(graph, start, ends[start], where)
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
    return Region(writes, waits, frozenset((way, where) for way, where in behind if way in ends))
