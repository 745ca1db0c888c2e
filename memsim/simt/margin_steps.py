"""Does any lane come near the point where the last bits of an approximation decide something?

On a chip whose unit was not measured the result of `MUFU` is between two numbers. Instructions that are
monotone in each operand make of such limits those of their results: the lowest and the highest for all
combinations of their operands' limits. If an instruction makes the same of all of them, in each lane and
whenever it is executed, its result does not depend on the chip.

Limits are followed within a basic block: there lanes neither part nor meet.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import product

import numpy as np

from memsim.isa.definitions import Bound
from memsim.isa.documented_errors import limits_between
from memsim.isa.op import Register, Trait, slots_of
from memsim.isa.program import Op
from memsim.isa.readers import PredicateReader
from memsim.simt.gathered_lanes import array_of
from memsim.simt.machine import Limits, Machine, Margins
from memsim.simt.steps import Step
from memsim.state.partial import Value
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import both
from memsim.state.registers import floats

MONOTONE = frozenset((Trait.MONOTONE, Trait.SUMS, Trait.MULTIPLIES, Trait.FUSES, Trait.TO_INTEGER))


def with_margins(
    op: Op,
    guard: PredicateReader | None,
    compute: Bound | None,
    step: Step,
    starts: bool,
    approximates: bool,
) -> Step:
    """A step that follows limits, too.

    compute: what the instruction makes of registers, or its argument if it `approximates`; None: limits end
    at it. starts: they begin with it.
    """

    def run(machine: Machine) -> None:
        margins = machine.margins
        if starts:
            margins.limits = {}
        margins.met.add(op.index)
        moving = [slot for slot in slots_of(op.reads | op.addresses) if slot in margins.limits]
        found: list[list[np.ndarray]] | None = None
        lanes = np.ones((1, 1), bool)
        if compute is not None and (moving or approximates):
            with suppress(Poisoned):
                lanes = machine.full(
                    machine.mask if guard is None else both(machine.mask, guard(machine.slots))
                )
                found = _ends(machine, op, compute, moving, approximates)
        if found is None:
            _forget(margins, op, is_moved=bool(moving) or approximates)
        else:
            for slot, ends in zip(op.meaning.targets, found, strict=True):
                if slot is not None:
                    _write(machine, op, slot, ends, lanes)
        step(machine)

    return run


def _forget(margins: Margins, op: Op, is_moved: bool) -> None:
    """What an instruction writes is not known, if it depends on an approximation, or else exact."""
    if is_moved:
        margins.moved.add(op.index)
    for slot in slots_of(op.writes):
        if is_moved or (slot in margins.limits and op.guard is not None):
            margins.limits[slot] = None
        else:
            margins.limits.pop(slot, None)


def _ends(
    machine: Machine, op: Op, compute: Bound, moving: list[int], approximates: bool
) -> list[list[np.ndarray]] | None:
    """For each result what it is at the limits of what is read; None if others may be between."""
    if not approximates and MONOTONE.isdisjoint(op.traits):
        return None
    choices: list[list[np.ndarray]] = []
    for slot in moving:
        limits = machine.margins.limits[slot]
        if limits is None:
            return None
        read = [one for one in op.form.operands if isinstance(one, Register) and one.slot == slot]
        if any(one.absolute for one in read) and (np.signbit(limits[0]) != np.signbit(limits[1])).any():
            return None
        choices.append([*limits])
    found = []
    for chosen in product(*choices):
        registers = machine.slots.copy()
        for slot, value in zip(moving, chosen):
            registers[slot] = value
        made = compute(registers)
        found.append([made] if approximates or len(op.meaning.targets) == 1 else [*made])
    if approximates:
        arguments = np.stack([np.broadcast_to(one, machine.shape) for (one,) in found])
        between = limits_between(op.form, arguments.min(0), arguments.max(0))
        return None if between is None else [between]
    return [[_array(value, machine) for value in ends] for ends in zip(*found, strict=True)]


def _array(value: Value, machine: Machine) -> np.ndarray:
    found = array_of(value)
    if found is None:
        raise Poisoned(Poison("a limit", None))
    return np.broadcast_to(found, machine.shape)


def _write(machine: Machine, op: Op, slot: int, ends: list[np.ndarray], lanes: np.ndarray) -> None:
    """Note the limits of a register in the executing lanes."""
    margins = machine.margins
    is_float = ends[0].dtype == np.float32
    bits = [(one.view(np.int32) if is_float else one)[lanes] for one in ends]
    is_moved = any((one != bits[0]).any() for one in bits)
    lowest, highest = (pick(ends, 0) for pick in (np.min, np.max))
    if is_float and np.isnan(lowest[lanes]).any():
        _forget(margins, op, is_moved=True)
    elif is_moved:
        margins.moved.add(op.index)
        before: Limits = (
            margins.limits.get(slot, (_held(machine, slot),) * 2) if op.guard is not None else None
        )
        if not is_float or (op.guard is not None and before is None):
            margins.limits[slot] = None
        elif before is None:
            margins.limits[slot] = lowest, highest
        else:
            margins.limits[slot] = np.where(lanes, lowest, before[0]), np.where(lanes, highest, before[1])
    elif op.guard is None:
        margins.limits.pop(slot, None)
    elif (before := margins.limits.get(slot)) is not None:
        margins.limits[slot] = (
            (np.where(lanes, lowest, before[0]), np.where(lanes, highest, before[1])) if is_float else None
        )


def _held(machine: Machine, slot: int) -> np.ndarray:
    value = machine.slots[slot]
    return np.zeros(machine.shape, np.float32) if value is None else floats(value, np.float32)
