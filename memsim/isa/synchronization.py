"""Results of block barriers: `B2R`."""

from __future__ import annotations

from typing import Any

from memsim.isa.op import Effect, Form
from memsim.isa.readers import Binder
from memsim.isa.registry import opcode


@opcode("B2R", results="RP?", effect=Effect.LANES)
def build_barrier_result(form: Form, binder: Binder) -> Any:
    """The result of the last block barrier with a reduction: a count, and whether it is not zero."""
    with_predicate = len(form.operands) > 1

    def compute(r: list[Any], warps: Any) -> Any:
        count, holds = warps.barrier_result()
        return (count, holds) if with_predicate else count

    return compute
