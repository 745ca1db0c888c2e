"""Steps: the common execution of all instructions, with guards, unknown values and write masks.

A value that is known in some lanes only is computed in these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from memsim.isa.comparisons import Combined, DecidedByLane
from memsim.isa.definitions import Bound
from memsim.isa.memory_access import GENERIC
from memsim.isa.moves import Selection
from memsim.isa.op import PREDICATE, UNIFORM, Effect, Trait, slots_of
from memsim.isa.program import Op, spaces_written
from memsim.isa.readers import PredicateReader, Registers
from memsim.simt.accesses import COUNTED
from memsim.simt.machine import Machine
from memsim.state.partial import Partial, Value, covers, known_in, on_known_lanes, where_known
from memsim.state.parts import Mask, Part
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import both, either, invert
from memsim.state.registers import Sum, choose, content

Step = Callable[[Machine], None]

#: Accesses without an effect but that they are counted, if their data is not wanted.
REPEATABLE = {("load", "shared"), ("store", "shared"), ("ldmatrix", "shared"), ("stmatrix", "shared")}
#: Accesses of an instruction that are kept, as a loop may make several in turn.
MOST_KEPT = 32


def value_step(
    op: Op,
    guard: PredicateReader | None,
    compute: Bound,
    targets: Sequence[int | None],
) -> Step:
    """A step that computes from registers and writes the results."""
    lanes = op.effect is Effect.LANES
    if not op.reads and not lanes:
        compute = computed_once(compute)
    written = [(place, slot) for place, slot in enumerate(targets) if slot is not None]
    many = len(targets) != 1
    if guard is None and not lanes and not many and written:
        return simple_step(op, compute, written[0][1])
    whole = many or not written
    reads = slots_of(op.reads)

    def run(machine: Machine) -> None:
        registers = machine.slots
        active: Mask = True
        known: Mask = True
        why: Poison | None = None
        try:
            if guard is not None:
                active = guard(registers)
                if active is False:
                    return
            if lanes:
                machine.settle()
                machine.executing = both(machine.mask, active)
                if machine.executing is False:
                    return
                result = compute(registers, machine)
            else:
                result = compute(registers)
        except Poisoned as unknown:
            result, active, known = result_on_known_lanes(machine, op, guard, compute, reads, unknown)
            why = unknown.poison.through(op)
            if active is False:
                return
        if isinstance(result, Poison):
            for _, slot in written:
                machine.write(slot, result, active)
            return
        for place, slot in written:
            value = result[place] if whole else result
            if why is not None and not isinstance(value, Poison):
                value = known_in(known, value, why)
            where = of_warps(machine, active) if guard is not None and lanes and is_uniform(slot) else active
            machine.write(slot, value, where)

    return run


def computed_once(compute: Bound) -> Bound:
    """Of an instruction that reads no register, such as an HFMA2 that stands for the move of a constant."""
    found: list[object] = []

    def once(registers: Registers) -> object:
        if not found:
            found.append(compute(registers))
        return found[0]

    return once


def is_uniform(slot: int) -> bool:
    """Is it a uniform register, with one value per warp?"""
    return UNIFORM <= slot < PREDICATE


def of_warps(machine: Machine, active: Mask) -> Mask:
    """All lanes of warps with an executing lane: a uniform register written by one lane changes for the whole
    warp.
    """
    return active if isinstance(active, bool) else machine.whole_warps(both(machine.mask, active))


def result_on_known_lanes(
    machine: Machine,
    op: Op,
    guard: PredicateReader | None,
    compute: Bound,
    reads: list[int],
    unknown: Poisoned,
) -> tuple[Any, Mask, Mask]:
    """(result or poison, lanes, lanes in which it is known) of an instruction with an unknown operand."""
    poison = unknown.poison.through(op)
    registers = machine.slots
    active: Mask = True
    if guard is not None:
        with suppress(Poisoned):
            active = guard(registers)

    def lanes() -> Mask:
        return both(machine.mask, active)

    def run() -> object:
        nonlocal active
        if guard is not None:
            active = guard(registers)
            if active is False:
                return poison
        if op.effect is Effect.LANES:
            machine.executing = lanes()
            return compute(registers, machine)
        return compute(registers)

    try:
        result, known = on_known_lanes(registers, reads, lanes, run, unknown.poison)
    except Poisoned as still:
        result, known = still.poison.through(op), False
    if known is not True and isinstance(compute, (Combined, Selection)):
        result, known = with_decided(compute, registers, reads, result, known, lanes)
    if isinstance(result, Poison):
        return result, active, True
    if known is not True and op.effect is Effect.LANES:  # an unknown lane may change all of its warp
        known = invert(machine.whole_warps(both(lanes(), invert(known))))
        return poison if known is False else result, active, known is False or known
    return result, active, known


def with_decided(
    compute: DecidedByLane,
    registers: Registers,
    reads: list[int],
    result: Any,
    known: Mask,
    lanes: Callable[[], Mask],
) -> tuple[Any, Mask]:
    """(results, lanes in which they are known) with those in which some operands decide alone."""

    def of_lanes(decides: PredicateReader, value: Bound) -> tuple[Mask, object]:
        where = decides(registers)
        return where, value(registers) if where is not False else None

    for slots, decides, value in compute.decided(reads):
        try:
            (decided, found), valid = where_known(registers, slots, partial(of_lanes, decides, value))
        except Poisoned:
            continue
        decided = both(decided, valid)
        if decided is False:
            continue
        if isinstance(result, Poison):
            result, known = found, decided
        elif isinstance(found, tuple):
            result = tuple(choose(decided, new, old) for new, old in zip(found, result))
            known = either(known, decided)
        else:
            result, known = choose(decided, found, result), either(known, decided)
    return result, True if covers(known, lanes()) else known


def simple_step(op: Op, compute: Bound, target: int) -> Step:
    """The common case: one result, no guard."""
    bit = 1 << target
    reads = slots_of(op.reads)

    def run(machine: Machine) -> None:
        registers = machine.slots
        try:
            value = compute(registers)
        except Poisoned as unknown:
            value, _, known = result_on_known_lanes(machine, op, None, compute, reads, unknown)
            value = known_in(known, value, unknown.poison.through(op))
        if machine.protected & bit:
            machine.write(target, value, True)
        else:
            registers[target] = value

    return run


def unknown_effects(machine: Machine, op: Op, poison: Poison, active: Mask) -> None:
    """Everything that an instruction may write becomes unknown, and its accesses are reported.

    For instructions that are not executed, or whose guard is unknown.
    """
    for slot in slots_of(op.writes):
        machine.write(slot, poison, active)
    for made, space in op.touches:
        for where in GENERIC if space == "generic" else (space,):
            machine.lose(op, made, where, 0, poison, active)
    for space in spaces_written(op):
        machine.memory.spoil(space, poison)


def memory_step(op: Op, guard: PredicateReader | None, access: Callable[..., None], data: bool) -> Step:
    """A step that accesses memory in the lanes for which the guard holds."""
    reads = slots_of(op.reads | op.addresses)
    counted = any(space in (*COUNTED, "texture") for _, space in op.touches)

    def run(machine: Machine) -> None:
        registers = machine.slots
        swapped = [(slot, registers[slot]) for slot in reads if isinstance(registers[slot], Partial)]
        if swapped:
            active = machine.mask
            for slot, value in swapped:
                registers[slot] = value.value
            with suppress(Poisoned):
                active = both(machine.mask, guard(registers)) if guard is not None else machine.mask
            for slot, value in swapped:
                if not covers(value.known, active):
                    registers[slot] = value
            access_lanes(machine)
            for slot, value in swapped:
                if registers[slot] is value.value:
                    registers[slot] = value
            return
        access_lanes(machine)

    def access_lanes(machine: Machine) -> None:
        active: Mask = machine.mask
        if guard is not None:
            try:
                active = both(machine.mask, guard(machine.slots))
            except Poisoned as unknown:
                unknown_effects(machine, op, unknown.poison.through(op), machine.mask)
                return
            if active is False:
                if counted and not machine.skip(op):
                    access(machine, op, False, False)
                return
        machine.order.execute(op.index)
        access(machine, op, active, data)

    return run if data or not set(op.touches) <= REPEATABLE else repeating_step(op, run)


def fence_step(op: Op) -> Step:
    """The step of a fence, of all running lanes: no value depends on it, so its guard may be unknown."""
    releases, of_block = Trait.REFRESHES not in op.traits, Trait.FENCES_BLOCK in op.traits
    return lambda machine: machine.order.fence_memory(machine.mask, releases, of_block)


def look_step(op: Op, guard: PredicateReader | None) -> Step:
    """A step that tells which lanes execute an instruction, and with which registers."""

    def run(machine: Machine) -> None:
        active: Mask | None = machine.mask
        if guard is not None:
            try:
                active = both(machine.mask, guard(machine.slots))
            except Poisoned:
                active = None
        machine.order.look(op.index, active, machine.slots)

    return run


def repeating_step(op: Op, access: Step) -> Step:
    """A step whose access depends only on its lanes and on the registers of its address and guard.

    In a loop these often hold what they held before: then the access is the same, and is neither checked nor
    looked up again.
    """
    slots = slots_of(op.addresses)

    def run(machine: Machine) -> None:
        held = [machine.mask, *[machine.slots[slot] for slot in slots]]
        key = tuple(map(content, held))
        made = machine.repeats.setdefault(op.index, {})
        again = made.get(key)
        if again is not None and again():
            return
        machine.again = None
        access(machine)
        if machine.again is not None:
            if len(made) >= MOST_KEPT or not all(map(is_small, held)):
                made.clear()
            made[key] = machine.again

    return run


def is_small(value: Value) -> bool:
    """Whether a register or mask takes little memory."""
    parts = value.parts if isinstance(value, Sum) else [value] if isinstance(value, Part) else []
    return all(part.is_small for part in parts)
