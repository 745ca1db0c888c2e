"""Instructions as operations on the lanes of a warp.

What computes on registers alone is traced (`traced.py`); for lanes, memory and control flow
native/interpreter.c has operations of its own, whose rules are those of `memsim.isa` and `memsim.simt`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from memsim.interpreter.control_operations import lower_control
from memsim.interpreter.lane_operations import lower_lanes
from memsim.interpreter.lowered_op import LoweredOp, NotLowered
from memsim.interpreter.memory_operations import lower_memory
from memsim.interpreter.traced import NotTraced, fused
from memsim.interpreter.vector_operations import VectorOperation
from memsim.isa.op import Effect, Unsupported
from memsim.simt.code import NEVER
from memsim.state import rounding
from memsim.state.poison import Poisoned

#: What a function raises that asks a traced array for something else than it has.
_NOT_TRACED: tuple[type[Exception], ...] = (
    *(NotTraced, Unsupported, Poisoned, ArithmeticError, AssertionError, AttributeError),
    *(LookupError, TypeError, ValueError),
)


@contextmanager
def fused_multiply_adds_noted() -> Iterator[None]:
    """Fused multiply-adds are traced, too."""
    before = dict(rounding.IN_MACHINE_CODE)
    try:
        for dtype in (np.float32, np.float64):
            rounding.IN_MACHINE_CODE[dtype] = fused(dtype)
        yield
    finally:
        rounding.IN_MACHINE_CODE.clear()
        rounding.IN_MACHINE_CODE.update(before)


def _lower_values(one: LoweredOp) -> None:
    with fused_multiply_adds_noted():
        one.write_values(one.op.meaning.bind(one.binder)(one.registers))


_LOWERED: dict[Effect, Callable[[LoweredOp], Any]] = {
    Effect.ALU: _lower_values,
    Effect.LANES: lower_lanes,
    Effect.MEMORY: lower_memory,
}


def lowered(one: LoweredOp) -> list[VectorOperation]:
    """All operations of an instruction.

    Raises:
        NotLowered: there is no operation for something that it does.
    """
    op = one.op
    try:
        if op.flow is not None:
            lower_control(one)
        elif op.effect in _LOWERED and op.guard != NEVER:
            one.guard(op.guard)
            _LOWERED[op.effect](one)
            if op.guard is not None:
                one.add("all")
    except _NOT_TRACED as error:
        raise NotLowered(f"{op.text}: {type(error).__name__} {error}") from error
    return one.operations
