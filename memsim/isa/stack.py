"""Names the contents of a kernel's local memory, from how its instructions address it.

ptxas keeps the stack pointer in R1: a spilled register is at a fixed offset from it, an element of an array
is not, nor is the target of a pointer. Source: compiled CUDA code.
"""

from __future__ import annotations

from memsim.isa.op import Address, Effect, Flow, Op, Program, Register
from memsim.launch import SPILLS

STACK_POINTER = 1
FRAMES, ANYTHING = "stack", "local memory"


def local_name(program: Program) -> str:
    """`spills`: only spilled registers; `stack`: also what functions save."""
    if any(_leads_away(op) for op in program.ops):
        return ANYTHING
    return FRAMES if any(op.flow is Flow.CALL for op in program.ops) else SPILLS


def _leads_away(op: Op) -> bool:
    """Is the address in local memory computed, or the stack pointer used for other than spills?"""
    slots = [one.slot for one in op.form.operands if isinstance(one, Register)]
    if op.effect is Effect.MEMORY and any(space == "local" for _, space in op.touches):
        at = next(one for one in op.form.operands if isinstance(one, Address))
        fixed = at.base is not None and at.base.slot == STACK_POINTER and at.uniform is None
        return not fixed or STACK_POINTER in slots
    reads = bool(op.reads >> STACK_POINTER & 1 or op.addresses >> STACK_POINTER & 1)
    moves = op.writes >> STACK_POINTER & 1  # R1 = R1 + frame size
    return reads and not moves
