"""The emulator's main loop: runs all threads of a chunk of blocks in lockstep, with divergence as the code
says.

Registers and memory are in machine.py, scheduling in groups.py, branches in control.py, reconvergence in
convergence.py and block_barriers.py. A group that loops for long lets others run first, because it may wait
for them. Timing, caches and the hardware's order of warps are not modelled.
"""

from __future__ import annotations

import numpy as np

from memsim.errors import MemsimError
from memsim.isa.op import Flow
from memsim.launch import Launch
from memsim.simt.block_barriers import BlockBarriers
from memsim.simt.bounds import Origins
from memsim.simt.clusters import ClusterBarriers
from memsim.simt.code import Code, Segment
from memsim.simt.control_flow import Control
from memsim.simt.convergence import Convergence
from memsim.simt.faults import place_in_source
from memsim.simt.groups import Group, Groups
from memsim.simt.independent_warps import FEWEST, WINDOW, WarpRows, chosen
from memsim.simt.listener import Listener
from memsim.simt.machine import Machine
from memsim.simt.phase_waits import PhaseWaits
from memsim.state.launch_memory import Memory
from memsim.state.registers import Part

#: Loop iterations of a group before other ready groups run first.
PATIENCE = 1000


class Engine:
    """Runs chunks of blocks of one launch.

    budget: instructions that a chunk may execute. allow_out_of_bounds: a load outside of every array is
    counted, and its value is unknown. apart: each warp is a row (independent_warps.py).
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
        apart: bool = False,
    ) -> None:
        self.code = code
        self.apart = apart
        self.behind: list[WarpRows] = []
        self.recent: np.ndarray = np.zeros(0, bool)
        self.window = WINDOW
        self.budget = self.steps_left = budget
        self.machine = Machine(
            code.slots, launch, code.cluster, memory, origins, listener, allow_out_of_bounds
        )
        self.groups = Groups(self.machine, code)
        self.convergence = Convergence(self.machine, code, self.groups)
        self.barriers = BlockBarriers(self.machine, code, self.groups)
        self.phases = PhaseWaits(self.machine, code, self.groups)
        self.clusters = ClusterBarriers(self.machine, code, self.groups)
        self.groups.waits = [self.convergence, self.barriers, self.phases, self.clusters]
        self.control = Control(
            self.machine, code, self.groups, self.convergence, self.barriers, self.phases, self.clusters
        )

    def run(self, blocks: np.ndarray) -> None:
        """Run blocks with these linear numbers (int64 [B]) to completion.

        Raises:
            MemsimError: deadlock, out of bounds, misaligned, endless loop, or a branch on an unknown value.
        """
        machine, groups = self.machine, self.groups
        machine.start(blocks, self.apart)
        self.recent, self.window = np.zeros(len(machine.blocks), bool), WINDOW
        self.steps_left = self.budget
        self.convergence.start()
        self.barriers.start()
        self.phases.start()
        self.clusters.start()
        machine.listener.start_chunk(machine)
        groups.start()
        while True:
            while groups.ready:
                self.advance(self.divided(groups.next()))
            if self.barriers.release() or self.clusters.release() or self.phases.release():
                continue
            if groups.parked:
                groups.ready, groups.parked = groups.parked, []
                continue
            if self.phases.give_up():
                continue
            if not any(waits.waiting for waits in groups.waits):
                if not self.behind:
                    return
                self.take(self.behind.pop())
                continue
            stuck = (waits.deadlock() for waits in (self.phases, self.barriers, self.clusters))
            raise next(filter(None, stuck), None) or self.convergence.deadlock()

    def divided(self, group: Group) -> Group:
        """The group in a chunk without rows that have not run for long, if these are the majority."""
        machine, mask = self.machine, group.mask
        total = len(machine.blocks)
        if not self.apart or total < 2 * FEWEST or machine.memory.local is not None:
            return group
        whole = not isinstance(mask, Part) or mask.array.shape[0] != total
        self.recent |= True if whole else machine.warps_of(mask)[:, 0]
        self.window -= 1
        if self.window:
            return group
        recent, self.window = self.recent, WINDOW
        self.recent = np.zeros(total, bool)
        if 2 * np.count_nonzero(recent) > total:
            return group
        state = self.state([*self.groups.ready, group])
        others = chosen(state, np.flatnonzero(~recent))
        if others.alive is not False:
            self.behind.append(others)
        self.take(chosen(state, np.flatnonzero(recent)))
        return self.groups.ready.pop()

    def state(self, ready: list[Group]) -> WarpRows:
        """The complete state of the running chunk."""
        machine, parked = self.machine, self.groups.parked
        of_lanes = machine.blocks, machine.first, machine.slots, machine.alive
        return WarpRows(*of_lanes, ready, parked, self.convergence.waiting, self.steps_left)

    def take(self, rows: WarpRows) -> None:
        """Continue with these rows as the running chunk."""
        self.machine.go_on(rows.blocks, rows.first, rows.slots, rows.alive)
        self.groups.ready, self.groups.parked = rows.ready, rows.parked
        self.convergence.waiting = rows.meetings
        self.steps_left = rows.steps_left
        self.recent, self.window = np.zeros(len(rows.blocks), bool), WINDOW
        self.machine.listener.start_chunk(self.machine)

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
                raise self.endless(segment)
            machine.listener.executed(pc, segment.stop, machine.mask)
            for step in segment.steps:
                step(machine)
            control, following = segment.control, segment.stop
            if control is not None:
                reached = self.control.execute(control)
                if reached is None:
                    return
                following = reached
            if following >= count:
                self.control.finish(machine.mask)
                return
            if groups.ready:
                is_waiting = control is not None and control.flow in (Flow.YIELD, Flow.SLEEP)
                if following <= pc or is_waiting:
                    turns += PATIENCE // 10 if is_waiting else 1
                    if turns > PATIENCE:
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

    def endless(self, segment: Segment) -> MemsimError:
        """The error for a kernel that does not end."""
        op = self.code.program.ops[segment.stop - 1]
        return MemsimError(
            f"the kernel has not finished after {self.budget:,} instructions; it is still in this loop",
            hint="if the kernel really is this long, allow more by --max-steps (max_steps)",
            **place_in_source(op),
        )
