"""Names the contents of a kernel's local memory, from how its instructions address it.

ptxas keeps the stack pointer in R1: a spilled register is at a fixed offset from it, an element of an array
is not, nor is the target of a pointer. Source: compiled CUDA code.
"""

from __future__ import annotations

from memsim.arch.units import WORD
from memsim.isa.access import address_of, register_count
from memsim.isa.op import Address, Effect, Flow, Form, Op, Program, Register
from memsim.launch import SPILLS

STACK_POINTER = 1
FRAMES, ANYTHING = "stack", "local memory"


def local_name(program: Program) -> str:
    """`spills`: only spilled registers; `stack`: also what functions save."""
    if any(_leads_away(op) for op in program.ops):
        return ANYTHING
    return FRAMES if any(op.flow is Flow.CALL for op in program.ops) else SPILLS


def spilled_words(program: Program) -> dict[int, int]:
    """The words of the stack that each access to it loads or stores, as bits, by the instruction's index.

    Empty if there is more than spilled registers in local memory: two accesses to the stack are then not
    known to be apart.
    """
    if local_name(program) != SPILLS:
        return {}
    found = {}
    for op in program.ops:
        if op.form.opcode in ("LDL", "STL"):
            first = address_of(op.form)[1].offset // WORD
            if first < 0:
                return {}
            found[op.index] = ((1 << register_count(op.form)) - 1) << first
    return found


def is_part_of_a_word(form: Form) -> bool:
    """Does a load or store move less than a register?"""
    return not {"U8", "S8", "U16", "S16"}.isdisjoint(form.modifiers)


def _leads_away(op: Op) -> bool:
    """Is the address in local memory computed, or the stack pointer used for other than spills?"""
    slots = [one.slot for one in op.form.operands if isinstance(one, Register)]
    if op.effect is Effect.MEMORY and any(space == "local" for _, space in op.touches):
        at = next((one for one in op.form.operands if isinstance(one, Address)), None)
        if at is None:  # a call that cannot be followed
            return True
        fixed = at.base is not None and at.base.slot == STACK_POINTER and at.uniform is None
        return not fixed or STACK_POINTER in slots
    reads = bool(op.reads >> STACK_POINTER & 1 or op.addresses >> STACK_POINTER & 1)
    moves = op.writes >> STACK_POINTER & 1  # R1 = R1 + frame size
    return reads and not moves
