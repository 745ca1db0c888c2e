"""`mbarrier`: barriers that are objects in shared memory (`cuda::barrier`, copies with a barrier).

In: an instruction. Out: a step. A wait says yes where every thread of its blocks that has not ended is
here: they have all arrived then, and copies are done when issued. Otherwise nobody knows what it says.
Requests to the objects themselves are set aside, uncounted. Left out on purpose: phases and counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memsim.ptx.flow import defs
from memsim.ptx.program import Instruction
from memsim.simt.plan import Plan, Step, active_lanes, step, unexecuted
from memsim.state.registers import Part, Poisoned

if TYPE_CHECKING:
    from memsim.simt.machine import Machine

WAITS = ("try_wait", "test_wait")


@step("mbarrier")
def build_mbarrier(plan: Plan, instruction: Instruction, data: bool) -> Step:
    written = plan.destinations(instruction.operands[0]) if defs(instruction) else []
    waits = instruction.modifiers[0] in WAITS
    guard = plan.guard(instruction)
    poison = unexecuted(instruction)

    def run(machine: Machine) -> None:
        active: bool | Part = machine.mask
        try:
            active = active_lanes(machine, guard)
            machine.listener.aside("mbarrier operations", active)
            result = True if waits and machine.is_alone() else poison
        except Poisoned as unknown:
            result = unknown.poison.through(instruction)
        for slot in written:
            machine.write(slot, result, active)

    return run
