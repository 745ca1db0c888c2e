"""Objects in shared memory that lanes wait for: `SYNCS` (mbarriers), and results of block barriers: `B2R`.

In: a form. Out: what it gives. A wait for a copy says yes: copies are done when they are issued, one legal
order. Phases are counted nowhere; requests to the objects are listed as not counted.
"""

from __future__ import annotations

from typing import Any

from memsim.isa.op import Effect, Form, Predicate
from memsim.isa.readers import Binder
from memsim.isa.registry import opcode
from memsim.state.registers import Poison, Poisoned


def _state_widths(form: Form) -> dict[int, int]:
    return {1: 2} if form.operands and isinstance(form.operands[0], Predicate) else {0: 2}


@opcode("SYNCS", results="P?R?", widths=_state_widths, effect=Effect.LANES)
def build_mbarrier(form: Form, binder: Binder) -> Any:
    results = form.operands[:2]
    gives_predicate = bool(results) and isinstance(results[0], Predicate)
    waits = "PHASECHK" in form.modifiers

    def compute(r: list[Any], warps: Any) -> Any:
        warps.aside("mbarrier operations")
        if gives_predicate and waits:
            return True
        raise Poisoned(Poison(f"the state of an mbarrier ({form.name})", None))

    return compute


@opcode("B2R", results="RP?", effect=Effect.LANES)
def build_barrier_result(form: Form, binder: Binder) -> Any:
    """What the last block barrier with a reduction gave: a count, and whether it is not zero."""
    with_predicate = len(form.operands) > 1

    def compute(r: list[Any], warps: Any) -> Any:
        count, holds = warps.barrier_result()
        return (count, holds) if with_predicate else count

    return compute
