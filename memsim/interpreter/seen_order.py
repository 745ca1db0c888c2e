"""Whether what a kernel does may depend on the order in which its blocks run."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from memsim.interpreter.lane_operations import CLOCKS
from memsim.isa.atomics import atomic_shape
from memsim.isa.op import Trait
from memsim.isa.program import GLOBAL, Op, spaces_read, spaces_written
from memsim.simt.control_graph import ControlGraph

#: Those with the same result in any order, on integers.
COMMUTING = frozenset(("add", "min", "max", "and", "or", "xor"))


@lru_cache(maxsize=256)
def sees_order(kernel: ControlGraph) -> bool:
    """Whether a kernel can see which block comes first, or wait for another one: by a fence, a load that
    bypasses the L1 cache, a clock, or atomics. These do not count if all are one operation on integers that
    commutes, and none returns the old value.

    Races of blocks, by plain loads and stores, are not looked for.
    """
    ops = kernel.ops
    observes = (Trait.OBSERVES in op.traits and GLOBAL in spaces_read(op) for op in ops)
    if any(Trait.FENCES in op.traits for op in ops) or any(observes) or reads_clock(ops):
        return True
    updates = {_commuting(op) for op in ops if op.is_atomic and GLOBAL in spaces_written(op)}
    return None in updates or len(updates) > 1


def reads_clock(ops: Iterable[Op]) -> bool:
    """Whether one of these instructions does."""
    return any(clock in op.text for op in ops for clock in CLOCKS)


def _commuting(op: Op) -> tuple[str, type] | None:
    """The operation and the integers of an atomic; None if what it does depends on the order."""
    operation, shape = atomic_shape(op.form)
    is_integer = shape.count == 1 and np.dtype(shape.element).kind != "f"
    return (operation, shape.element) if is_integer and operation in COMMUTING and not op.writes else None
