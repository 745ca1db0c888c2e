"""Lanes that wait at a barrier of a cluster (`UCGABAR_ARV`, `UCGABAR_WAIT`) or of the whole grid
(`cudaCGSynchronize`), or for the phase of an mbarrier (`SYNCS.PHASECHK.TRANS64.TRYWAIT`), and their release.

Groups wait until all threads of all blocks of their cluster, or grid, have arrived as often as they have.
Exited threads do not count. A wait for a phase may time out after a system-dependent time: here only if no
other lane can continue. Source: PTX ISA, `barrier.cluster` and `mbarrier.try_wait`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from memsim.errors import MemsimError
from memsim.isa.control import GRID_HANDLE, GRID_SYNCHRONIZE
from memsim.isa.mbarrier import NOTED, MbarrierLanes, pass_phase
from memsim.isa.op import Predicate
from memsim.isa.program import Op
from memsim.simt.code import Code
from memsim.simt.faults import Deadlock, unknown_branch
from memsim.simt.groups import Groups, Waiting, WaitingLanes
from memsim.simt.machine import Machine
from memsim.state.address_spaces import align
from memsim.state.parts import Mask
from memsim.state.poison import Poisoned
from memsim.state.predicates import both, either, from_bools, invert
from memsim.state.registers import ints, to_array
from memsim.state.sums import Int

# --- clusters and grids ----------------------------------------------------------------------


#: `cudaCGScopeGrid`, which is the grid's handle, too.
SCOPE_GRID = 1


class BarriersOfBlocks(WaitingLanes[Waiting]):
    """Barriers of several blocks. arrivals: of each thread, int64 [B, T]; 0 before the first."""

    what: str

    def __init__(self, machine: Machine, code: Code, groups: Groups) -> None:
        super().__init__(machine, code, groups)
        self.arrivals: np.ndarray | int = 0

    def start(self) -> None:
        super().start()
        self.arrivals = 0

    def others(self, least: np.ndarray) -> np.ndarray:
        """The least of `least`, int64 [B], among the blocks that each block waits for: int64 [B] or [1]."""
        raise NotImplementedError

    def passed(self, mask: Mask) -> None:
        """These lanes have waited."""
        raise NotImplementedError

    def over(self) -> Mask:
        """The lanes for which all threads have arrived as often as they have."""
        alive = self.machine.full(self.machine.alive)
        least = np.where(alive, self.arrivals, np.iinfo(np.int64).max).min(1)
        return from_bools(self.arrivals <= self.others(least)[:, None])

    def arrived(self, active: Mask) -> None:
        """These lanes arrive."""
        self.arrivals = self.arrivals + self.machine.full(active).astype(np.int64)

    def pass_or_wait(self, op: Op, active: Mask) -> int | None:
        """Lanes `active` wait for the others; the rest of the group continues."""
        over = self.over()
        staying = both(active, invert(over))
        self.passed(both(active, over))
        if staying is False:
            return op.index + 1
        self.waiting.append(Waiting(op, staying))
        self.go_behind(op, both(self.machine.mask, invert(staying)))
        return None

    def release(self) -> bool:
        """Release the lanes for which the others have arrived; True if there were some."""
        if not self.waiting:
            return False
        over = self.over()
        entries, self.waiting = self.waiting, []
        released = False
        for entry in entries:
            going, staying = both(entry.mask, over), both(entry.mask, invert(over))
            if going is not False:
                released = True
                self.passed(going)
                self.go_behind(entry.op, going)
            if staying is not False:
                self.waiting.append(Waiting(entry.op, staying))
        return released

    def deadlock(self) -> Deadlock | None:
        """The error for a barrier that some threads never reach; None if no thread waits at one."""
        if not self.waiting:
            return None
        entry = self.waiting[0]
        return Deadlock(
            f"a {self.what} barrier that some threads never reach: {self.machine.places(entry.mask)} wait at"
            f" {entry.op.text}",
            self.machine.wrong(entry.op, entry.mask),
        )


class GridBarrier(BarriersOfBlocks):
    """The barrier of all blocks of a cooperative launch, which all run at once."""

    what = "grid"

    def others(self, least: np.ndarray) -> np.ndarray:
        return np.array([least.min()])

    def passed(self, mask: Mask) -> None:
        if mask is not False:
            self.machine.order.block_barrier(mask)
            self.machine.order.pass_grid(mask)

    def answer(self, name: str, op: Op, active: Mask) -> np.ndarray | None:
        """What the driver's functions of grids return, int64 [B, T]: the grid's handle, or no error.

        None: it is another function. A scope that is not known is taken to be the grid's: there is no other.
        """
        if name not in (GRID_HANDLE, GRID_SYNCHRONIZE):
            return None
        scope: np.ndarray = np.full(self.machine.shape, SCOPE_GRID, np.int64)
        with suppress(Poisoned):
            scope[:] = to_array(self.machine.known_value(op, lambda r: ints(r[4]), active, (4,)))
        is_grid = scope == SCOPE_GRID
        if name == GRID_HANDLE:
            return np.where(is_grid, scope, 0)
        if not is_grid[self.machine.full(active)].all():
            raise self.machine.at(MemsimError(f"{name} of something else than the grid"), op)
        return np.zeros_like(scope)

    def reach(self, op: Op, active: Mask) -> int | None:
        """Lanes `active` arrive, and wait for all others."""
        self.machine.order.arrive_grid(active)
        self.arrived(active)
        return self.pass_or_wait(op, active)


class ClusterBarriers(BarriersOfBlocks):
    """The barriers of the clusters that are running.

    waits: of each thread, int64 [B, T]. It arrives and waits by turns (PTX ISA, `barrier.cluster`).
    """

    what = "cluster"

    def __init__(self, machine: Machine, code: Code, groups: Groups) -> None:
        super().__init__(machine, code, groups)
        self.waits: np.ndarray | int = 0

    def start(self) -> None:
        super().start()
        self.waits = 0

    def _check_turn(self, op: Op, active: Mask, arrived: bool, how: str) -> None:
        wrong = both(active, from_bools(np.atleast_2d(self.arrivals - self.waits != arrived)))
        if wrong is not False:
            at = f"{self.machine.places(wrong)} are at {op.text} of a cluster's barrier, and have not"
            raise Deadlock(f"{at} {how}", self.machine.wrong(op, wrong))

    def arrive(self, op: Op, active: Mask, rest: Mask) -> int:
        """Lanes `active` arrive without waiting."""
        self._check_turn(op, active, False, "waited since they arrived")
        self.machine.order.arrive_cluster(active)
        self.arrived(active)
        return op.index + 1

    def wait(self, op: Op, active: Mask, rest: Mask) -> int | None:
        """Lanes `active` wait for those of their cluster; the rest of the group continues."""
        self._check_turn(op, active, True, "arrived there")
        self.waits = self.waits + self.machine.full(active).astype(np.int64)
        return self.pass_or_wait(op, active)

    def others(self, least: np.ndarray) -> np.ndarray:
        peers = self.machine.peers
        of_cluster: np.ndarray = np.where(peers >= 0, least[peers], np.iinfo(np.int64).max).min(1)
        return of_cluster

    def passed(self, mask: Mask) -> None:
        self.machine.order.pass_cluster(mask)


def whole_clusters(blocks: int, grid: tuple[int, int, int], cluster: tuple[int, int, int]) -> int:
    """The number of blocks rounded up so that no cluster is split, because its blocks access each other's
    memory.

    Blocks are numbered along x first.
    """
    if cluster[2] > 1:
        span = grid[0] * grid[1] * cluster[2]
    else:
        span = grid[0] * cluster[1] if cluster[1] > 1 else cluster[0]
    return align(blocks, span)


# --- phases of mbarriers ---------------------------------------------------------------------

#: How often all waits may time out without a change of any mbarrier before it is a deadlock.
MOST_TRIES = 16


@dataclass(frozen=True, eq=False)
class WaitingForPhase(Waiting):
    """Lanes that wait for the phase of a parity, int64 [B, T]; `address` of their mbarriers [B, T]."""

    address: Int
    parity: Int


class PhaseWaits(WaitingLanes[WaitingForPhase]):
    """The lanes of the running blocks that wait at an mbarrier."""

    def __init__(self, machine: Machine, code: Code, groups: Groups) -> None:
        super().__init__(machine, code, groups)
        self.tries = self.changes = 0

    def start(self) -> None:
        super().start()
        self.tries = self.changes = 0

    def reach(self, op: Op, active: Mask, rest: Mask) -> int | None:
        """Lanes `active` test whether their phase is complete; the rest of the group continues."""
        machine, following = self.machine, op.index + 1
        machine.listener.noted(NOTED, active)
        try:
            address, parity = (machine.known_value(op, read) for read in self.code.phases[op.index])
        except Poisoned as unknown:
            raise unknown_branch(op, unknown.poison) from None
        entry = WaitingForPhase(op, active, address, parity)
        MbarrierLanes(machine, address, active).use(machine, op)
        over = self.over(entry)
        staying = both(active, invert(over))
        if staying is False:
            self.passed(entry, active)
            return following
        self.waiting.append(WaitingForPhase(op, staying, address, parity))
        going = both(active, over)
        if going is not False:
            self.passed(entry, going)
        self.go_behind(op, either(going, rest))
        return None

    def over(self, entry: WaitingForPhase) -> Mask:
        """The lanes whose phase is complete, as a mask."""
        objects = self.machine.mbarriers
        if objects.poison is not None:
            raise unknown_branch(entry.op, objects.poison)
        lanes = MbarrierLanes(self.machine, entry.address, entry.mask)
        try:
            passed = objects.passed(lanes.block, lanes.address, lanes.column(entry.parity) >> 31 & 1)
        except MemsimError as error:
            raise self.machine.at(error, entry.op) from None
        return from_bools(lanes.spread(passed))

    def passed(self, entry: WaitingForPhase, lanes: Mask) -> None:
        """The phase of these lanes is complete."""
        pass_phase(self.machine, MbarrierLanes(self.machine, entry.address, lanes))
        self.answer(entry.op, True, lanes)

    def answer(self, op: Op, value: bool, lanes: Mask) -> None:
        """Set the instruction's result in these lanes."""
        operand = op.form.operands[0]
        if isinstance(operand, Predicate) and operand.slot is not None:
            self.machine.protected = self.groups.read_by_others()
            self.machine.write(operand.slot, value, lanes)

    def release(self) -> bool:
        """Release the lanes whose phases are complete; True if there were some."""
        released = False
        for entry in tuple(self.waiting):
            going = both(entry.mask, self.over(entry))
            if going is not False:
                released = True
                self.go_on(entry, going, True)
        return released

    def give_up(self) -> bool:
        """No other lane can continue: all waits time out; False if that was of no use before."""
        changes = self.machine.mbarriers.changes
        self.tries = 0 if changes != self.changes else self.tries + 1
        self.changes = changes
        if not self.waiting or self.tries > MOST_TRIES:
            return False
        for entry in tuple(self.waiting):
            self.go_on(entry, entry.mask, False)
        return True

    def go_on(self, entry: WaitingForPhase, lanes: Mask, value: bool) -> None:
        """These lanes continue after the wait; registers that those still waiting will read are kept."""
        self.waiting.remove(entry)
        staying = both(entry.mask, invert(lanes))
        if staying is not False:
            self.waiting.append(WaitingForPhase(entry.op, staying, entry.address, entry.parity))
        self.machine.mask = lanes
        if value:
            self.passed(entry, lanes)
        else:
            self.answer(entry.op, False, lanes)
        self.go_behind(entry.op, lanes)

    def deadlock(self) -> Deadlock | None:
        """The error for a phase that never completes; None if no lane waits for one."""
        if not self.waiting:
            return None
        entry, machine = self.waiting[0], self.machine
        lanes = MbarrierLanes(machine, entry.address, entry.mask)
        missing, bytes = machine.mbarriers.lacks(int(lanes.block[0]), int(lanes.address[0]))
        return Deadlock(
            f"a phase of an mbarrier never completes: {machine.places(entry.mask)} wait at "
            f"{entry.op.text}; {_lacking(missing, bytes)}",
            machine.wrong(entry.op, entry.mask),
        )


def _lacking(arrivals: int, bytes: int) -> str:
    """What a phase lacks, in words; fewer than 0 bytes: so many more have come than it expects."""
    said = [
        f"{count} {what} is missing" if count == 1 else f"{count} {what}s are missing"
        for count, what in ((arrivals, "arrival"), (bytes, "byte"))
        if count > 0
    ]
    if bytes < 0:
        said.append(f"{-bytes} bytes more have come than it expects")
    return " and ".join(said) or "nothing is missing in the phase that runs"
