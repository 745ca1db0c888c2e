"""The units of a multiprocessor, each a class with what it needs to be asked and told.

A unit says from when on it can take an instruction (`free`), and when what it was given is done. Times are
cycles since the start of the launch; `Stage`s count in parts of a cycle (`PARTS`). `state` is all that their
future depends on, relative to a time.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from memsim.time.latencies import Latencies
from memsim.time.timed_instructions import PARTS, TimedInstruction

#: A time that never comes.
NEVER = 1 << 60


class Stage:
    """A unit that serves one after the other. free: when it has served all, in parts of a cycle."""

    __slots__ = ("free", "served")

    def __init__(self) -> None:
        self.free = self.served = 0

    def serve(self, time: int, cost: int) -> tuple[int, int]:
        """(start, end) in cycles of what comes at `time` and takes `cost` parts of a cycle."""
        start = max(self.free, time * PARTS)
        self.free = start + cost
        self.served += cost
        return -(-start // PARTS), -(-self.free // PARTS)

    def state(self, time: int) -> int:
        return max(self.free - time * PARTS, 0)


class MathPipes:
    """The pipes of a partition for arithmetic. Of the FMA pipe's halves one multiplies integers."""

    __slots__ = ("free",)

    def __init__(self) -> None:
        self.free = dict.fromkeys(
            ("fma heavy", "fma light", "alu", "fp64", "xu", "uniform", "tensor", "special"), 0
        )

    def free_for(self, one: TimedInstruction) -> int:
        """From when on it can take an instruction."""
        free = self.free
        if one.pipe == "fma":
            return min(free["fma heavy"], free["fma light"])
        if one.pipe == "fma both":
            return max(free["fma heavy"], free["fma light"])
        return free[one.pipe]

    def take(self, one: TimedInstruction, time: int) -> int:
        """Execute an instruction from `time` on; when it leaves the pipe."""
        free, pipe, end = self.free, one.pipe, time + one.busy
        if pipe == "fma":
            pipe = "fma light" if free["fma light"] <= free["fma heavy"] else "fma heavy"
        elif pipe == "fma both":
            free["fma light"] = end
            pipe = "fma heavy"
        free[pipe] = end
        return end

    def state(self, time: int) -> tuple[int, ...]:
        return tuple(max(free - time, 0) for free in self.free.values())


class RegisterBanks:
    """Two banks of registers, each read once a cycle, and the reuse cache before them."""

    __slots__ = ("even", "odd", "reuses", "slack")

    def __init__(self, slack: int, reuses: bool) -> None:
        self.even = self.odd = 0
        self.slack, self.reuses = slack, reuses

    def read(self, one: TimedInstruction, time: int) -> int:
        """Cycles for which the next issue has to wait."""
        even, odd = one.even, one.odd
        if self.reuses:
            even, odd = even - one.kept_even, odd - one.kept_odd
        self.even = max(self.even, time) + even
        self.odd = max(self.odd, time) + odd
        return max(0, max(self.even, self.odd) - time - self.slack)

    def state(self, time: int) -> tuple[int, int]:
        return max(self.even - time, 0), max(self.odd - time, 0)


class MemoryQueue:
    """A scheduler's queue to the memory pipe. leaves: when each of its entries leaves it."""

    __slots__ = ("interval", "leaves", "next", "size")

    def __init__(self, size: int, interval: int) -> None:
        self.size, self.interval = size, interval
        self.leaves: deque[int] = deque()
        self.next = 0

    def free(self, time: int) -> int:
        """From when on it takes another instruction."""
        leaves = self.leaves
        while leaves and leaves[0] <= time:
            leaves.popleft()
        return self.next if len(leaves) < self.size else max(self.next, leaves[len(leaves) - self.size])

    def put(self, time: int, leaves: int) -> None:
        """An instruction enters, and leaves later."""
        self.next = time + self.interval
        self.leaves.append(leaves)

    def state(self, time: int) -> tuple[int, ...]:
        return (max(self.next - time, 0), *(leave - time for leave in self.leaves if leave > time))


class MemoryPipe:
    """The one memory pipe of the multiprocessor: L1's data and tag stages, and its way to L2.

    read_cost, write_cost: parts of a cycle that a sector takes between this multiprocessor and L2, in
    `PARTS` of a part; far: from the tag stage to the data of a miss.
    """

    __slots__ = ("backlog", "data", "far", "from_l2", "read_cost", "tags", "to_l2", "to_memory", "write_cost")

    def __init__(
        self, set_to: Latencies, read_cost: int, write_cost: int, far: int, backlog: int | None
    ) -> None:
        self.data, self.tags, self.from_l2, self.to_l2 = Stage(), Stage(), Stage(), Stage()
        self.read_cost, self.write_cost, self.far = read_cost, write_cost, far
        self.to_memory, self.backlog = set_to.to_memory, backlog

    def take(self, one: TimedInstruction, time: int) -> tuple[int, int]:
        """(start, result): when an instruction of `time` leaves the queue, and its result is there."""
        arrives = time + self.to_memory
        if one.is_global and self.backlog is not None:
            arrives = max(arrives, self.tags.free // PARTS - self.backlog)
        start, end = self.data.serve(arrives, one.wavefronts)
        if not one.is_global:
            return start, end + one.latency
        _, looked_up = self.tags.serve(start, one.tags)
        near = max(end, looked_up) + one.latency
        if one.writes:
            self.to_l2.serve(looked_up, one.sectors * self.write_cost // PARTS)
            return start, near
        if not one.sectors:
            return start, near
        _, come = self.from_l2.serve(looked_up, one.sectors * self.read_cost // PARTS)
        missed = come + self.far
        return start, max(near, int(near + one.misses * (missed - near)))

    @property
    def stages(self) -> tuple[Stage, ...]:
        """In the order in which a load passes them."""
        return self.data, self.tags, self.from_l2, self.to_l2

    @property
    def drained(self) -> int:
        """When the last store has left."""
        return -(-self.to_l2.free // PARTS)

    def state(self, time: int) -> tuple[int, ...]:
        return tuple(stage.state(time) for stage in self.stages)


class InstructionCache:
    """Lines of code: one that nobody has executed yet is fetched, the next in order sooner than others."""

    __slots__ = ("cached", "last", "next", "to_jump", "to_next")

    #: Instructions in a line of 128 bytes.
    LINE = 8

    def __init__(self, to_next: int, to_jump: int) -> None:
        self.to_next, self.to_jump = to_next, to_jump
        self.cached: dict[int, int] = {}
        self.last, self.next = -1, 0

    def fetch(self, line: int, time: int) -> int:
        """When a line is there that is wanted at `time`."""
        if line not in self.cached:
            is_next = line == self.last + 1
            self.next = max(self.next + self.to_next, time) if is_next else time + self.to_jump
            self.cached[line], self.last = self.next, line
        return self.cached[line]

    def state(self, time: int) -> tuple[int, ...]:
        return len(self.cached), self.last, max(self.next - time, 0)


class NamedBarriers:
    """The barriers of one resident block, by number: warps that wait, all that arrived, how many have to
    (0: all that are alive).
    """

    __slots__ = ("arrived", "expected", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[int, list[Any]] = {}
        self.arrived: dict[int, int] = {}
        self.expected: dict[int, int] = {}

    def arrive(self, one: TimedInstruction, warp: Any, alive: int) -> list[Any]:
        """A warp arrives; those that may go on, if any."""
        number = one.barrier
        self.arrived[number] = self.arrived.get(number, 0) + 1
        self.expected[number] = one.expected
        if not one.arrives:
            self.waiting.setdefault(number, []).append(warp)
        return self._released(number, alive)

    def leave(self, alive: int) -> list[Any]:
        """A warp has ended; those that may go on because nobody else is awaited."""
        return [warp for number in self.arrived for warp in self._released(number, alive)]

    def _released(self, number: int, alive: int) -> list[Any]:
        if self.arrived[number] < max(self.expected[number] or alive, 1):
            return []
        self.arrived[number] = 0
        return self.waiting.pop(number, [])

    def state(self) -> tuple[tuple[int, int], ...]:
        return tuple((number, count) for number, count in sorted(self.arrived.items()) if count)
