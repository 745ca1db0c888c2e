"""Instructions as operations on the lanes of a warp.

What computes on registers alone is traced (`traced.py`); for lanes, memory and control flow
native/interpreter.c has operations of its own, whose rules are those of `memsim.isa` and `memsim.simt`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memsim.interpreter.control_operations import lower_control
from memsim.interpreter.lane_operations import lower_lanes
from memsim.interpreter.lowered_op import LoweredOp, NotLowered
from memsim.interpreter.memory_operations import lower_memory
from memsim.interpreter.traced import NotTraced
from memsim.interpreter.vector_operations import VectorOperation
from memsim.isa.op import Effect, Unsupported
from memsim.simt.code import NEVER
from memsim.state.poison import Poisoned

#: What a function raises that asks a traced array for something else than it has.
_NOT_TRACED: tuple[type[Exception], ...] = (
    *(NotTraced, Unsupported, Poisoned, ArithmeticError, AssertionError, AttributeError),
    *(LookupError, TypeError, ValueError),
)


def _lower_values(one: LoweredOp) -> None:
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
