"""Where the addresses of a program come from: from which parameters, variables and windows of generic
addresses, by data flow.
"""

from __future__ import annotations

from operator import itemgetter

from memsim.isa.op import Address, Constant, Effect, Flow, Predicate, Special, Symbolic, Trait, slots_of
from memsim.isa.program import ALL_SPACES, LOCAL, Op, Program, spaces_read
from memsim.simt.control_graph import ControlGraph, Sweeps, Where

#: The root of an address of unknown origin: a pointer that was loaded from memory.
ANYWHERE = 1
#: The root of generic addresses of shared memory whose upper half is SR_SWINHI.
SHARED_WINDOW_ROOT = 2
#: The first bit of parameters, one per 8 bytes; of module variables, one per entry of bank 4; and of those
#: whose address is in the code, one each.
PARAMETER_BITS, VARIABLE_BITS, SYMBOL_BITS = 2, 2 + 4096 // 8, 2 + (4096 + 65536) // 8
#: Before this byte of constant bank 0 are dimensions, and no addresses.
FIRST_ADDRESS = 0x18


def roots_of_symbols(program: Program) -> dict[str, int]:
    """The root of each symbol whose address is in the code, as a bit."""
    names = {
        operand.symbol: None
        for op in program.ops
        for operand in op.form.operands
        if isinstance(operand, Symbolic)
    }
    return {name: 1 << (SYMBOL_BITS + number) for number, name in enumerate(names)}


def roots_of_accesses(graph: ControlGraph, live_at: dict[int, int]) -> dict[int, int]:
    """The roots of the global address of each memory instruction, as bits, by the instruction's index.

    A register that was written under a guard keeps its old roots, but not for what the same guard reads in
    the basic block. Functions are followed from each call separately. live_at: the live slots at the start
    of each basic block.
    """
    states: dict[Where, dict[int, int]] = {}
    found: dict[int, int] = {}
    general = ~(graph.program.predicates | graph.program.barriers)  # these have no roots
    symbols = roots_of_symbols(graph.program)
    plans = {
        start: [_root_plan(op, general, symbols) for op in graph.block(start)] for start in graph.basic_blocks
    }
    called = (op.targets[0] for op in graph.ops if op.flow is Flow.CALL and op.targets)
    work = Sweeps[Where](itemgetter(0))
    first: list[Where] = [(0, ()), *((start, None) for start in called)]
    for place in first:
        states.setdefault(place, {})
        work.add(place)
    while work:
        start, callers = place = work.pop()
        state = dict(states[place])
        guarded: dict[Predicate, dict[int, int]] = {}  # the roots in a guard's lanes of what it wrote
        for index, (own, sources, targets, guard, address) in enumerate(plans[start], start):
            own_lanes = guarded.get(guard, {}) if guard is not None else {}
            if address:
                roots = 0
                for slot in address:
                    roots |= own_lanes[slot] if slot in own_lanes else state.get(slot, 0)
                found[index] = found.get(index, 0) | roots | (own if not targets else 0)
            roots = own
            for slot in sources:
                roots |= own_lanes[slot] if slot in own_lanes else state.get(slot, 0)
            for slot in targets:
                kept = roots | (state.get(slot, 0) if guard is not None else 0)
                if kept:
                    state[slot] = kept
                else:
                    state.pop(slot, None)
            written = graph.ops[index].writes
            if guard is not None and targets:
                guarded.setdefault(guard, {})
            if guarded:
                guarded = {
                    other: _under(slots, targets, roots, guard, other)
                    for other, slots in guarded.items()
                    if other.slot is None or not written >> other.slot & 1
                }
        for way in graph.following(start, callers):
            live = live_at.get(way[0])
            if live is None:
                continue
            arrives = {slot: roots for slot, roots in state.items() if live >> slot & 1}
            known = states.get(way)
            if known is None:
                states[way] = arrives
                work.add(way)
                continue
            changed = False
            for slot, roots in arrives.items():
                before = known.get(slot, 0)
                if roots | before != before:
                    known[slot] = roots | before
                    changed = True
            if changed:
                work.add(way)
    return found


def _under(
    slots: dict[int, int], targets: list[int], roots: int, guard: Predicate | None, other: Predicate
) -> dict[int, int]:
    """The roots in the lanes of the guard `other` after a write of `roots` to `targets` under `guard`."""
    if guard == other:
        return {**slots, **dict.fromkeys(targets, roots)}
    if guard is None:
        return {slot: old for slot, old in slots.items() if slot not in targets}
    return {slot: old | roots if slot in targets else old for slot, old in slots.items()}


def _root_plan(
    op: Op, general: int, symbols: dict[str, int]
) -> tuple[int, list[int], list[int], Predicate | None, list[int]]:
    """(own roots, slots read, slots written, guard, slots of its global address).

    general: the slots that may hold addresses. symbols: the roots of those.
    """
    own = 0
    address: list[int] = []
    if op.effect in (Effect.NONE, Effect.CONTROL):
        return 0, [], [], op.guard, []
    if op.effect is Effect.MEMORY and not op.spills:
        addresses = [operand for operand in op.form.operands if isinstance(operand, Address)]
        for place in addresses[-1:] if Trait.READS_MAP in op.traits else addresses:
            for register in (place.base, place.uniform):
                if register is not None and register.slot is not None:
                    address.append(register.slot)
        if _loads_pointers(op, op.writes & general):
            own = ANYWHERE
        return own, [], slots_of(op.writes & general), op.guard, address
    if Trait.TO_INTEGER in op.traits:  # what was a float is an index
        return 0, [], slots_of(op.writes & general), op.guard, []
    for operand in op.form.operands:
        if isinstance(operand, Constant):
            own |= _constant_roots(operand, 4 * max(2, len(op.meaning.targets)))
        elif isinstance(operand, Symbolic):
            own |= symbols[operand.symbol]
        elif isinstance(operand, Special) and operand.name == "SR_SWINHI":
            own |= SHARED_WINDOW_ROOT
    return own, slots_of(op.reads & general), slots_of(op.writes & general), op.guard, []


def _loads_pointers(op: Op, written: int) -> bool:
    """May it load a pointer: 64 bits, or half of one on the stack?"""
    spaces = spaces_read(op)
    return bool(spaces & ALL_SPACES) and (LOCAL in spaces or written.bit_count() > 1) and written != 0


def _constant_roots(operand: Constant, size: int) -> int:
    """Pointers in so many bytes of a constant bank: from sm_100 on, one instruction loads two of them."""
    if operand.register is not None and operand.register.slot is not None:
        return ANYWHERE
    first = {0: PARAMETER_BITS, 4: VARIABLE_BITS}.get(operand.bank)
    if first is None or (operand.bank == 0 and operand.offset < FIRST_ADDRESS):
        return 0
    word = operand.offset // 8
    return sum(1 << (first + word + more) for more in range(size // 8))
