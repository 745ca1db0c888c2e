"""One multiprocessor in time: four schedulers issue what warps execute, and blocks start as others end.

All results of an issue are known at once: when its result arrives, when its operands have been read. So a
warp's next issue has a time from which on it is possible, unless it waits for others at a barrier. Schedulers
act in the order of time, and of their numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from memsim.time.control_codes import COUNTERS
from memsim.time.hardware_units import (
    NEVER,
    InstructionCache,
    MathPipes,
    MemoryPipe,
    MemoryQueue,
    NamedBarriers,
    RegisterBanks,
)
from memsim.time.latencies import Latencies
from memsim.time.timed_instructions import TimedInstruction

#: Why a warp does not issue, by the names of ncu's `smsp__average_warps_issue_stalled_*`.
REASONS = (
    "selected",
    "wait",
    "short_scoreboard",
    "long_scoreboard",
    "barrier",
    "math_pipe_throttle",
    "mio_throttle",
    "dispatch_stall",
    "not_selected",
    "no_instruction",
    "branch_resolving",
)
_NUMBER = {reason: number for number, reason in enumerate(REASONS)}
#: Units that can be switched off, and what then holds.
ABLATIONS = {
    "register banks": "operands are read at once",
    "reuse cache": "every operand is read from its bank",
    "memory queue": "the queue to the memory pipe has no end",
    "tag stage": "the tag stage never holds back the data stage",
    "instruction cache": "all code is there from the start",
    "L1 hits": "every load of global memory misses",
    "greedy": "the youngest warp that is ready issues, not the last one first",
}


@dataclass(frozen=True, slots=True)
class Setup:
    """What does not change in a launch. read_cost, write_cost: as `MemoryPipe`; far: cycles of a miss; start:
    before the first instruction. off: of `ABLATIONS`.
    """

    set_to: Latencies
    read_cost: int
    write_cost: int
    far: int
    start: int
    off: frozenset[str] = field(default_factory=frozenset)


class TimedWarp:
    """A resident warp. ready: from when on nothing of its own holds back its next instruction `one`; base:
    the same of its stall count alone; why: the reason of the time between.
    """

    __slots__ = (
        "array", "at", "base", "block", "blocked", "copies", "counters", "groups", "issued", "line",
        "number", "one", "ready", "reasons", "scheduler", "stream", "why",
    )  # fmt: skip

    one: TimedInstruction

    def __init__(self, block: ResidentBlock, number: int, scheduler: Scheduler, array: np.ndarray) -> None:
        self.block, self.number, self.scheduler = block, number, scheduler
        self.array, self.stream = array, array.data  # an item of `data` is a plain int
        self.counters, self.reasons = [0] * COUNTERS, [0] * COUNTERS
        self.groups: deque[int] = deque()
        self.ready = NEVER
        self.at = self.base = self.issued = self.why = self.blocked = self.copies = 0
        self.line = -1

    def state(self, time: int) -> tuple[object, ...]:
        """All that its future depends on, but for its stream from `at` on."""
        if self.at >= len(self.stream):
            return ()
        return (
            self.one.index,
            self.ready - time if self.ready < NEVER else -1,
            self.issued - time,
            self.base - time,
            self.why,
            max(self.blocked - time, 0),
            *(max(counter - time, 0) for counter in self.counters),
            *self.reasons,
            max(self.copies - time, 0),
            *(max(group - time, 0) for group in self.groups),
        )


class ResidentBlock:
    """A place for a block. alive: warps that have not ended."""

    __slots__ = ("alive", "barriers", "started", "warps")

    def __init__(self) -> None:
        self.warps: list[TimedWarp] = []
        self.alive = self.started = 0
        self.barriers = NamedBarriers()


class Scheduler:
    """One of four: each cycle it issues an instruction of one of its warps, greedily of the last one, else of
    the youngest that is ready. next: when it acts again; held: for so long because of operand reads.
    """

    __slots__ = ("banks", "held", "last", "next", "pipes", "queue", "warps")

    def __init__(self, setup: Setup) -> None:
        set_to, off = setup.set_to, setup.off
        slack = NEVER if "register banks" in off else set_to.bank_slack
        self.banks = RegisterBanks(slack, "reuse cache" not in off)
        size = NEVER if "memory queue" in off else set_to.queue
        self.queue = MemoryQueue(size, set_to.queue_interval)
        self.pipes = MathPipes()
        self.warps: list[TimedWarp] = []  # the youngest first
        self.last: TimedWarp | None = None
        self.next = self.held = 0

    def free_for(self, one: TimedInstruction, time: int) -> int:
        """From when on the unit of an instruction can take it."""
        if not one.pipe:
            return time
        return self.queue.free(time) if one.pipe == "memory" else self.pipes.free_for(one)

    def choose(self, time: int, greedy: bool) -> TimedWarp | None:
        """The warp that issues at `time`; if there is none, `next` says when to ask again."""
        nearest = NEVER
        last = self.last
        if greedy and last is not None and last.ready <= time:
            free = self.free_for(last.one, time)
            if free <= time:
                return last
        blocked: dict[str, int] = {}  # pipes that are known to be busy
        for warp in self.warps:
            at = warp.ready
            if at <= time:
                pipe = warp.one.pipe
                if pipe not in blocked:
                    at = self.free_for(warp.one, time)
                    if at <= time:
                        return warp
                    blocked[pipe] = at
                warp.blocked = at = blocked[pipe]
            if at < nearest:
                nearest = at
        self.next, self.held = nearest, 0
        return None

    def state(self, time: int) -> tuple[object, ...]:
        """All that its future depends on, but for its warps."""
        place = -1 if self.last is None else self.warps.index(self.last) if self.last in self.warps else -2
        asks = max(self.next - time, 0) if self.next < NEVER else -1
        return (
            place, asks, self.held, self.banks.state(time), self.queue.state(time), self.pipes.state(time)
        )  # fmt: skip


class Multiprocessor:
    """Runs blocks that execute the same streams. waits: cycles of all warps by instruction and reason
    [instructions][reasons]; issued: instructions. Both count what was skipped, too. skipped: cycles that no
    time has in it, because they repeated others.
    """

    def __init__(
        self,
        setup: Setup,
        instructions: Sequence[TimedInstruction],
        streams: Sequence[np.ndarray],
        blocks: int,
        resident: int,
        partitions: int = 4,
    ) -> None:
        set_to, off = setup.set_to, setup.off
        self.setup, self.instructions, self.arrays = setup, instructions, streams
        self.greedy = "greedy" not in off
        self.blocks_left = blocks
        self.running = 0
        self.now = self.end = self.issued = self.skipped = 0
        self.schedulers = [Scheduler(setup) for _ in range(partitions)]
        self.memory = MemoryPipe(
            set_to,
            setup.read_cost,
            setup.write_cost,
            setup.far,
            None if "tag stage" in off else set_to.tag_backlog,
        )
        self.code = (
            None if "instruction cache" in off else InstructionCache(set_to.code_line, set_to.code_jump)
        )
        self.waits = [[0] * len(REASONS) for _ in instructions]
        self.resident = [ResidentBlock() for _ in range(min(resident, blocks))]
        number = 0
        for block in self.resident:
            for stream in streams:
                block.warps.append(TimedWarp(block, number, self.schedulers[number % partitions], stream))
                number += 1
            self.start_block(block, setup.start)

    # --- blocks ----------------------------------------------------------------------------

    def start_block(self, block: ResidentBlock, time: int) -> None:
        """The next block of the launch starts at a place."""
        self.blocks_left -= 1
        self.running += 1
        block.started += 1
        block.alive = len(block.warps)
        for warp in block.warps:
            warp.at = 0
            warp.counters[:] = [0] * COUNTERS
            warp.groups.clear()
            warp.copies = warp.blocked = 0
            warp.line = -1
            scheduler = warp.scheduler
            scheduler.warps.insert(0, warp)
            self.prepare(warp, time - 1, time, 0)
            scheduler.next = min(scheduler.next, warp.ready)

    def end_warp(self, warp: TimedWarp, time: int) -> None:
        """A warp has executed all of its stream."""
        warp.ready = NEVER
        warp.scheduler.warps.remove(warp)
        block = warp.block
        block.alive -= 1
        if block.alive:
            self.release(block.barriers.leave(block.alive), time)
            return
        self.running -= 1
        self.end = max(self.end, time + 1)
        if self.blocks_left:
            self.start_block(block, time + self.setup.set_to.next_block)

    # --- warps -----------------------------------------------------------------------------

    def prepare(self, warp: TimedWarp, issued: int, base: int, branch: int) -> None:
        """Set from when on the next instruction of a warp can be issued, and what it waits for."""
        one = warp.one = self.instructions[warp.stream[warp.at]]
        ready, why = base + branch, _BRANCH
        for counter in one.waits:
            if warp.counters[counter] > ready:
                ready, why = warp.counters[counter], warp.reasons[counter]
        if one.copies >= 0 and len(warp.groups) > one.copies:
            arrives = warp.groups[-1 - one.copies]
            if arrives > ready:
                ready, why = arrives, _LONG
        if self.code is not None and one.index // InstructionCache.LINE != warp.line:
            warp.line = one.index // InstructionCache.LINE
            fetched = self.code.fetch(warp.line, base)
            if fetched > ready:
                ready, why = fetched, _NO_INSTRUCTION
        warp.issued, warp.base, warp.ready, warp.why = issued, base, ready, why

    def release(self, warps: Sequence[TimedWarp], time: int) -> None:
        """Warps go on after a barrier."""
        for warp in warps:
            ready = max(warp.base, time + self.setup.set_to.barrier)
            self.prepare(warp, warp.issued, warp.base, 0)
            if ready >= warp.ready:
                warp.ready, warp.why = ready, _BARRIER
            warp.scheduler.next = min(warp.scheduler.next, warp.ready)

    def account(self, warp: TimedWarp, time: int, held: int) -> None:
        """Add the cycles since a warp's last issue to the reasons of its instruction."""
        waits = self.waits[warp.one.index]
        waits[_SELECTED] += 1
        waits[_WAIT] += warp.base - warp.issued - 1
        waits[warp.why] += warp.ready - warp.base
        left = time - warp.ready
        if left:
            blocked = min(max(warp.blocked - warp.ready, 0), left)
            if blocked:
                waits[_MIO if warp.one.pipe == "memory" else _MATH] += blocked
                left -= blocked
            dispatch = min(left, held)
            waits[_DISPATCH] += dispatch
            waits[_NOT_SELECTED] += left - dispatch

    def issue(self, scheduler: Scheduler, warp: TimedWarp, time: int) -> None:
        """A scheduler issues the next instruction of a warp."""
        one = warp.one
        self.account(warp, time, scheduler.held)
        self.issued += 1
        scheduler.last = warp
        scheduler.held = scheduler.banks.read(one, time)
        scheduler.next = time + 1 + scheduler.held
        result = read = time + 1
        if one.pipe == "memory":
            leaves, result = self.memory.take(one, time)
            scheduler.queue.put(time, leaves)
            read = leaves + self.setup.set_to.operands_read
        elif one.pipe:
            result = read = scheduler.pipes.take(one, time)
            result += one.latency
        if one.is_copy:
            warp.copies = max(warp.copies, result)
        elif one.closes:
            warp.groups.append(warp.copies)
        elif one.copies >= 0:
            while len(warp.groups) > one.copies:
                warp.groups.popleft()
        self.count_down(warp, one, result, read)
        warp.at += 1
        if warp.at >= len(warp.stream):
            self.end_warp(warp, time)
            return
        base = time + one.stall
        if one.barrier >= 0:
            warp.issued, warp.base = time, base
            if not one.arrives:
                warp.ready = NEVER
            released = warp.block.barriers.arrive(one, warp, warp.block.alive)
            self.release(released, time)
            if not one.arrives:
                return
        taken = one.branches and warp.stream[warp.at] != one.index + 1
        self.prepare(warp, time, base, self.setup.set_to.branch if taken else 0)

    def count_down(self, warp: TimedWarp, one: TimedInstruction, result: int, read: int) -> None:
        """Set when the counters of an instruction are released."""
        if one.result is not None and result > warp.counters[one.result]:
            warp.counters[one.result] = result
            warp.reasons[one.result] = _NUMBER[one.why]
        if one.operands is not None and read > warp.counters[one.operands]:
            warp.counters[one.operands] = read
            warp.reasons[one.operands] = _SHORT

    # --- time ------------------------------------------------------------------------------

    def step(self) -> TimedWarp | None:
        """The next scheduler acts; the warp that it issues of."""
        scheduler = self.schedulers[0]
        for other in self.schedulers:
            if other.next < scheduler.next:
                scheduler = other
        self.now = time = scheduler.next
        if time >= NEVER:
            return None
        warp = scheduler.choose(time, self.greedy)
        if warp is not None:
            self.issue(scheduler, warp, time)
        return warp

    @property
    def cycles(self) -> int:
        """From the start of the launch to the end of its last block and its last store."""
        return max(self.end, self.memory.drained) + self.skipped


_SELECTED, _WAIT, _SHORT, _LONG, _BARRIER, _MATH, _MIO, _DISPATCH, _NOT_SELECTED, _NO_INSTRUCTION, _BRANCH = (
    range(len(REASONS))
)
