"""What depends on the results of some instructions: the accesses and the control flow that they decide."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from memsim.isa.op import Effect, Op
from memsim.isa.reach import GLOBAL, LOCAL
from memsim.simt.control_graph import ControlGraph
from memsim.simt.pointer_roots import ANYWHERE

#: (state space, which part of it as bits: of global memory the roots of the address, of local memory the
#: words of the stack; 0 for other spaces).
Places = frozenset[tuple[str, int]]


def decided_by(
    graph: ControlGraph,
    is_source: Callable[[Op], bool],
    places_read: Callable[[Op], Places],
    places_written: Callable[[Op], Places],
) -> list[Op]:
    """Accesses and control flow that depend on the results of some instructions, through memory as well."""
    dirty: set[tuple[str, int]] = set()
    while True:
        before = len(dirty)
        found = _tainted(graph, dirty, is_source, places_read, places_written)
        if len(dirty) == before:
            return found


def meet(some: Iterable[tuple[str, int]], others: Collection[tuple[str, int]]) -> bool:
    """May these places be the same memory?"""
    return any(
        space == other and (space not in (GLOBAL, LOCAL) or (part | mine) & ANYWHERE or part & mine)
        for space, part in some
        for other, mine in others
    )


def _tainted(
    graph: ControlGraph,
    dirty: set[tuple[str, int]],
    is_source: Callable[[Op], bool],
    places_read: Callable[[Op], Places],
    places_written: Callable[[Op], Places],
) -> list[Op]:
    """One iteration; `dirty` are the places that contain such results, and may grow."""
    entry = {start: 0 for start, _ in graph.basic_blocks}
    ends = dict(graph.basic_blocks)
    found: dict[int, Op] = {}
    work = list(entry)
    while work:
        start = work.pop()
        state = entry[start]
        for op in graph.ops[start : ends[start]]:
            if op.effect is Effect.NONE:
                continue
            if op.effect is Effect.CONTROL:
                if op.reads & state & ~graph.program.barriers:
                    found[op.index] = op
                continue
            hit = bool(op.reads & state)
            if op.effect is Effect.MEMORY:
                if op.addresses & state:
                    found[op.index] = op
                if hit:
                    dirty |= places_written(op)
                hit = hit or (bool(dirty) and meet(places_read(op), dirty))
            if hit or is_source(op):
                state |= op.writes
            elif op.guard is None:
                state &= ~op.writes
        for following in graph.next_basic_blocks[start]:
            if state & ~entry[following]:
                entry[following] |= state
                work.append(following)
    return [found[index] for index in sorted(found)]


def is_atomic(op: Op) -> bool:
    """Does its result depend on what other threads left in memory?"""
    return op.effect is Effect.MEMORY and any(kind == "atomic" for kind, _ in op.touches)
