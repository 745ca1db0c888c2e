"""Where the global addresses of a program come from: from which parameters and variables, by data flow."""

from __future__ import annotations

from memsim.isa.op import Address, Constant, Effect, Flow, Op
from memsim.isa.reach import ALL_SPACES, LOCAL, spaces_read
from memsim.simt.control_graph import ControlGraph
from memsim.simt.slot_bits import slots_of

#: The root of an address of unknown origin: a pointer that was loaded from memory.
ANYWHERE = 1
#: The first bit of parameters, one per 8 bytes, and of module variables, one per entry of bank 4.
PARAMETER_BITS, VARIABLE_BITS = 1, 1 + 4096 // 8
#: Before this byte of constant bank 0 are dimensions and windows, and no pointers.
FIRST_POINTER = 0x40


def roots_of_accesses(graph: ControlGraph, live_at: dict[int, int]) -> dict[int, int]:
    """The roots of the global address of each memory instruction, as bits, by the instruction's index.

    live_at: the live slots at the start of each basic block.
    """
    states: dict[int, dict[int, int]] = {0: {}}
    found: dict[int, int] = {}
    general = ~(graph.program.predicates | graph.program.barriers)  # these have no roots
    plans = {
        start: [_root_plan(op, general) for op in graph.ops[start:end]] for start, end in graph.basic_blocks
    }
    work = [0, *(op.targets[0] for op in graph.ops if op.flow is Flow.CALL and op.targets)]
    for start in work:
        states.setdefault(start, {})
    while work:
        start = work.pop()
        state = dict(states[start])
        for index, (own, sources, targets, keeps, address) in enumerate(plans[start], start):
            if address:
                roots = 0
                for slot in address:
                    roots |= state.get(slot, 0)
                found[index] = found.get(index, 0) | roots | (own if not targets else 0)
            if not targets:
                continue
            roots = own
            for slot in sources:
                roots |= state.get(slot, 0)
            for slot in targets:
                kept = roots | (state.get(slot, 0) if keeps else 0)
                if kept:
                    state[slot] = kept
                else:
                    state.pop(slot, None)
        for following in graph.next_basic_blocks[start]:
            live = live_at[following]
            arrives = {slot: roots for slot, roots in state.items() if live >> slot & 1}
            known = states.get(following)
            if known is None:
                states[following] = arrives
                work.append(following)
                continue
            changed = False
            for slot, roots in arrives.items():
                before = known.get(slot, 0)
                if roots | before != before:
                    known[slot] = roots | before
                    changed = True
            if changed and following not in work:
                work.append(following)
    return found


def _root_plan(op: Op, general: int) -> tuple[int, list[int], list[int], bool, list[int]]:
    """(own roots, slots read, slots written, whether old roots are kept, slots of its global address).

    general: the slots that may hold addresses.
    """
    own = 0
    address: list[int] = []
    if op.effect in (Effect.NONE, Effect.CONTROL):
        return 0, [], [], False, []
    if op.effect is Effect.MEMORY and not op.spills:
        for operand in op.form.operands:
            if isinstance(operand, Address):
                for register in (operand.base, operand.uniform):
                    if register is not None and register.slot is not None:
                        address.append(register.slot)
        if _loads_pointers(op, op.writes & general):
            own = ANYWHERE
        return own, [], slots_of(op.writes & general), op.guard is not None, address
    for operand in op.form.operands:
        if isinstance(operand, Constant):
            own |= _constant_roots(operand, 16 if "128" in op.form.modifiers else 8)
    return own, slots_of(op.reads & general), slots_of(op.writes & general), op.guard is not None, []


def _loads_pointers(op: Op, written: int) -> bool:
    """May it load a pointer: 64 bits, or half of one on the stack?"""
    spaces = spaces_read(op)
    return bool(spaces & ALL_SPACES) and (LOCAL in spaces or written.bit_count() > 1) and written != 0


def _constant_roots(operand: Constant, size: int) -> int:
    """Pointers in so many bytes of a constant bank: from sm_100 on, one instruction loads two of them."""
    if operand.register is not None and operand.register.slot is not None:
        return ANYWHERE
    first = {0: PARAMETER_BITS, 4: VARIABLE_BITS}.get(operand.bank)
    if first is None or (operand.bank == 0 and operand.offset < FIRST_POINTER):
        return 0
    word = operand.offset // 8
    return sum(1 << (first + word + more) for more in range(size // 8))
