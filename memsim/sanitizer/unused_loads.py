"""Whether a load is the compiler's, before the condition under which the source makes it: what it finds is
chosen or combined under another condition (`SEL`, a guard), or on some way nothing reads it.
"""

from __future__ import annotations

from memsim.isa.op import Effect
from memsim.isa.program import Op
from memsim.simt.control_graph import ControlGraph

#: Instructions that give one of two words, as a predicate says.
SELECTS = ("SEL", "USEL", "FSEL")


def may_be_unused(graph: ControlGraph, load: Op) -> bool:
    """Whether on some way behind a load nothing depends on it. What is computed of it on the way counts as
    used; a choice by something else, and a write under a guard, as one of something else.
    """
    ends, start = graph.basic_blocks, graph.block_of(load.index)
    work = [(load.index + 1, ends[start], start, load.writes, 0)]
    seen = set[tuple[int, int, int]]()
    while work:
        first, end, start, loaded, made = work.pop()
        for op in graph.ops[first:end]:
            found = _behind(op, loaded, made, graph.program.predicates)
            if found is None:
                break
            loaded, made = found
            if not loaded | made:
                return True
        else:
            ways = graph.next_basic_blocks[start]
            if not ways and not made:
                return True
            for way in ways:
                if (way, loaded, made) not in seen:
                    seen.add((way, loaded, made))
                    work.append((way, ends[way], way, loaded, made))
    return False


def _behind(op: Op, loaded: int, made: int, predicates: int) -> tuple[int, int] | None:
    """Slots with what was loaded, and what was made of it, behind an instruction; None if it uses them."""
    read = op.reads & (loaded | made)
    guard = 0 if op.guard is None or op.guard.slot is None else 1 << op.guard.slot
    if read & guard or (read and not guard and op.effect is not Effect.ALU):
        return None
    if guard:
        return loaded & ~op.writes, made & ~op.writes
    by_predicate = op.form.opcode in SELECTS and not read & predicates
    combined = not read & ~predicates and op.reads & ~read
    stays = 0 if not read or by_predicate or combined else op.writes
    return loaded & ~op.writes, made & ~op.writes | stays
