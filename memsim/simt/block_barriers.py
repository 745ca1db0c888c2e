"""Block barriers (`BAR`): waiting threads, their release, and reductions.

Groups wait until all threads of their blocks (or as many as specified) have arrived. Exited threads do not
count. Source: PTX ISA, `bar` and `barrier`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from memsim.arch.units import WARP
from memsim.isa.op import Trait
from memsim.isa.program import Op
from memsim.isa.readers import IntReader
from memsim.simt.code import Code
from memsim.simt.faults import Deadlock, refused_instruction, unknown_branch
from memsim.simt.groups import Groups, Waiting, WaitingLanes
from memsim.simt.machine import ANSWER_SLOT, COUNT_SLOT, Machine
from memsim.state.partial import Value, merge_lanes
from memsim.state.parts import Mask
from memsim.state.poison import Poisoned
from memsim.state.predicates import both, from_bools, invert
from memsim.state.registers import from_array, to_array
from memsim.state.sums import Int


@dataclass(frozen=True)
class WaitingAtBarrier(Waiting):
    """Lanes at barrier `number`. `asked`: the thread count it specified, or None for the block. `votes`: bool
    (B, T).
    """

    number: int
    asked: int | None
    votes: np.ndarray | None


class BlockBarriers(WaitingLanes[WaitingAtBarrier]):
    """The barriers of the blocks that are running."""

    def __init__(self, machine: Machine, code: Code, groups: Groups) -> None:
        super().__init__(machine, code, groups)
        self.arrived: dict[int, np.ndarray] = {}

    def start(self) -> None:
        super().start()
        self.arrived = {}

    def reach(self, op: Op, active: Mask, rest: Mask) -> int | None:
        """Lanes `active` execute a barrier; the rest of the group continues."""
        following = op.index + 1
        votes = self.votes(op) if Trait.REDUCES in op.traits else None
        parts = self.by_barrier(op, active)
        if Trait.ARRIVES in op.traits:
            for number, _, arriving in parts:
                counts = self.arrived.setdefault(number, np.zeros(len(self.machine.blocks), np.int64))
                counts += self.warps(self.machine.full(arriving)) * WARP
                self.machine.order.arrive_named(number, arriving)
            return following
        number, asked, _ = parts[0]
        everybody = asked is None or (asked == self.machine.threads and self.machine.alive is True)
        alone = len(parts) == 1 and rest is False and self.groups.is_alone()
        if everybody and alone and number not in self.arrived:
            if votes is not None:
                self.give(op, votes, self.machine.full(active), True)
            if self.machine.alive is not True:
                self.machine.order.meet([(op.index, active)])
            self.machine.order.block_barrier()
            return following
        self.go_behind(op, rest)
        for number, asked, waiting in parts:
            self.waiting.append(WaitingAtBarrier(op, waiting, number, asked, votes))
        return None

    def by_barrier(self, op: Op, active: Mask) -> list[tuple[int, int | None, Mask]]:
        """(barrier, thread count or None, lanes) for each barrier that the lanes `active` execute.

        Warps may name different ones by a register (`bar.sync warpgroup, 128`), the lanes of a warp may not.
        """
        number, asked = (self.read(op, operand) for operand in self.code.barrier_operands[op.index])
        if type(number) is int and (asked is None or type(asked) is int):
            return [(number, asked, active)]
        here = self.machine.full(active)
        pairs = np.stack([self.of_warps(op, number, here), self.of_warps(op, asked, here)])
        parts: list[tuple[int, int | None, Mask]] = []
        for one, count in np.unique(pairs[:, here], axis=1).T.tolist():
            lanes = from_bools(here & (pairs[0] == one) & (pairs[1] == count))
            parts.append((one, count if asked is not None else None, lanes))
        return parts

    def read(self, op: Op, operand: IntReader | None) -> Int | None:
        """A barrier's number or count; None if the instruction has none."""
        if operand is None:
            return None
        try:
            return self.machine.known_value(op, operand)
        except Poisoned as unknown:
            raise unknown_branch(op, unknown.poison) from None

    def of_warps(self, op: Op, value: Int | None, here: np.ndarray) -> np.ndarray:
        """An operand as int (B, T), 0 if there is none.

        Raises:
            MemsimError: it differs between the lanes `here` of a warp.
        """
        values = np.broadcast_to(to_array(0 if value is None else value), self.machine.shape)
        by_warp, lanes = (one.reshape(len(one), -1, WARP) for one in (values, here))
        least = np.where(lanes, by_warp, np.iinfo(np.int64).max).min(2)
        most = np.where(lanes, by_warp, np.iinfo(np.int64).min).max(2)
        if (lanes.any(2) & (least != most)).any():
            raise refused_instruction(
                op, "has an operand that differs between the lanes of a warp, which is not supported"
            )
        return values

    def votes(self, op: Op) -> np.ndarray:
        """Each thread's predicate in a reduction."""
        try:
            return self.machine.full(self.machine.known_value(op, self.code.votes[op.index]))
        except Poisoned as unknown:
            raise unknown_branch(op, unknown.poison) from None

    def warps(self, mask: np.ndarray) -> np.ndarray:
        """The number of warps of each block with a thread in a mask (B, T)."""
        count: np.ndarray = mask.reshape(mask.shape[0], -1, WARP).any(2).sum(1)
        return count

    def release(self) -> bool:
        """Release the blocks whose threads have all arrived; True if there was one."""
        released = False
        for number in sorted({entry.number for entry in self.waiting}):
            entries = [entry for entry in self.waiting if entry.number == number]
            here = np.zeros(self.machine.shape, bool)
            for entry in entries:
                here |= self.machine.full(entry.mask)
            complete = self.complete(number, entries, here)
            if not complete.any():
                continue
            released = True
            if self.machine.alive is not True or len({entry.op.index for entry in entries}) > 1:
                meet = (
                    (entry.op.index, both(entry.mask, from_bools(complete[:, None]))) for entry in entries
                )
                self.machine.order.meet([(at, mask) for at, mask in meet if mask is not False])
            whole = complete & ~(self.machine.full(self.machine.alive) & ~here).any(1)
            if whole.any():
                self.machine.order.block_barrier(from_bools(whole[:, None]))
            if (complete & ~whole).any() or number in self.arrived:
                self.machine.order.pass_named(number, from_bools(here & complete[:, None]))
            if number in self.arrived:
                self.arrived[number][complete] = 0
                if not self.arrived[number].any():
                    del self.arrived[number]
            cast = [
                entry.votes & self.machine.full(entry.mask) for entry in entries if entry.votes is not None
            ]
            votes = np.logical_or.reduce(cast) if cast else None
            for entry in entries:
                self.let_go(entry, from_bools(complete[:, None]), votes, here)
        return released

    def complete(self, number: int, entries: list[WaitingAtBarrier], here: np.ndarray) -> np.ndarray:
        """Which blocks have all their threads at the barrier, bool (B,)."""
        asked = next((entry.asked for entry in entries if entry.asked is not None), None)
        if asked is None:
            ready = ~(self.machine.full(self.machine.alive) & ~here).any(1)
        else:
            ready = self.warps(here) * WARP + self.arrived.get(number, 0) >= asked
        complete: np.ndarray = ready & here.any(1)
        return complete

    def let_go(
        self, entry: WaitingAtBarrier, complete: Mask, votes: np.ndarray | None, here: np.ndarray
    ) -> None:
        """Release the complete blocks of one waiting group."""
        going = both(entry.mask, complete)
        if going is False:
            return
        self.waiting.remove(entry)
        if votes is not None:
            self.give(entry.op, votes, here, going)
        self.go_behind(entry.op, going)
        staying = False if complete is True else both(entry.mask, invert(complete))
        if staying is not False:
            self.waiting.append(replace(entry, mask=staying))

    def give(self, op: Op, votes: np.ndarray, present: np.ndarray, where: Mask) -> None:
        """Store the result of the reduction for the lanes `where`."""
        yes = votes & present
        if Trait.COUNTS in op.traits:
            count: Value = from_array(yes.sum(1, keepdims=True).astype(np.int64))
            answer: Value = from_bools(yes.any(1, keepdims=True))
        else:
            every = (votes | ~present).all(1, keepdims=True)
            found = every if Trait.ALL_OF in op.traits else yes.any(1, keepdims=True)
            answer, count = from_bools(found), from_array(np.where(found, -1, 0).astype(np.int64))
        slots = self.machine.slots
        slots[COUNT_SLOT] = merge_lanes(where, count, slots[COUNT_SLOT])
        slots[ANSWER_SLOT] = merge_lanes(where, answer, slots[ANSWER_SLOT])

    def deadlock(self) -> Deadlock | None:
        """The error for a barrier that some threads never reach; None if no thread waits at one."""
        if not self.waiting:
            return None
        entry = self.waiting[0]
        here = np.zeros(self.machine.shape, bool)
        for other in self.waiting:
            if other.number == entry.number:
                here |= self.machine.full(other.mask)
        block = int(np.argmax(here.any(1)))
        absent = self.machine.full(self.machine.alive)[block] & ~here[block]
        missing = ""
        if absent.any():
            thread = int(np.argmax(absent))
            elsewhere = (one.op for one in self.waiting if self.machine.full(one.mask)[block, thread])
            op = next(elsewhere, None)
            does = "never arrives" if op is None else f"waits at {op.text}, at {op.where}, instead"
            missing = f"; {self.machine.place((block, thread))} {does}"
        wanted = (
            entry.asked
            if entry.asked is not None
            else int(self.machine.full(self.machine.alive)[block].sum())
        )
        only = np.zeros_like(here)
        only[block] = here[block]
        return Deadlock(
            f"a barrier that some threads never reach: {int(here[block].sum())} of {wanted} threads wait at"
            f" {entry.op.text}{missing}",
            self.machine.wrong(entry.op, from_bools(only)),
        )
