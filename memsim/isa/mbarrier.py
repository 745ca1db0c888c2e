"""mbarriers, synchronization objects in shared memory: `SYNCS` and `ARRIVES`.

A potentially blocking wait (`SYNCS.PHASECHK.TRANS64.TRYWAIT`) is a control-flow instruction
(`memsim.simt.waits`); a non-blocking test is here. Requests to the objects are reported as uncounted.
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

import numpy as np

from memsim.arch.units import WARP
from memsim.errors import MemsimError
from memsim.isa.definitions import BoundForm, Build, define, executes
from memsim.isa.machine_protocol import MemoryMachine
from memsim.isa.memory_access import Run
from memsim.isa.op import Effect, Flow, Trait
from memsim.isa.program import Op
from memsim.isa.readers import IntReader
from memsim.state.mbarriers import Mbarriers, upper_word
from memsim.state.partial import Value
from memsim.state.parts import Mask
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import from_bools
from memsim.state.registers import from_array, to_array
from memsim.state.sums import Int

#: What an arrival counts, (arrivals, bytes): "R" stands for the operand.
_COUNTS: dict[str, tuple[int | str, int | str]] = {
    "": (1, "R"),
    "A1T0": (1, 0),
    "ART0": ("R", 0),
    "A0TR": (0, "R"),
    "A0TX": (0, "-R"),
    "A0T1": (0, 1),
}
#: Wavefronts of no counter here, one each, wherever the objects lie. Source: docs/model.md.
NOTED = "mbarrier operations"
INITIALIZES = "SYNCS.EXCH.64"


def synchronizes(names: str, signature: str, modifiers: str | None = "") -> Callable[[Build], Build]:
    """Register an operation on an mbarrier."""
    return executes(names, signature, modifiers, effect=Effect.MEMORY, steers=True, traits={"": Trait.ORDERS})


@synchronizes("SYNCS", "P?D? <- a V?", None)
def unknown_operation(form: BoundForm, place: IntReader, _: object = None) -> Run:
    def act(machine: MemoryMachine, op: Op, lanes: MbarrierLanes) -> None:
        machine.mbarriers.forget(Poison(f"{op.name} is not executed by the emulator", op))

    return run_on_mbarrier(form, place, act)


@synchronizes(INITIALIZES, "D? <- aD")
def exchange(form: BoundForm, place: IntReader, read: IntReader) -> Run:
    def act(machine: MemoryMachine, op: Op, lanes: MbarrierLanes) -> None:
        bits = lanes.column(read(machine.slots)).astype(np.int64).view(np.uint64)
        machine.mbarriers.initialise(lanes.block, lanes.address, bits)

    return run_on_mbarrier(form, place, act)


@synchronizes("SYNCS.CCTL.IV", "<- a")
def invalidate(form: BoundForm, place: IntReader) -> Run:
    def act(machine: MemoryMachine, op: Op, lanes: MbarrierLanes) -> None:
        machine.mbarriers.invalidate(lanes.block, lanes.address)

    return run_on_mbarrier(form, place, act)


define("SYNCS.PHASECHK.TRANS64.TRYWAIT", "P <- aU", effect=Effect.CONTROL, flow=Flow.WAIT_PHASE, steers=True)


@synchronizes("SYNCS.PHASECHK.TRANS64", "P <- aU")
def test_phase(form: BoundForm, place: IntReader, read: IntReader) -> Run:
    def act(machine: MemoryMachine, op: Op, lanes: MbarrierLanes) -> list[Value]:
        if machine.mbarriers.poison is not None:
            raise Poisoned(machine.mbarriers.poison)
        parity = lanes.column(read(machine.slots)) >> 31
        over = machine.mbarriers.passed(lanes.block, lanes.address, parity)
        passed = from_bools(lanes.spread(over))
        if passed is not False:
            pass_phase(machine, lanes, over)
        return [passed]

    return run_on_mbarrier(form, place, act)


@synchronizes("SYNCS.ARRIVE.TRANS64", "D? <- aW", " ".join(("RED", "OPTOUT", "TMASK", *_COUNTS)))
def arrive(form: BoundForm, place: IntReader, read: IntReader) -> Run:
    counts = [name for name in form.modifiers if name in _COUNTS] or [""]
    if len(counts) > 1:
        return unknown_operation(form, place)
    arrivals, bytes = _COUNTS[counts[0]]
    drops, tells = "OPTOUT" in form.given, "TMASK" in form.given

    def act(machine: MemoryMachine, op: Op, lanes: MbarrierLanes) -> list[Value]:
        operand = lanes.column(read(machine.slots)).astype(np.int64)
        ones = np.ones_like(operand)
        columns = {"R": operand, "-R": -operand}
        count, tx = (columns[one] if isinstance(one, str) else ones * one for one in (arrivals, bytes))
        machine.order.arrive(*lanes.own, lanes.block, machine.mbarriers.columns(lanes.address))
        before = machine.mbarriers.arrive(lanes.block, lanes.address, count, tx, drops, lanes.warp)
        if machine.mbarriers.poison is not None:
            return []
        lower = _word(lanes, lanes.together()) if tells else 0
        return [lower, _word(lanes, upper_word(*before).astype(np.uint32))]

    return run_on_mbarrier(form, place, act)


@synchronizes("ARRIVES.LDGSTSBAR.64.TRANSCNT ARRIVES.LDGSTSBAR.64.ARVCNT", "<- a")
def arrive_with_copies(form: BoundForm, place: IntReader) -> Run:
    """Copies of the lane complete when they are issued, which is one legal order: so does the arrival."""
    arrivals, bytes = (0, -1) if "TRANSCNT" in form.given else (1, 0)

    def act(machine: MemoryMachine, op: Op, lanes: MbarrierLanes) -> None:
        one = np.ones_like(lanes.block)
        machine.order.copies_arrive(*lanes.own, machine.mbarriers.columns(lanes.address))
        machine.mbarriers.arrive(lanes.block, lanes.address, one * arrivals, one * bytes)

    return run_on_mbarrier(form, place, act)


define("ARRIVES", "<- a", None, effect=Effect.MEMORY, steers=True)  # others are not executed


class MbarrierLanes:
    """The executing lanes, as columns: warp [m], lane [m], block [m] and address [m] of the object, and a
    mask.
    """

    def __init__(self, machine: MemoryMachine, address: Int, active: Mask) -> None:
        self.active, self.place = active, address
        self.mask = machine.full(active)
        self.block, self.address = machine.of_shared(address, self.mask)
        row, thread = np.nonzero(self.mask)
        self.warp = row * self.mask.shape[1] + thread // WARP
        self.lane = thread % WARP
        self.own = row, thread // WARP

    def use(self, machine: MemoryMachine, op: Op, initializes: bool = False) -> None:
        """Tell of the access."""
        machine.visit(op, *self.own, self.block)
        near = self.block == self.own[0]
        some = self.active if near.all() else from_bools(self.spread(near))
        machine.order.use_mbarrier(op.index, self.place, some, initializes, True)
        if not near.all():
            far = from_bools(self.spread(~near))
            machine.order.use_mbarrier(op.index, self.place, far, initializes, False)

    def column(self, value: Int) -> np.ndarray:
        """A register's value in these lanes."""
        array: np.ndarray = np.broadcast_to(to_array(value), self.mask.shape)[self.mask]
        return array

    def together(self) -> np.ndarray:
        """The lanes of its warp at a lane's object, as a mask, uint32 [m]."""
        _, group = np.unique(np.stack([self.warp, self.address]), axis=1, return_inverse=True)
        masks = np.zeros(len(self.lane), np.uint32)
        np.bitwise_or.at(masks, group, np.uint32(1) << self.lane.astype(np.uint32))
        return masks[group]

    def spread(self, column: np.ndarray) -> np.ndarray:
        """The column at the positions of its lanes, 0 in others."""
        found = np.zeros(self.mask.shape, column.dtype)
        found[self.mask] = column
        return found


def pass_phase(
    machine: MemoryMachine, lanes: MbarrierLanes, passed: np.ndarray | slice = slice(None)
) -> None:
    """Those of the lanes that `passed` have waited for a phase."""
    rows, warps = lanes.own
    columns = machine.mbarriers.columns(lanes.address)
    machine.order.pass_phase(rows[passed], warps[passed], columns[passed])


#: Performs an operation; returns the results, if known.
Act = Callable[[MemoryMachine, Op, MbarrierLanes], "list[Value] | None"]


def run_on_mbarrier(form: BoundForm, place: IntReader, act: Act) -> Run:
    """Does something to the mbarriers of the executing lanes."""

    def run(machine: MemoryMachine, op: Op, active: Mask, data: bool) -> None:
        if active is False:
            return
        machine.noted(NOTED, active)
        objects: Mbarriers = machine.mbarriers
        given = None
        try:
            lanes = MbarrierLanes(machine, place(machine.slots), active)
            lanes.use(machine, op, op.form.name == INITIALIZES)
            given = act(machine, op, lanes)
        except Poisoned as unknown:
            objects.forget(unknown.poison.through(op))
        except MemsimError as error:
            raise machine.at(error, op) from None
        poison = Poison(f"the state of an mbarrier ({form.name})", op)
        for slot, value in zip(form.targets, given or [poison] * len(form.targets)):
            if slot is not None:  # after `act`, which may read the same register
                machine.write(slot, value, active)

    return run


def _word(lanes: MbarrierLanes, column: np.ndarray) -> Value:
    """A register with these words, uint32 [m]."""
    return from_array(lanes.spread(column.view(np.int32).astype(np.int64)))
