"""What depends on the results of some instructions: the accesses and the control flow that they decide."""

from __future__ import annotations

from collections.abc import Callable

from memsim.isa.op import Effect, Op
from memsim.isa.reach import spaces_read, spaces_written
from memsim.simt.control_graph import ControlGraph


def decided_by(graph: ControlGraph, is_source: Callable[[Op], bool]) -> list[Op]:
    """Accesses and control flow that depend on the results of some instructions."""
    dirty: set[str] = set()
    while True:
        before = len(dirty)
        found = _tainted(graph, dirty, is_source)
        if len(dirty) == before:
            return found


def _tainted(graph: ControlGraph, dirty: set[str], is_source: Callable[[Op], bool]) -> list[Op]:
    """One iteration; `dirty` are the state spaces that contain such results, and may grow."""
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
                    dirty |= spaces_written(op)
                hit = hit or bool(spaces_read(op) & dirty)
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
