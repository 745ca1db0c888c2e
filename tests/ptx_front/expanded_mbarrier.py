"""mbarriers, as far as PTX is executed: a wait succeeds, and nothing else of an object's state is known."""

from __future__ import annotations

from typing import Any

from memsim.isa.mbarrier import NOTED
from memsim.isa.op import Effect, Form, Op, Predicate
from memsim.isa.readers import Binder
from memsim.isa.registry import opcode
from memsim.isa.written_operands import targets_of
from memsim.state.poison import Poison


@opcode("MBARRIER", results="P?R?", effect=Effect.MEMORY, steers=True)
def build_mbarrier(form: Form, binder: Binder) -> Any:
    """`MBARRIER.WAIT P0, [a]`, and any other operation."""
    waits = "WAIT" in form.modifiers

    def run(machine: Any, op: Op, active: Any, data: bool) -> None:
        machine.noted(NOTED, active)
        if waits:
            machine.order.block_barrier(active)
        poison = Poison(f"the state of an mbarrier ({form.name})", op)
        for slot in targets_of(form, op.record):
            if slot is not None:
                passed = waits and isinstance(form.operands[0], Predicate) and slot == form.operands[0].slot
                machine.write(slot, True if passed else poison, active)

    return run
