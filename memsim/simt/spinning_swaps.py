"""Loops of a load and a compare-and-swap on shared memory, which ptxas makes of an atomic that no chip has.

How often such a loop goes round depends on other lanes and warps, but nothing else does: it ends with its
update made. What that costs is in `memsim.analysis.swap_costs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memsim.isa.op import Effect, Flow, Trait
from memsim.isa.program import Op

#: Instructions between the compare-and-swap and the end of its loop: a comparison.
BEHIND = 3


class SwapLoop(NamedTuple):
    """`load` finds the old value, `swap` stores the new one, `branch` goes back if another came first."""

    load: Op
    swap: Op
    branch: Op


def swap_loops(ops: Sequence[Op]) -> list[SwapLoop]:
    """Those of a program."""
    return [loop for op in ops if (loop := _around(ops, op)) is not None]


def _around(ops: Sequence[Op], swap: Op) -> SwapLoop | None:
    """The loop of a compare-and-swap that spins; None if it is none, or does anything else."""
    if Trait.SPINS not in swap.traits:
        return None
    behind = ops[swap.index + 1 : swap.index + 1 + BEHIND]
    branch = next((op for op in behind if op.effect is Effect.CONTROL), None)
    if branch is None or branch.flow is not Flow.BRANCH or branch.guard is None or not branch.targets:
        return None
    body = ops[branch.targets[0] : branch.index]
    loads = [op for op in body if op.effect is Effect.MEMORY and op is not swap]
    if swap not in body or len(loads) != 1 or any(op.effect is Effect.CONTROL for op in body):
        return None
    load = loads[0]
    feeds = load.touches == (("load", "shared"),) and load.writes & swap.reads
    return SwapLoop(load, swap, branch) if feeds else None
