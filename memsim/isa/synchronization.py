"""Objects in shared memory that lanes wait for: `SYNCS` and `ARRIVES` (mbarriers), and results of block
barriers: `B2R`.

In: a form. Out: what it gives. A wait for a copy says yes: copies are done when they are issued, one legal
order. Phases are counted nowhere: the object's bytes are not known. Requests to the objects are listed; the
counters of loads and stores do not have them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.isa.memory import address_of, effective, own_shared
from memsim.isa.op import Effect, Form, Op, Predicate
from memsim.isa.readers import Binder
from memsim.isa.registry import opcode
from memsim.isa.results import targets_of
from memsim.state.registers import Poison, Poisoned


def _state_widths(form: Form) -> dict[int, int]:
    return {1: 2} if form.operands and isinstance(form.operands[0], Predicate) else {0: 2}


@opcode("SYNCS", "ARRIVES", results="P?R?", widths=_state_widths, effect=Effect.MEMORY)
def build_mbarrier(form: Form, binder: Binder) -> Any:
    place = effective(form, address_of(form)[1], binder, False)
    answers = [operand.slot for operand in form.operands[:1] if isinstance(operand, Predicate)]
    waits = "PHASECHK" in form.modifiers

    def run(machine: Any, op: Op, active: Any, data: bool) -> None:
        machine.aside("mbarrier operations", active)
        poison = Poison(f"the state of an mbarrier ({form.name})", op)
        for slot in targets_of(form, op.record):
            if slot is not None:
                machine.write(slot, True if waits and slot in answers else poison, active)
        if waits:
            return
        try:
            at = own_shared(place(machine.slots))
        except Poisoned as unknown:
            machine.memory.spoil("shared", unknown.poison.through(op))
            return
        if machine.memory.shared is not None and active is not False:
            machine.memory.shared.forget(at, np.int64, active, poison)

    return run


@opcode("B2R", results="RP?", effect=Effect.LANES)
def build_barrier_result(form: Form, binder: Binder) -> Any:
    """What the last block barrier with a reduction gave: a count, and whether it is not zero."""
    with_predicate = len(form.operands) > 1

    def compute(r: list[Any], warps: Any) -> Any:
        count, holds = warps.barrier_result()
        return (count, holds) if with_predicate else count

    return compute
