"""mbarriers, synchronization objects in shared memory: `SYNCS` and `ARRIVES`.

A potentially blocking wait (`SYNCS.PHASECHK.TRANS64.TRYWAIT`) is a control-flow instruction
(`memsim.simt.phase_waits`); a non-blocking test is here. Requests to the objects are reported as uncounted.
Source: PTX ISA, `mbarrier`, and the code that ptxas 13.0 generates for each of its forms for sm_90a:

    init                            SYNCS.EXCH.64 URZ, [a], pair    the object's 64 bits
    arrive                          SYNCS.ARRIVE.TRANS64.A1T0 R2, [a], RZ
    arrive with a count             SYNCS.ARRIVE.TRANS64.ART0 R2, [a], count
    arrive.noComplete               SYNCS.ARRIVE.TRANS64.TMASK.ART0 R2, [a], count
    arrive.expect_tx                SYNCS.ARRIVE.TRANS64 R2, [a], bytes
    expect_tx, complete_tx          SYNCS.ARRIVE.TRANS64.RED.A0TR, .A0TX RZ, [a], bytes
    arrive_drop                     .OPTOUT beside those of arrive
    of another block                .RED: no result
    cp.async.mbarrier.arrive        SYNCS.ARRIVE.TRANS64.RED.A0T1, then ARRIVES.LDGSTSBAR.64.TRANSCNT
    ... .noinc                      ARRIVES.LDGSTSBAR.64.ARVCNT
    test_wait, try_wait             SYNCS.PHASECHK.TRANS64[.TRYWAIT] P0, [a], parity in bit 31
    inval                           SYNCS.CCTL.IV [a]

An arrival returns the upper word of the object as it was before all lanes of the instruction. The lower word
is 0, or with TMASK the mask of the warp's lanes that arrive at the same object: from it the code after a
`.noComplete` works out the state between the lanes. Both as an H200 does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from memsim.arch.units import WARP
from memsim.errors import MemsimError
from memsim.isa.memory_access import address_of
from memsim.isa.op import Address, Effect, Flow, Form, Op, Predicate
from memsim.isa.readers import Binder
from memsim.isa.registry import opcode, require
from memsim.isa.written_operands import targets_of
from memsim.state.mbarriers import Mbarriers, upper_word
from memsim.state.parts import Part
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import from_bools
from memsim.state.registers import from_array, to_array

#: What an arrival counts, (arrivals, bytes): "R" stands for the operand.
_COUNTS: dict[str, tuple[Any, Any]] = {
    "": (1, "R"),
    "A1T0": (1, 0),
    "ART0": ("R", 0),
    "A0TR": (0, "R"),
    "A0TX": (0, "-R"),
    "A0T1": (0, 1),
}
#: Wavefronts of no counter here, one each, wherever the objects lie. Source: docs/model.md.
NOTED = "mbarrier operations"
Reader = Callable[[list[Any]], Any]


def is_wait(form: Form) -> bool:
    """May it block lanes until a phase completes?"""
    return form.modifiers == ("PHASECHK", "TRANS64", "TRYWAIT")


def _widths(form: Form) -> dict[int, int]:
    if form.operands and isinstance(form.operands[0], Address):  # no result
        return {}
    if "EXCH" in form.modifiers:
        return {0: 2, 2: 2}
    return {} if "PHASECHK" in form.modifiers else {0: 2}


def effect_of(form: Form) -> Effect:
    return Effect.CONTROL if is_wait(form) else Effect.MEMORY


@opcode("SYNCS", results="P?R?", widths=_widths, effect=effect_of, flow=Flow.WAIT_PHASE, steers=True)
def build_mbarrier(form: Form, binder: Binder) -> Any:
    """The operation on the object."""
    names = form.modifiers
    place = binder.short_address(address_of(form)[1])
    after = form.operands[address_of(form)[0] + 1 :]
    act: Act = _forgets
    if names == ("EXCH", "64"):
        act = _exchange(binder.pair(after[0]))
    elif names == ("CCTL", "IV"):
        act = _invalidate
    elif names == ("PHASECHK", "TRANS64"):
        act = _test(binder.unsigned_word(after[0]))
    elif names[:2] == ("ARRIVE", "TRANS64") and set(names[2:]) <= {"RED", "OPTOUT", "TMASK", *_COUNTS}:
        counts = [name for name in names[2:] if name in _COUNTS]
        if len(counts) <= 1:
            act = _arrive(binder.word(after[0]), counts[0] if counts else "", names)
    return _run(form, place, act)


@opcode("ARRIVES", results="", effect=Effect.MEMORY, steers=True)
def build_arrival_of_copies(form: Form, binder: Binder) -> Any:
    """Copies of the lane complete when they are issued, which is one legal order: so does the arrival."""
    counts: dict[tuple[str, ...], tuple[int, int]]
    counts = {("LDGSTSBAR", "64", "TRANSCNT"): (0, -1), ("LDGSTSBAR", "64", "ARVCNT"): (1, 0)}
    require(form.modifiers in counts)
    arrivals, bytes = counts[form.modifiers]
    place = binder.short_address(address_of(form)[1])

    def act(machine: Any, op: Op, lanes: MbarrierLanes) -> None:
        one = np.ones_like(lanes.block)
        machine.order.copies_arrive(*lanes.own, machine.mbarriers.columns(lanes.address))
        machine.mbarriers.arrive(lanes.block, lanes.address, one * arrivals, one * bytes)

    return _run(form, place, act)


class MbarrierLanes:
    """The executing lanes, as columns: warp [m], lane [m], block [m] and address [m] of the object, and a
    mask.
    """

    def __init__(self, machine: Any, address: Any, active: bool | Part) -> None:
        self.active = active
        self.mask = machine.full(active)
        self.block, self.address = machine.of_shared(address, self.mask)
        row, thread = np.nonzero(self.mask)
        self.warp = row * self.mask.shape[1] + thread // WARP
        self.lane = thread % WARP
        self.own = row, thread // WARP

    def column(self, value: Any) -> np.ndarray:
        """A register's value in these lanes."""
        array: np.ndarray = np.broadcast_to(to_array(value), self.mask.shape)[self.mask]
        return array

    def together(self) -> np.ndarray:
        """The lanes of its warp at a lane's object, as a mask, uint32 [m]."""
        _, group = np.unique(np.stack([self.warp, self.address]), axis=1, return_inverse=True)
        masks = np.zeros(len(self.lane), np.uint32)
        np.bitwise_or.at(masks, group, np.uint32(1) << self.lane.astype(np.uint32))
        found: np.ndarray = masks[group]
        return found

    def spread(self, column: np.ndarray) -> np.ndarray:
        """The column at the positions of its lanes, 0 in others."""
        found = np.zeros(self.mask.shape, column.dtype)
        found[self.mask] = column
        return found


def pass_phase(machine: Any, lanes: MbarrierLanes, passed: Any = slice(None)) -> None:
    """Those of the lanes that `passed` have waited for a phase."""
    rows, warps = lanes.own
    columns = machine.mbarriers.columns(lanes.address)
    machine.order.pass_phase(rows[passed], warps[passed], columns[passed])


#: Performs an operation; returns the results by slot, if known.
Act = Callable[[Any, Op, MbarrierLanes], "dict[int, Any] | None"]


def _run(form: Form, place: Reader, act: Act) -> Any:
    def run(machine: Any, op: Op, active: Any, data: bool) -> None:
        if active is False:
            return
        machine.noted(NOTED, active)
        objects: Mbarriers = machine.mbarriers
        given = None
        try:
            given = act(machine, op, MbarrierLanes(machine, place(machine.slots), active))
        except Poisoned as unknown:
            objects.forget(unknown.poison.through(op))
        except MemsimError as error:
            raise machine.at(error, op) from None
        values = given or {}
        poison = Poison(f"the state of an mbarrier ({form.name})", op)
        for slot in targets_of(form, op.record):
            if slot is not None:  # after `act`, which may read the same register
                machine.write(slot, values.get(slot, poison), active)

    return run


def _forgets(machine: Any, op: Op, lanes: MbarrierLanes) -> None:
    machine.mbarriers.forget(Poison(f"{op.name} is not executed by the emulator", op))


def _exchange(read: Reader) -> Act:
    def act(machine: Any, op: Op, lanes: MbarrierLanes) -> None:
        bits = lanes.column(read(machine.slots)).astype(np.int64).view(np.uint64)
        machine.mbarriers.initialise(lanes.block, lanes.address, bits)

    return act


def _invalidate(machine: Any, op: Op, lanes: MbarrierLanes) -> None:
    machine.mbarriers.invalidate(lanes.block, lanes.address)


def _test(read: Reader) -> Act:
    def act(machine: Any, op: Op, lanes: MbarrierLanes) -> dict[int, Any]:
        if machine.mbarriers.poison is not None:
            raise Poisoned(machine.mbarriers.poison)
        parity = lanes.column(read(machine.slots)) >> 31
        over = machine.mbarriers.passed(lanes.block, lanes.address, parity)
        slot, passed = _answer(op.form), from_bools(lanes.spread(over))
        if passed is not False:
            pass_phase(machine, lanes, over)
        return {} if slot is None else {slot: passed}

    return act


def _answer(form: Form) -> int | None:
    operand = form.operands[0]
    return operand.slot if isinstance(operand, Predicate) else None


def _arrive(read: Reader, counts: str, names: tuple[str, ...]) -> Act:
    arrivals, bytes = _COUNTS[counts]
    drops, tells = "OPTOUT" in names, "TMASK" in names

    def act(machine: Any, op: Op, lanes: MbarrierLanes) -> dict[int, Any]:
        operand = lanes.column(read(machine.slots)).astype(np.int64)
        ones = np.ones_like(operand)
        columns = {"R": operand, "-R": -operand}
        count, tx = (columns[one] if isinstance(one, str) else ones * one for one in (arrivals, bytes))
        machine.order.arrive(*lanes.own, lanes.block, machine.mbarriers.columns(lanes.address))
        before = machine.mbarriers.arrive(lanes.block, lanes.address, count, tx, drops, lanes.warp)
        targets = targets_of(op.form, op.record)
        if len(targets) != 2 or machine.mbarriers.poison is not None:
            return {}
        lower = _word(lanes, lanes.together()) if tells else 0
        given = zip(targets, (lower, _word(lanes, upper_word(*before).astype(np.uint32))))
        return {slot: value for slot, value in given if slot is not None}

    return act


def _word(lanes: MbarrierLanes, column: np.ndarray) -> Any:
    """A register with these words, uint32 [m]."""
    return from_array(lanes.spread(column.view(np.int32).astype(np.int64)))
