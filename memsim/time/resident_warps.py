"""The warps of resident blocks, their schedulers, and the streams of instructions that blocks execute."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from memsim.time.code_caches import CodeMemory, InstructionCache
from memsim.time.control_codes import AT_BARRIER, COUNTERS
from memsim.time.handovers import BlockHandovers, Handover, PhasesOfBlock
from memsim.time.hardware_units import (
    NEVER,
    MathPipes,
    MemoryQueue,
    NamedBarriers,
    RegisterBanks,
    Way,
)
from memsim.time.latencies import Latencies
from memsim.time.timed_instructions import TimedInstruction

NOTHING_AT_ALL: Mapping[int, Handover] = {}


@dataclass(frozen=True)
class LaunchedBlocks:
    """The blocks of a multiprocessor. known: the streams of the warps of the first blocks. blocks: of all,
    of which those beyond execute what the last `repeated` known ones do. spare: whether it gets one more if
    its blocks end together: then some multiprocessors take two of the last ones, and others none.
    handovers: of the known blocks, if they hand something over.
    """

    known: Sequence[Sequence[np.ndarray]]
    blocks: int
    repeated: int = 1
    spare: bool = False
    handovers: Sequence[BlockHandovers] = ()

    @property
    def warps(self) -> int:
        """Of a block."""
        return len(self.known[0])

    def streams(self, number: int) -> Sequence[np.ndarray]:
        """The streams of a block's warps."""
        return self.known[self.place(number)]

    def handovers_of(self, number: int) -> BlockHandovers:
        """What the warps of a block hand over."""
        if not self.handovers:
            return BlockHandovers([NOTHING_AT_ALL] * self.warps, ())
        return self.handovers[self.place(number)]

    def place(self, number: int) -> int:
        """Which of the known blocks a block is like."""
        beyond = number - len(self.known)
        if beyond < 0:
            return number
        repeated = min(self.repeated, len(self.known))
        return len(self.known) - repeated + beyond % repeated

    @property
    def issues(self) -> int:
        """Instructions of all warps."""
        return sum(len(stream) for number in range(self.blocks) for stream in self.streams(number))

    @cached_property
    def alike_from(self) -> int:
        """The number of the first block from which on all execute the same."""
        last = [id(stream) for stream in self.known[-1]]
        number = len(self.known)
        while number and [id(stream) for stream in self.known[number - 1]] == last:
            number -= 1
        return number


class TimedWarp:
    """A resident warp. ready: from when on nothing of its own holds back its next instruction `one`; base:
    the same of its stall count alone; why: the reason of the time between.
    """

    __slots__ = (
        "array", "at", "base", "block", "blocked", "copies", "counters", "groups", "handovers", "held",
        "is_at_cluster", "is_plain", "issued", "line", "number", "one", "product_groups", "products", "ready",
        "reasons", "scheduler", "stream", "times", "why",
    )  # fmt: skip

    one: TimedInstruction
    is_plain: bool

    def __init__(self, block: ResidentBlock, number: int, scheduler: Scheduler) -> None:
        self.block, self.number, self.scheduler = block, number, scheduler
        self.reasons = [0] * (COUNTERS + 1)
        self.start(np.zeros(0, np.int32))

    def start(self, array: np.ndarray, handovers: Mapping[int, Handover] = NOTHING_AT_ALL) -> None:
        """Begin with another stream. times: how often it executed loads that follow or are followed. held:
        counters of waits for phases that are not over.
        """
        self.handovers, self.is_at_cluster = handovers, False
        self.held: list[int] = []
        self.array, self.stream = array, array.data  # an item of `data` is a plain int
        self.counters = [0] * (COUNTERS + 1)
        self.groups: deque[int] = deque()
        self.product_groups: deque[int] = deque()
        self.times: dict[int, int] = {}
        self.ready = NEVER
        self.at = self.base = self.issued = self.why = self.blocked = self.copies = self.products = 0
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
            *(max(counter - time, 0) for counter in self.counters[:COUNTERS]),
            max(over - time, 0) if (over := self.counters[AT_BARRIER]) < NEVER else -1,
            *self.reasons,
            max(self.copies - time, 0),
            max(self.products - time, 0),
            *(max(group - time, 0) for group in self.groups),
            -1,
            *(max(group - time, 0) for group in self.product_groups),
        )


class ResidentBlock:
    """A place for a block. alive: warps that have not ended. way: to what its warps miss in L1. phases: what
    they wait for beside barriers.
    """

    __slots__ = ("alive", "barriers", "phases", "started", "warps", "way")

    def __init__(self, way: Way) -> None:
        self.warps: list[TimedWarp] = []
        self.alive = self.started = 0
        self.way = way
        self.barriers = NamedBarriers()
        self.phases = PhasesOfBlock(())


class Scheduler:
    """One of four: each cycle it issues an instruction of one of its warps, greedily of the last one, else of
    one of the oldest block that has one ready, of these the one that issued longest ago. next: when it acts
    again. Measured: clocks that warps read, in one block and in two (docs/validation/turns.json).
    """

    __slots__ = ("banks", "code", "last", "next", "pipes", "queue", "warps")

    def __init__(self, set_to: Latencies, off: Collection[str], code: CodeMemory) -> None:
        self.banks = RegisterBanks("register banks" in off)
        size = NEVER if "memory queue" in off else set_to.queue
        self.queue = MemoryQueue(size)
        self.pipes = MathPipes()
        self.code = (
            None if "instruction cache" in off else InstructionCache(code, set_to.code_line, set_to.code_jump)
        )
        self.warps: list[TimedWarp] = []  # in the order of their turns
        self.last: TimedWarp | None = None
        self.next = 0

    def issues(self, warp: TimedWarp) -> None:
        """A warp issues: the others of its block have their turns before it has its next one."""
        if warp is self.last:
            return
        self.last = warp
        warps, block = self.warps, warp.block
        at = warps.index(warp)
        while at + 1 < len(warps) and warps[at + 1].block is block:
            warps[at] = warps[at + 1]
            at += 1
        warps[at] = warp

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
        self.next = nearest
        return None

    def state(self, time: int) -> tuple[object, ...]:
        """All that its future depends on, but for its warps."""
        place = -1 if self.last is None else self.warps.index(self.last) if self.last in self.warps else -2
        asks = max(self.next - time, 0) if self.next < NEVER else -1
        return (
            place, asks, self.banks.state(time), self.queue.state(time), self.pipes.state(time),
            None if self.code is None else self.code.state(time),
        )  # fmt: skip
