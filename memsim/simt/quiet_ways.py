"""Ways on which it makes no difference which lanes go together: they only compute, up to where all wait."""

from __future__ import annotations

from functools import lru_cache

from memsim.isa.op import Effect, Flow
from memsim.simt.control_graph import ControlGraph, barrier_slot

#: Basic blocks on such ways that are looked at.
MOST_BLOCKS = 100

_PASSED = (
    *(None, Flow.BRANCH, Flow.EXIT),
    *(Flow.SET_BARRIER, Flow.LEAVE_BARRIER, Flow.WAIT_BARRIER, Flow.WARP_SYNC),
)


@lru_cache(maxsize=1024)
def waits_behind(
    graph: ControlGraph, start: int, passed: frozenset[int] = frozenset()
) -> frozenset[int] | None:
    """The convergence barriers at which the ways from the basic block at `start` end; None if on one of them
    an access is made, another lane asked, or a function left.

    Ways end at WARPSYNC and EXIT, too, but not at barriers that are `passed`.
    """
    ends = dict(graph.basic_blocks)
    work = [(start, frozenset[int]())]
    seen, found = set(work), set[int]()
    while work:
        place, held = work.pop()
        if place not in ends or len(seen) > MOST_BLOCKS:
            return None
        ops = graph.ops[place : ends[place]]
        for op in ops:
            if op.effect in (Effect.MEMORY, Effect.LANES) or op.flow not in _PASSED or not op.is_known:
                return None
            if op.flow is None and op.writes & graph.program.barriers:
                return None
        last = ops[-1]
        if last.flow is Flow.WARP_SYNC:
            continue
        if last.flow is Flow.SET_BARRIER:
            held |= {barrier_slot(last)}
        elif last.flow is Flow.WAIT_BARRIER and barrier_slot(last) not in held | passed:
            found.add(barrier_slot(last))
            continue
        for way in graph.successors(last):
            if (way, held) not in seen:
                seen.add((way, held))
                work.append((way, held))
    return frozenset(found)
