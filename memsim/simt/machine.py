"""The SIMT machine: all threads of a chunk of blocks, in step, with divergence and barriers.

In: a `Plan`, the launch, a listener. Out: effects on memory, and one call of the listener for
each execution of an access site.

Threads that share a program counter form a fragment. At a branch where they part, the two
halves run one after the other and meet at the branch's immediate post-dominator (a `Join`), as
a warp does. Warps of many blocks run in one fragment as long as they agree; what one warp does
is the same as if it ran alone. A fragment waits at `bar.sync` until all threads of its blocks
have come. Registers of waiting threads are kept by merging, and only where somebody waiting
will still read them (liveness).
Left out on purpose: timing, caches, the order of warps.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from memsim.errors import MemsimError
from memsim.launch import Launch
from memsim.ptx.flow import Flow
from memsim.ptx.program import Instruction, Symbol
from memsim.simt.barriers import Barriers
from memsim.simt.bounds import Bounds
from memsim.simt.joins import Fragment, Join, Joins
from memsim.simt.plan import CONTROL, Plan, Site, Step, where_in_source
from memsim.simt.rounds import Rounds
from memsim.simt.specials import special_value
from memsim.state.memory import SHARED_BASE
from memsim.state.registers import (
    Poison,
    Poisoned,
    Sum,
    both,
    choose,
    from_bools,
    ints,
    invert,
    plus,
    to_array,
    to_bools,
)


@dataclass(frozen=True, slots=True)
class OtherSide:
    """The other end of a copy: the bytes `address`, in the other state space, of the threads in `active`."""

    address: int | Sum
    active: Any


class Listener(Protocol):
    """Who wants to know about accesses."""

    def start_chunk(self, machine: Machine) -> None:
        """A new chunk of blocks begins."""

    def access(
        self,
        site: Site,
        address: int | Sum,
        mask: Any,
        active: Any,
        arrays: frozenset[str],
        other: OtherSide | None = None,
    ) -> None:
        """`site` ran for the threads in `mask`; those in `active` accessed `address` (bytes).

        Shared addresses count from the kernel's first byte of shared memory. `other`: a copy's other end.
        """

    def unknown(self, site: Site, poison: Poison, mask: Any, active: Any) -> None:
        """`site` ran, but its addresses are not known."""

    def aside(self, what: str, active: Any) -> None:
        """Threads `active` read or wrote memory by a way that is not counted; `what` is its name."""

    def unsure(self, what: str) -> None:
        """`what` is the compiler's choice, and so the requests behind it."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Steps from a program counter up to the next control instruction or join point."""

    steps: tuple[Step, ...]
    stop: int
    control: Instruction | None
    size: int


class Machine:
    """Runs chunks of blocks of one launch."""

    def __init__(self, plan: Plan, flow: Flow, launch: Launch, listener: Listener, budget: int) -> None:
        self.plan = plan
        self.flow = flow
        self.launch = launch
        self.listener = listener
        self.memory = plan.memory
        self.threads = launch.warps * 32
        self.budget = self.steps_left = budget
        self.segments = self._segments()
        self.heads = self._heads()
        self.blocks: np.ndarray = np.zeros(0, np.int64)
        self.slots: list[Any] = []
        self.mask: Any = True
        self.alive: Any = True
        self.protected = 0
        self.ready: list[Fragment] = []
        self.joins = Joins(self)
        self.barriers = Barriers(self)
        self.bounds = Bounds(self)
        self.rounds = Rounds(self)

    def _heads(self) -> frozenset[int]:
        """Where branches lead back to: every loop has one."""
        function = self.plan.function
        found = set()
        for index, instruction in enumerate(function.instructions):
            if instruction.opcode == "bra":
                found |= {target for target in (self.target(instruction),) if target <= index}
            elif instruction.opcode == "brx":
                table = instruction.operands[1]
                assert isinstance(table, Symbol)
                targets = {function.labels[name] for name in function.tables[table.name]}
                found |= {target for target in targets if target <= index}
        return frozenset(found)

    def _segments(self) -> dict[int, Segment]:
        """The program cut at labels and after control instructions."""
        instructions = self.plan.function.instructions
        count = len(instructions)
        cuts = {0, count, *self.plan.function.labels.values()}
        cuts |= {i + 1 for i, instruction in enumerate(instructions) if instruction.opcode in CONTROL}
        cuts |= {pc for pc in self.flow.reconvergence.values() if pc is not None}
        ordered = sorted(cuts)
        made = {count: Segment((), count, None, 0)}
        for start, stop in pairwise(ordered):
            last = instructions[stop - 1]
            control = last if last.opcode in CONTROL else None
            steps = [self.plan.steps[i] for i in range(start, stop) if i in self.plan.steps]
            made[start] = Segment(tuple(steps), stop, control, stop - start)
        return made

    # --- running ------------------------------------------------------------------------

    def run(self, blocks: np.ndarray) -> None:
        """Run blocks with these linear numbers (int64 [B]) to their end.

        Raises:
            MemsimError: deadlock, out of bounds, misaligned, endless, or an unknown branch.
        """
        self.blocks = blocks
        self.slots = list(self.plan.slots)
        self.memory.start_chunk(len(blocks), self.threads)
        for slot, name in self.plan.specials.items():
            self.slots[slot] = special_value(name, self)
        whole = self.launch.threads == self.threads
        self.alive = True if whole else from_bools((np.arange(self.threads) < self.launch.threads)[None, :])
        self.steps_left = self.budget
        self.barriers, self.bounds, self.joins = Barriers(self), Bounds(self), Joins(self)
        self.rounds = Rounds(self)
        self.listener.start_chunk(self)
        self.ready = [Fragment(0, self.alive, None)]
        while True:
            while self.ready:
                self.advance(self.ready.pop())
            if not self.barriers.waiting and not self.joins.all:
                return
            if not self.barriers.release() and not self.joins.release_warps():
                raise self.barriers.deadlock()

    def advance(self, fragment: Fragment) -> None:
        """Run a fragment until it parts, waits, meets others or ends."""
        self.mask = fragment.mask
        self.protected = self.read_by_others()
        pc, join = fragment.pc, fragment.join
        while True:
            join, goes_on = self.joins.enter(pc, join)
            if not goes_on:
                return
            segment = self.segments[pc]
            if pc in self.heads and self.rounds.come_again(pc, join):
                if self.joins.release_warps():  # it may be these that the loop waits for
                    self.ready.insert(0, Fragment(pc, self.mask, join))
                    return
                raise self.never_ends(segment)
            self.steps_left -= segment.size
            if self.steps_left < 0:
                raise self.endless(segment)
            for run_step in segment.steps:
                run_step(self)
            control, pc = segment.control, segment.stop
            if control is None:
                if pc == len(self.plan.function.instructions):
                    self.finish(self.mask, join)
                    return
                continue
            following = self.control(control, pc, join)
            if following is None:
                return
            pc = following

    def read_by_others(self) -> int:
        """Register slots (a bit set) that threads outside the running fragment will still read."""
        live = 0
        for other in self.ready:
            live |= self.flow.live_in(other.pc)
        for entry in self.barriers.waiting:
            live |= self.flow.live_in(entry.fragment.pc)
        for join in self.joins.with_somebody:
            live |= self.flow.live_in(join.pc)
        return live

    def control(self, instruction: Instruction, following: int, join: Join | None) -> int | None:
        """Execute a control instruction; gives the next program counter, None if the fragment stops."""
        taken: Any = True
        if instruction.guard is not None:
            guard = self.plan.guard(instruction)
            assert guard is not None
            try:
                taken = guard(self)
            except Poisoned as unknown:
                raise self.unknown_branch(instruction, unknown.poison) from None
        if taken is False:
            return following
        active = both(self.mask, taken)
        if active is False:
            return following
        rest = False if taken is True else both(self.mask, invert(taken))
        if instruction.opcode == "trap":
            raise MemsimError(f"trap executed by {self.places(active)}", **where_in_source(instruction))
        if instruction.opcode in ("ret", "exit"):
            if rest is not False and join is not None:
                join.outstanding += 1
            self.finish(active, join)
            if rest is not False:
                self.ready.append(Fragment(following, rest, join))
            return None
        if instruction.opcode in ("bar", "barrier"):
            return self.barrier(instruction, following, join, active, rest)
        if instruction.opcode == "brx":
            return self.indexed_branch(instruction, following, join, active)
        target = self.target(instruction)
        if rest is False:
            return target
        self.joins.part(following - 1, [(following, rest), (target, active)], join)
        return None

    def barrier(
        self, instruction: Instruction, following: int, join: Join | None, active: Any, rest: Any
    ) -> int | None:
        """`bar`/`barrier`: go on if everybody is here, else wait."""
        if rest is not False:  # a guarded barrier: the others walk past it
            if join is not None:
                join.outstanding += 1
            self.ready.append(Fragment(following, rest, join))
        if self.barriers.reach(instruction, Fragment(following, active, join)):
            if rest is False:
                return following
            self.ready.append(Fragment(following, active, join))
        return None

    def target(self, instruction: Instruction) -> int:
        """The instruction index that a branch names."""
        label = instruction.operands[0]
        assert isinstance(label, Symbol)
        return self.plan.function.labels[label.name]

    def indexed_branch(
        self, instruction: Instruction, following: int, join: Join | None, active: Any
    ) -> int | None:
        """`brx.idx`: each thread goes to the label that its index picks."""
        try:
            index = ints(self.slots[self.plan.source(instruction.operands[0], "b32")], 32)
        except Poisoned as unknown:
            raise self.unknown_branch(instruction, unknown.poison) from None
        table = instruction.operands[1]
        assert isinstance(table, Symbol)
        labels = [self.plan.function.labels[name] for name in self.plan.function.tables[table.name]]
        if type(index) is int:
            return labels[index]
        array = to_array(index)
        ways = []
        for number, target in enumerate(labels):
            mask = both(active, from_bools(array == number))
            if mask is not False:
                ways.append((target, mask))
        if len(ways) == 1:
            return ways[0][0]
        self.joins.part(following - 1, ways, join)
        return None

    def finish(self, mask: Any, join: Join | None) -> None:
        """These threads have ended."""
        self.alive = both(self.alive, invert(mask)) if mask is not True else False
        self.joins.leave(join)

    @property
    def shape(self) -> tuple[int, int]:
        """(blocks of the chunk, threads with padding)."""
        return len(self.blocks), self.threads

    def full(self, mask: Any) -> np.ndarray:
        """A mask written out as bool (B, T)."""
        return np.broadcast_to(to_bools(mask), self.shape)

    def is_alone(self) -> bool:
        """Are all threads that have not ended in the running fragment?"""
        return not (self.ready or self.barriers.waiting or self.joins.with_somebody)

    # --- registers and memory -----------------------------------------------------------

    def write(self, slot: int, value: Any, active: Any) -> None:
        """Write a register in the running threads for which `active` holds."""
        registers = self.slots
        old = registers[slot]
        kept = self.protected >> slot & 1
        if old is None or (active is True and not kept):
            registers[slot] = value
            return
        where = both(self.mask, active) if kept else active
        try:
            registers[slot] = choose(where, value, old)
        except Poisoned as unknown:
            registers[slot] = unknown.poison

    def merge(self, slot: int, value: Any, where: Any) -> None:
        """Write a register in threads of a fragment that does not run now."""
        old = self.slots[slot]
        self.slots[slot] = value if old is None else choose(where, value, old)

    def access(self, site: Site, address: int | Sum, active: Any, other: OtherSide | None = None) -> None:
        """Threads `active` touch `address` at `site`: check it and tell the listener."""
        arrays: frozenset[str] = frozenset()
        if active is not False:
            arrays = self.bounds.check(site.instruction, site.space, site.width, address, active)
        if site.space == "shared":
            address = plus(address, -SHARED_BASE)
        self.listener.access(site, address, self.mask, active, arrays, other)

    def unknown_access(self, site: Site, poison: Poison, active: Any) -> None:
        """An access whose addresses are not known."""
        self.listener.unknown(site, poison, self.mask, active)

    # --- errors -------------------------------------------------------------------------

    def place(self, position: tuple[int, int]) -> str:
        """`thread (x, y, z) of block (x, y, z)` of a (block, thread) position in the chunk."""
        block, thread = int(self.blocks[position[0]]), position[1]

        def coordinates(index: int, shape: tuple[int, int, int]) -> tuple[int, int, int]:
            return index % shape[0], index // shape[0] % shape[1], index // (shape[0] * shape[1])

        return (
            f"thread {coordinates(thread, self.launch.block)} of block {coordinates(block, self.launch.grid)}"
        )

    def places(self, mask: Any) -> str:
        """The first thread of a mask, and how many there are."""
        full = self.full(mask)
        first = np.unravel_index(int(np.argmax(full)), full.shape)
        return f"{self.place((int(first[0]), int(first[1])))} ({int(full.sum())} threads in all)"

    def unknown_branch(self, instruction: Instruction, poison: Poison) -> MemsimError:
        """The error for control flow that depends on a value nobody knows."""
        return MemsimError(
            f"cannot go on: {instruction.name} depends on an unknown value: {poison.story()}",
            **where_in_source(instruction),
        )

    def endless(self, segment: Segment) -> MemsimError:
        """The error for a kernel that does not end."""
        instruction = self.plan.function.instructions[segment.stop - 1]
        return MemsimError(
            f"the kernel has not ended after {self.budget:,} instructions; it is still in this loop",
            hint="--max-steps, or max_steps, allows more if the kernel is really this long",
            **where_in_source(instruction),
        )

    def never_ends(self, segment: Segment) -> MemsimError:
        """The error for a loop in which nothing changes any more."""
        instruction = self.plan.function.instructions[segment.stop - 1]
        return MemsimError(
            "this loop never ends: a round of it leaves everything as it was before",
            hint="a loop that waits for other threads to write cannot be replayed: they run in a fixed order",
            **where_in_source(instruction),
        )

    def refuse(self, what: str) -> None:
        """Stop with an error for something that is not executed.

        Raises:
            MemsimError: always.
        """
        raise MemsimError(what)
