"""Barriers: who waits where, who may go on, and who will never come.

In: fragments that execute `bar` or `barrier`. Out: the same fragments, once all threads of
their blocks (or as many as they asked for) have arrived.
Source: PTX ISA, "Parallel Synchronization and Communication Instructions": a barrier without a
thread count waits for all threads of the block that have not ended; with one, arrivals count
by whole warps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.errors import MemsimError
from memsim.ptx.program import Immediate, Instruction, Operand
from memsim.simt.plan import where_in_source
from memsim.state.registers import Poisoned, both, from_array, from_bools, ints, invert, predicate, to_array

if TYPE_CHECKING:
    from memsim.simt.joins import Fragment
    from memsim.simt.machine import Machine


@dataclass(frozen=True)
class Waiting:
    """A fragment at barrier `number`. `asked`: the thread count it gave, or None for the block.

    `votes`: for `bar.red`, each thread's predicate, bool (B, T).
    """

    number: int
    asked: int | None
    fragment: Fragment
    instruction: Instruction
    votes: np.ndarray | None = None


class Barriers:
    """The barriers of the blocks that run now."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.waiting: list[Waiting] = []
        self.arrived: dict[int, np.ndarray] = {}

    def reach(self, instruction: Instruction, fragment: Fragment) -> bool:
        """The running fragment executes a barrier; True if it may go on at once."""
        names = instruction.modifiers
        if "warp" in names:
            return True
        machine = self.machine
        operands = list(instruction.operands)
        reduces = "red" in names
        target = operands.pop(0) if reduces else None
        votes = self.votes(operands.pop(), instruction) if reduces else None
        number = self.uniform(operands[0], instruction) if operands else 0
        asked = self.uniform(operands[1], instruction) if len(operands) > 1 else None
        if "arrive" in names:
            counts = self.arrived.setdefault(number, np.zeros(len(machine.blocks), np.int64))
            counts += self.warps(machine.full(fragment.mask)) * 32
            return True
        everybody = asked is None or asked == machine.threads
        if everybody and machine.is_alone() and number not in self.arrived:
            if votes is not None and target is not None:
                slot = machine.plan.destination(target)
                machine.write(slot, reduced(instruction, votes, machine.full(fragment.mask)), True)
            return True
        self.waiting.append(Waiting(number, asked, fragment, instruction, votes))
        return False

    def votes(self, operand: Operand, instruction: Instruction) -> np.ndarray:
        """Each thread's predicate for a reduction."""
        reader = self.machine.plan.operand_reader(operand, "pred")
        try:
            value = self.machine.slots[reader] if isinstance(reader, int) else reader(self.machine)
            return self.machine.full(predicate(value))
        except Poisoned as unknown:
            raise self.machine.unknown_branch(instruction, unknown.poison) from None

    def uniform(self, operand: Operand, instruction: Instruction) -> int:
        """A barrier's number or count, which has to be the same in all its threads."""
        if isinstance(operand, Immediate):
            return int(operand.value)
        machine = self.machine
        try:
            value = ints(machine.slots[machine.plan.source(operand, "b32")], 32)
        except Poisoned as unknown:
            raise machine.unknown_branch(instruction, unknown.poison) from None
        if type(value) is int:
            return value
        inside = np.broadcast_to(to_array(value), machine.shape)[machine.full(machine.mask)]
        if inside.min() != inside.max():
            raise MemsimError(
                f"{instruction.name} with an operand that differs between threads is not executed",
                **where_in_source(instruction),
            )
        return int(inside[0])

    def warps(self, mask: np.ndarray) -> np.ndarray:
        """How many warps of each block have a thread in a mask (B, T)."""
        count: np.ndarray = mask.reshape(mask.shape[0], -1, 32).any(2).sum(1)
        return count

    def release(self) -> bool:
        """Let the blocks go on whose threads have all arrived; True if there was one."""
        released = False
        for number in sorted({entry.number for entry in self.waiting}):
            entries = [entry for entry in self.waiting if entry.number == number]
            here = self.here(number)
            complete = self.complete(number, entries, here)
            if not complete.any():
                continue
            released = True
            if number in self.arrived:
                self.arrived[number][complete] = 0
                if not self.arrived[number].any():
                    del self.arrived[number]
            cast = [
                entry.votes & self.machine.full(entry.fragment.mask)
                for entry in entries
                if entry.votes is not None
            ]
            votes = np.logical_or.reduce(cast) if cast else None
            before = len(self.machine.ready)
            for entry in entries:
                self.let_go(entry, from_bools(complete[:, None]), votes, here)
            self.machine.joins.unite(before)
        return released

    def here(self, number: int) -> np.ndarray:
        """Threads that wait at a barrier, bool (B, T)."""
        found = np.zeros(self.machine.shape, bool)
        for entry in self.waiting:
            if entry.number == number:
                found |= self.machine.full(entry.fragment.mask)
        return found

    def complete(self, number: int, entries: list[Waiting], here: np.ndarray) -> np.ndarray:
        """Which blocks have all their threads at the barrier, bool (B,)."""
        asked = next((entry.asked for entry in entries if entry.asked is not None), None)
        if asked is None:
            ready = ~(self.machine.full(self.machine.alive) & ~here).any(1)
        else:
            ready = self.warps(here) * 32 + self.arrived.get(number, 0) >= asked
        complete: np.ndarray = ready & here.any(1)
        return complete

    def let_go(self, entry: Waiting, complete: Any, votes: np.ndarray | None, here: np.ndarray) -> None:
        """Let the complete blocks of one waiting fragment go on."""
        machine, fragment = self.machine, entry.fragment
        going = both(fragment.mask, complete)
        if going is False:
            return
        self.waiting.remove(entry)
        if votes is not None:
            slot = machine.plan.destination(entry.instruction.operands[0])
            machine.merge(slot, reduced(entry.instruction, votes, here), going)
        machine.ready.append(replace(fragment, mask=going))
        staying = False if complete is True else both(fragment.mask, invert(complete))
        if staying is not False:
            if fragment.join is not None:
                fragment.join.outstanding += 1
            self.waiting.append(replace(entry, fragment=replace(fragment, mask=staying)))

    def deadlock(self) -> MemsimError:
        """The error for a barrier that some threads never reach."""
        if not self.waiting:
            return MemsimError("threads wait for each other for ever")
        entry, machine = self.waiting[0], self.machine
        here = self.here(entry.number)
        block = int(np.argmax(here.any(1)))
        absent = machine.full(machine.alive)[block] & ~here[block]
        missing = f"; {machine.place((block, int(np.argmax(absent))))} does not come" if absent.any() else ""
        wanted = entry.asked if entry.asked is not None else int(machine.full(machine.alive)[block].sum())
        return MemsimError(
            f"a barrier that some threads never reach: {int(here[block].sum())} of {wanted} threads wait at"
            f" {entry.instruction.name} {entry.number}{missing}",
            **where_in_source(entry.instruction),
        )


def reduced(instruction: Instruction, votes: np.ndarray, present: np.ndarray) -> Any:
    """What `bar.red` gives every thread of a block, from the votes of those present."""
    yes = votes & present
    if "popc" in instruction.modifiers:
        return from_array(yes.sum(1, keepdims=True).astype(np.int64))
    if "and" in instruction.modifiers:
        return from_bools((votes | ~present).all(1, keepdims=True))
    return from_bools(yes.any(1, keepdims=True))
