"""Control-flow instructions: where a group continues, or how it diverges.

Waiting is in convergence.py and block_barriers.py.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import reduce

import numpy as np

from memsim.isa.control import ASSERTION, GRID_SYNCHRONIZE, driver_function
from memsim.isa.number_formats import split_words
from memsim.isa.op import PREDICATE, Flow, Trait, slots_of
from memsim.isa.program import Op
from memsim.simt.block_barriers import BlockBarriers
from memsim.simt.code import Code, Condition
from memsim.simt.convergence import Convergence
from memsim.simt.faults import KernelFault, place_in_source, refused_instruction, unknown_branch
from memsim.simt.groups import Groups
from memsim.simt.harmless_branches import PassedBranch, passed_branch
from memsim.simt.machine import Machine
from memsim.simt.waits import ClusterBarriers, GridBarrier, PhaseWaits
from memsim.state.partial import where_known
from memsim.state.parts import Mask, Part
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import both, from_bools, invert
from memsim.state.registers import from_array, plus, to_array
from memsim.state.sums import Int

#: Slots of a function's result, and those that are caller-saved: R4-R15, P0-P6.
RESULT = (4, 5)
SCRATCH = (*range(4, 16), *range(PREDICATE, PREDICATE + 7))


class Control:
    """Executes control-flow instructions for the running group."""

    def __init__(
        self,
        machine: Machine,
        code: Code,
        groups: Groups,
        convergence: Convergence,
        barriers: BlockBarriers,
        phases: PhaseWaits,
        clusters: ClusterBarriers,
        grid: GridBarrier,
    ) -> None:
        self.machine = machine
        self.grid = grid
        self.code = code
        self.groups = groups
        self.convergence = convergence
        self.of_flow: dict[Flow, Callable[[Op, Mask, Mask], int | None]] = {
            Flow.EXIT: self._exit,
            Flow.BRANCH: self._branch,
            Flow.BRANCH_ANY: self._branch_any,
            Flow.BRANCH_DIVERGED: self._branch_diverged,
            Flow.INDEXED: self._indexed,
            Flow.CALL: self._call,
            Flow.RETURN: self._return,
            Flow.SET_BARRIER: convergence.set,
            Flow.WAIT_BARRIER: convergence.wait,
            Flow.LEAVE_BARRIER: convergence.leave,
            Flow.WARP_SYNC: convergence.warp_sync,
            Flow.BLOCK_BARRIER: barriers.reach,
            Flow.WAIT_PHASE: phases.reach,
            Flow.ARRIVE_CLUSTER: clusters.arrive,
            Flow.WAIT_CLUSTER: clusters.wait,
            Flow.TRAP: self._trap,
            Flow.YIELD: convergence.give_way,
            Flow.END_COLLECTIVE: convergence.end_collective,
            Flow.SLEEP: self._sleep,
            Flow.UNKNOWN: self._unknown,
        }

    def execute(self, op: Op) -> int | None:
        """Execute a control-flow instruction; returns the next program counter, None if the group
        stops here.
        """
        assert op.flow is not None
        if op.index in self.code.passed:
            return self._pass(op, self.code.passed[op.index], self.machine.mask)
        try:
            taken = self.taken(op)
        except Poisoned as unknown:
            return self._pass_by(op, unknown.poison)
        if taken is False and op.flow is not Flow.BRANCH_ANY:
            return op.index + 1
        active = both(self.machine.mask, taken)
        if Trait.UNANIMOUS in op.traits:
            others = both(self.machine.mask, invert(taken))
            taken = both(active, invert(self.machine.whole_warps(others)))
            active = taken
        if active is False:
            return op.index + 1
        rest = False if taken is True else both(self.machine.mask, invert(taken))
        return self.of_flow[op.flow](op, active, rest)

    def taken(self, op: Op) -> bool | Part:
        """Where guard and predicate operand of a control-flow instruction hold.

        Raises:
            Poisoned: one of them is unknown in a lane where the other holds.
        """
        conditions = self.code.conditions.get(op.index, [])
        try:
            return self._all_hold(op, conditions)
        except Poisoned:
            if len(conditions) < 2:
                raise
        return self._all_hold(op, conditions[::-1])

    def _all_hold(self, op: Op, conditions: list[Condition]) -> bool | Part:
        """Where conditions hold; each need be known only where those before it do."""
        found: bool | Part = True
        for slots, read in conditions:
            if found is not False:
                found = both(found, self.machine.known_value(op, read, found, slots))
        return found

    def _pass_by(self, op: Op, poison: Poison) -> int | None:
        """Lanes in which a branch is unknown go where its ways end, if neither makes an access: all that the
        ways write is unknown there.

        Raises:
            MemsimError: the branch may decide an access.
        """
        branch = passed_branch(self.code.dataflow, op.index) if op.flow is Flow.BRANCH else None
        if branch is None:
            raise unknown_branch(op, poison)
        mask, registers = self.machine.mask, self.machine.slots
        reads = [read for _, read in self.code.conditions[op.index]]
        taken: bool | Part = False
        known: bool | Part = False
        if self.code.program.ops[branch.end].flow is Flow.WAIT_BARRIER:
            with suppress(Poisoned):
                taken, known = where_known(
                    registers, slots_of(op.reads), lambda: reduce(both, [read(registers) for read in reads])
                )
        lost = both(mask, invert(known))
        for slot in slots_of(branch.writes):
            self.machine.write(slot, poison.through(op), lost)
        sure = both(mask, known)
        ways = [(op.index + 1, both(sure, invert(taken))), (self.target(op), both(sure, taken))]
        return self.groups.part([(self._pass(op, branch, lost), lost), *ways])

    def _pass(self, op: Op, branch: PassedBranch, lanes: Mask) -> int:
        """Lanes are where the ways of a branch meet."""
        for start, stop in branch.counted:
            self.machine.listener.executed(start, stop, lanes)
        self.machine.listener.passed_by(op.where, branch.writes, lanes)
        return branch.end

    def _sleep(self, op: Op, active: Mask, rest: Mask) -> int:
        """Lanes that wait at BSYNC for these may go on: whether they do was not measured."""
        own = self.machine.words_of(active)
        if ((own != 0) & (self.machine.words_of(self.machine.alive) & ~own != 0)).any():
            self.machine.listener.uncertain(
                f"lanes that sleep at {op.where} may not reconverge with the rest of their warp"
            )
        return op.index + 1

    def _exit(self, op: Op, active: Mask, rest: Mask) -> int | None:
        self.finish(active)
        if rest is False:
            return None
        self.machine.mask = rest
        self.machine.protected = self.groups.read_by_others()
        return op.index + 1

    def finish(self, mask: Mask) -> None:
        """These threads have exited."""
        self.machine.alive = both(self.machine.alive, invert(mask)) if mask is not True else False
        self.convergence.check()

    def _branch(self, op: Op, active: Mask, rest: Mask) -> int | None:
        target = self.target(op)
        if rest is False:
            return target
        return self.groups.part([(op.index + 1, rest), (target, active)])

    def target(self, op: Op) -> int:
        """The target of a branch or call."""
        if not op.targets:
            raise refused_instruction(op, "has a target that is not in the listing")
        return op.targets[0]

    def _branch_any(self, op: Op, active: Mask, rest: Mask) -> int | None:
        """A whole group branches if one of its lanes does."""
        going = both(self.machine.mask, self.machine.whole_warps(active))
        return self.groups.part(
            [(op.index + 1, both(self.machine.mask, invert(going))), (self.target(op), going)]
        )

    def _branch_diverged(self, op: Op, active: Mask, rest: Mask) -> int | None:
        """Lanes of warps in which a lane of the mask is elsewhere take the branch, or these do not."""
        read = self.code.values[op.index]
        try:
            members = self.machine.known_value(op, read)
        except Poisoned as unknown:
            raise unknown_branch(op, unknown.poison) from None
        missing = (
            self.machine.lane_words(members)
            & self.machine.words_of(self.machine.alive)
            & ~self.machine.words_of(active)
        ) != 0
        away = both(both(self.machine.mask, self.machine.whole_warps(active)), from_bools(missing))
        ways = [both(self.machine.mask, invert(away)), away]
        if Trait.CONVERGED in op.traits:
            ways.reverse()
        return self.groups.part(list(zip((op.index + 1, self.target(op)), ways, strict=True)))

    def _indexed(self, op: Op, active: Mask, rest: Mask) -> int | None:
        """Each lane branches to the address in its register, relative to the next instruction."""
        read = self.code.values[op.index]
        try:
            where = plus(self.machine.known_value(op, read), op.address + 16)
        except Poisoned as unknown:
            raise unknown_branch(op, unknown.poison) from None
        return self._spread(op, where, active, rest)

    def _spread(self, op: Op, where: Int, active: Mask, rest: Mask) -> int | None:
        """Lanes branch to the addresses `where`, the rest falls through."""
        at = self.code.program.at
        if type(where) is int:
            ways = [(where, active)]
        else:
            array = np.broadcast_to(to_array(where), self.machine.shape)
            found = np.unique(array[self.machine.full(active)])
            ways = [(int(address), both(active, from_bools(to_array(where) == address))) for address in found]
        wrong = next((address for address, _ in ways if address not in at), None)
        if wrong is not None:
            raise refused_instruction(op, f"has target {wrong:#x}, which is not an instruction")
        if op.flow is Flow.INDEXED and op.targets:
            wrong = next((address for address, _ in ways if at[address] not in op.targets), None)
            if wrong is not None:
                raise refused_instruction(op, f"has target {wrong:#x}, which is not among its listed targets")
        return self.groups.part([(op.index + 1, rest), *((at[address], mask) for address, mask in ways)])

    def _call(self, op: Op, active: Mask, rest: Mask) -> int | None:
        name = driver_function(op)
        if name is None and op.index not in self.code.values:
            return self._branch(op, active, rest)
        if name is None and Trait.ABSOLUTE in op.traits:
            name = self.code.called(op, self.machine.slots)
        if name is None:
            return self._return(op, active, rest)
        if name == ASSERTION:
            where = place_in_source(op)
            raise KernelFault(f"assertion failed in {self.machine.places(active)}", "assert", **where)
        self.machine.uncounted(f"{name.removeprefix('v')} call", active)
        answer = self.grid.answer(name, op, active)
        if answer is None:
            answer = self.machine.memory.call(name, self.machine, op, active)
        poison = Poison(f"{name} is a system function without code", op)
        results = dict(zip(RESULT, (poison, poison) if answer is None else split_words(from_array(answer))))
        for slot in SCRATCH:
            self.machine.write(slot, results.get(slot, poison), True if rest is False else active)
        return self.grid.reach(op, active) if name == GRID_SYNCHRONIZE else op.index + 1

    def _return(self, op: Op, active: Mask, rest: Mask) -> int | None:
        read = self.code.values[op.index]
        try:
            where = self.machine.known_value(op, read)
        except Poisoned as unknown:
            raise unknown_branch(op, unknown.poison) from None
        return self._spread(op, where, active, rest)

    def _trap(self, op: Op, active: Mask, rest: Mask) -> int | None:
        raise KernelFault(f"trap executed by {self.machine.places(active)}", "trap", **place_in_source(op))

    def _unknown(self, op: Op, active: Mask, rest: Mask) -> int | None:
        raise refused_instruction(op, "is not executed")
