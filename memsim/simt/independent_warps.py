"""Independent warps: whether each warp of a launch may be a row of its own (warp_rows.py).

Kernels whose warps synchronize, share memory, or may wait for each other are excluded.
"""

from __future__ import annotations

from memsim.isa.op import Flow, Trait
from memsim.isa.program import Op, Program
from memsim.isa.reach import GLOBAL, spaces_read
from memsim.state.launch_memory import Memory


def are_independent(program: Program, needed: frozenset[int] | None, memory: Memory) -> bool:
    """Whether the warps of a launch are independent, and running them as rows may pay off.

    It does if loaded values decide the control flow; otherwise most blocks do the same. needed: the
    instructions whose values addresses and branches depend on; None if all are executed.
    """
    if needed is None or memory.shared_bytes:
        return False
    meetings = (Flow.BLOCK_BARRIER, Flow.ARRIVE_CLUSTER, Flow.WAIT_CLUSTER, Flow.SLEEP, Flow.YIELD)
    if any(op.flow in meetings for op in program.ops):
        return False
    loads = [op for op in program.ops if op.index in needed and GLOBAL in spaces_read(op)]
    return bool(loads) and not any(may_wait(op) for op in loads)


def may_wait(op: Op) -> bool:
    """May it observe writes of other warps meanwhile: an atomic, or a load that bypasses the L1 cache?"""
    return Trait.OBSERVES in op.traits or any(access != "load" for access, _ in op.touches)
