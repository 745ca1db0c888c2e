"""The emulator's main loop: runs all threads of a chunk of blocks in lockstep, with divergence as the code
says.

Registers and memory are in machine.py, scheduling in groups.py, branches in control_flow.py, reconvergence in
convergence.py and block_barriers.py. A group that loops for long lets others run first, because it may wait
for them. Timing, caches and the hardware's order of warps are not modelled.
"""

from __future__ import annotations

import numpy as np

from memsim.access import Listener
from memsim.isa.op import Flow
from memsim.launch import Launch
from memsim.simt.block_barriers import BlockBarriers
from memsim.simt.bounds import Origins
from memsim.simt.code import Code, Segment
from memsim.simt.control_flow import Control
from memsim.simt.convergence import Convergence
from memsim.simt.faults import Deadlock, endless, together
from memsim.simt.gathered_lanes import is_sparse, run_gathered, settle_own, slots_of_lanes
from memsim.simt.groups import Group, Groups
from memsim.simt.machine import Machine
from memsim.simt.standstill import Standstill
from memsim.simt.waits import ClusterBarriers, GridBarrier, PhaseWaits
from memsim.simt.warp_rows import Aside, WarpRows, take_rows
from memsim.state.launch_memory import Memory
from memsim.state.parts import Part

#: Loop iterations of a group before others run first, and before it is asked whether anything changes at all.
PATIENCE, ALONE = 1000, 4000
#: Chunks of this many rows are not divided further: overhead per instruction then exceeds the work of lanes.
FEWEST = 1 << 8
#: Consecutive groups after which rows that were in none of them are put aside.
WINDOW = 3
#: They stay if more than this share of the rows was in these groups. Idle rows cost little where the lanes of
#: the others are gathered.
DENSE, GATHERED = 0.75, 0.25


class Engine:
    """Runs chunks of blocks of one launch.

    budget: instructions that a chunk may execute. allow_out_of_bounds: a load outside of every array is
    counted, its value unknown. apart: rows of a chunk if each warp is one (prepared_launch.py), or 0.
    divides: whether those that run for long may leave the others.
    """

    def __init__(
        self,
        code: Code,
        memory: Memory,
        origins: Origins,
        launch: Launch,
        listener: Listener,
        budget: int,
        allow_out_of_bounds: bool = False,
        apart: int = 0,
        divides: bool = True,
    ) -> None:
        self.code = code
        self.apart, self.divides = apart, divides and apart > 0
        self.aside = Aside(apart)
        self.more_to_come = True
        self.recent: np.ndarray = np.zeros(0, bool)
        self.window = WINDOW
        self.is_dense = False
        self.budget = self.steps_left = budget
        self.entered: set[int] = set()
        self.machine = Machine(
            code.slots, launch, code.cluster, memory, origins, listener, allow_out_of_bounds
        )
        self.groups = Groups(self.machine, code, eager=apart > 0)
        self.convergence = Convergence(self.machine, code, self.groups)
        self.barriers = BlockBarriers(self.machine, code, self.groups)
        self.phases = PhaseWaits(self.machine, code, self.groups)
        self.clusters = ClusterBarriers(self.machine, code, self.groups)
        self.grid = GridBarrier(self.machine, code, self.groups)
        waits = self.convergence, self.barriers, self.phases, self.clusters, self.grid
        self.groups.waits = [*waits]
        self.standstill = Standstill(self.machine, code, self.groups)
        self.begun, self.blocks = 0, launch.blocks
        self.control = Control(self.machine, code, self.groups, *waits)

    def run(self, blocks: np.ndarray) -> None:
        """Run blocks with these linear numbers (int64 [B]); if warps are rows, some may be left for `finish`.

        Raises:
            MemsimError: deadlock, out of bounds, misaligned, endless loop, or a branch on an unknown value.
        """
        machine = self.machine
        machine.start(blocks, self.apart > 0)
        self.recent, self.window = np.zeros(len(machine.rows), bool), WINDOW
        self.steps_left = self.budget
        self.begun += len(blocks)
        self.standstill.start()
        for waits in self.groups.waits:
            waits.start()
        machine.listener.start_chunk(machine.chunk)
        self.groups.start()
        self.run_chunk()
        while self.apart and (rows := self.aside.full()):
            self.take(rows)
            self.run_chunk()

    def reached(self) -> set[int]:
        """The instructions that warps have come to, by index."""
        segments = self.code.segments
        return {index for start in self.entered for index in range(start, segments[start].stop)}

    def finish(self) -> None:
        """Run all that was put aside to its end; raises as `run`."""
        self.more_to_come = False
        while rows := self.aside.rest():
            self.take(rows)
            self.run_chunk()

    def run_chunk(self) -> None:
        """Run until everybody has ended or is put aside."""
        groups = self.groups
        while True:
            while groups.ready:
                group = self.divided(groups.next())
                if group is not None:
                    self.advance(group)
            if any(one.release() for one in (self.barriers, self.clusters, self.grid, self.phases)):
                continue
            if groups.parked:
                if self.standstill.is_reached(self.convergence.live()):
                    raise self.standstill.error(self.begun == self.blocks, self.stuck())
                groups.ready, groups.parked = groups.parked, []
                continue
            if self.phases.give_up():
                continue
            if not any(waits.waiting for waits in groups.waits):
                return
            raise together(self.stuck())

    def stuck(self) -> list[Deadlock]:
        """Who waits for whom."""
        waits = self.phases, self.barriers, self.clusters, self.grid, self.convergence
        return [*filter(None, (one.deadlock() for one in waits))]

    def divided(self, group: Group) -> Group | None:
        """The group in a chunk without rows that have not run for long, if these are many.

        None if so few rows remain that they wait for those of other chunks.
        """
        machine, mask = self.machine, group.mask
        total = len(machine.rows)
        if total < 2 * FEWEST or not self.divides or machine.memory.local is not None:
            return group
        whole = not isinstance(mask, Part) or mask.shape[0] != total
        self.recent |= True if whole else machine.warps_of(mask)[:, 0]
        self.window -= 1
        if self.window:
            return group
        recent, self.window = self.recent, WINDOW
        self.recent = np.zeros(total, bool)
        running = np.count_nonzero(recent)
        most, self.is_dense = DENSE if self.is_dense else GATHERED, False
        if running > most * total:
            return group
        state = self.state([*self.groups.ready, group])
        alive = machine.full(machine.alive).any(1)
        others = np.flatnonzero(~recent & alive)
        if len(others):
            self.aside.add(take_rows(state, others))
        rest = take_rows(state, np.flatnonzero(recent))
        if self.more_to_come and 2 * running < self.apart:
            self.aside.add(rest)
            self.groups.ready, self.groups.parked, self.convergence.waiting = [], [], {}
            return None
        self.take(rest)
        return self.groups.ready.pop()

    def state(self, ready: list[Group]) -> WarpRows:
        """The state of the running chunk that is still needed."""
        machine, parked = self.machine, self.groups.parked
        live = self.convergence.live()
        for group in (*ready, *parked):
            live |= self.code.live(group.pc)
        slots = [held if live >> slot & 1 else None for slot, held in enumerate(machine.slots)]
        of_lanes = machine.rows, slots, machine.alive
        return WarpRows(*of_lanes, ready, parked, self.convergence.waiting, self.steps_left)

    def take(self, rows: WarpRows) -> None:
        """Continue with these rows as the running chunk."""
        self.machine.go_on(rows.rows, rows.slots, rows.alive)
        self.machine.own = slots_of_lanes(rows.slots)
        self.groups.ready, self.groups.parked = rows.ready, rows.parked
        self.convergence.waiting = rows.meetings
        self.steps_left = rows.steps_left
        self.recent, self.window = np.zeros(len(rows), bool), WINDOW
        self.machine.listener.start_chunk(self.machine.chunk)

    def advance(self, group: Group) -> None:
        """Run a group until it diverges, waits, exits, or others come first."""
        machine, groups = self.machine, self.groups
        machine.mask, pc, turns = group.mask, group.pc, group.turns
        machine.protected = groups.read_by_others()
        segments, count = self.code.segments, len(self.code.program.ops)
        while True:
            segment = segments[pc]
            self.steps_left -= segment.size
            if self.steps_left < 0:
                raise endless(self.budget, self.code.program.ops[segment.stop - 1], self.stuck())
            machine.listener.executed(pc, segment.stop, machine.mask)
            self.entered.add(pc)
            if segment.steps:
                self.run_steps(pc, segment)
            control, following = segment.control, segment.stop
            if control is not None:
                settle_own(machine, -1 if control.flow is Flow.CALL else control.reads)
                reached = self.control.execute(control)
                if reached is None:
                    return
                following = reached
            if following >= count:
                self.control.finish(machine.mask)
                return
            is_waiting = control is not None and control.flow in (Flow.YIELD, Flow.SLEEP)
            if following <= pc or is_waiting:
                turns += PATIENCE // 10 if is_waiting else 1
                are_others = groups.ready or groups.parked
                if turns > (PATIENCE if are_others else ALONE):
                    if are_others:
                        machine.listener.uncertain(
                            f"the iteration count of the loop at {self.code.program.ops[pc].where} depends "
                            "on when other lanes, for which it waits, are done"
                        )
                    groups.parked.append(Group(following, machine.mask))
                    return
            if any(other.pc <= following for other in groups.ready):
                groups.ready.append(Group(following, machine.mask, turns))
                return
            pc = following

    def run_steps(self, pc: int, segment: Segment) -> None:
        """Run the steps of the segment at `pc` for the running group."""
        machine = self.machine
        by_lane = self.apart and self.code.by_lane(pc)
        if by_lane and machine.memory.local is None and is_sparse(machine.mask, machine.shape):
            run_gathered(machine, segment.steps, *by_lane)
            return
        settle_own(machine)
        self.is_dense = True
        machine.before = {}
        for step in segment.steps:
            step(machine)
        machine.settle()
