"""mbarriers, as far as PTX is executed: a wait succeeds, and nothing else of an object's state is known."""

from __future__ import annotations

from typing import Any

from memsim.isa.definitions import BoundForm
from memsim.isa.mbarrier import NOTED, synchronizes
from memsim.isa.program import Op
from memsim.state.poison import Poison


@synchronizes("MBARRIER.WAIT", "P <- a")
@synchronizes("MBARRIER", "D? <- a")
def build_operation(form: BoundForm, place: Any) -> Any:
    """`MBARRIER.WAIT P0, [a]`, and any other operation."""
    waits = "WAIT" in form.given

    def run(machine: Any, op: Op, active: Any, data: bool) -> None:
        machine.noted(NOTED, active)
        if waits:
            machine.order.block_barrier(active)
        poison = Poison(f"the state of an mbarrier ({form.name})", op)
        for slot in form.targets:
            if slot is not None:
                machine.write(slot, True if waits else poison, active)

    return run
