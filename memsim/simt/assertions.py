"""`assert` of CUDA C++: a call of the runtime's `__assertfail` ends the launch, as it does on a GPU.

In: the call. Out: an error with the text of the assertion, the thread and the source line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memsim.errors import MemsimError
from memsim.ptx.flow import defs
from memsim.ptx.program import Address, CallTarget, Instruction, Register, Symbol
from memsim.simt.plan import Plan, Step, active_lanes, step, where_in_source
from memsim.simt.registry import Unsupported
from memsim.state.registers import Poisoned

if TYPE_CHECKING:
    from memsim.simt.machine import Machine


@step("call")
def failed_assertion(plan: Plan, instruction: Instruction, data: bool) -> Step:
    """`call __assertfail, (message, file, line, function, size)`; every other call is not executed."""
    target = instruction.operands[0]
    assert isinstance(target, CallTarget)
    if not isinstance(target.target, Symbol) or target.target.name != "__assertfail":
        raise Unsupported(instruction.name)
    text = message(plan, target)
    guard = plan.guard(instruction)

    def run(machine: Machine) -> None:
        try:
            active = active_lanes(machine, guard)
        except Poisoned as unknown:
            raise machine.unknown_branch(instruction, unknown.poison) from None
        if active is False:
            return
        raise MemsimError(
            f"assertion{f' `{text}`' if text else ''} failed in {machine.places(active)}",
            **where_in_source(instruction),
        )

    return run


def message(plan: Plan, call: CallTarget) -> str:
    """The text of the asserted expression; empty where the PTX does not say it in one place."""
    parameter = call.arguments[0] if call.arguments else None
    stored = [
        instruction.operands[1]
        for instruction in plan.function.instructions
        if instruction.opcode == "st" and _base(instruction.operands[0]) == parameter
    ]
    texts = {variable.name: variable.init for variable in plan.memory.initial if variable.init}
    operand = stored[0] if len(stored) == 1 else None
    while isinstance(operand, Register):
        writers = [one for one in plan.function.instructions if operand.name in defs(one)]
        is_copy = len(writers) == 1 and writers[0].opcode in ("mov", "cvta")
        operand = writers[0].operands[1] if is_copy else None
    if not isinstance(operand, Symbol) or operand.name not in texts:
        return ""
    return texts[operand.name].split(b"\0")[0].decode(errors="replace")


def _base(operand: object) -> object:
    return operand.base if isinstance(operand, Address) else None
