"""The units of a multiprocessor, each a class with what it needs to be asked and told.

A unit says from when on it can take an instruction (`free`), and when what it was given is done. Times are
cycles since the start of the launch; `Stage`s count in parts of a cycle (`PARTS`). `state` is all that their
future depends on, relative to a time.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import Any, NamedTuple

from memsim.arch.units import LINE, SECTOR
from memsim.time.latencies import Latencies
from memsim.time.timed_instructions import BARRIER_OF_GROUP, LATEST, PARTS, TimedInstruction

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

    #: Products of warpgroups that are issued and not done. Measured: groups of 1 to 16 (lab/time/hopper.cu).
    PRODUCTS = 7
    #: Cycles before the XU is free at which it takes another instruction: one waits in front of it. Measured:
    #: 1 to 24 of them one after the other (docs/validation/queues.json).
    AHEAD = 5

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
        if one.pipe == "xu":
            return free["xu"] - self.AHEAD
        return free[one.pipe] - (self.PRODUCTS - 1) * one.busy if one.is_product else free[one.pipe]

    def take(self, one: TimedInstruction, time: int) -> int:
        """Execute an instruction from `time` on; when it leaves the pipe."""
        free, pipe, end = self.free, one.pipe, time + one.busy
        if one.is_product or pipe == "xu":
            end = max(free[pipe], time) + one.busy
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
    """Two banks of registers, each read once a cycle. even, odd: until when each is read.

    An instruction's reads of a bank may be late by so much that they end two cycles after it was issued; of
    three reads none is late. Measured: patterns of registers in loops (lab/time/register_banks.py).
    """

    __slots__ = ("even", "is_off", "odd")

    #: Cycles from issue to the last of two reads.
    WINDOW = 2

    def __init__(self, is_off: bool) -> None:
        self.even = self.odd = 0
        self.is_off = is_off

    def read(self, one: TimedInstruction, time: int) -> int:
        """When an instruction that was chosen at `time` leaves the dispatch stage."""
        if self.is_off:
            return time
        even, odd = one.even, one.odd
        if even:
            late = self.even - max(self.WINDOW - even, 0)
            if late > time:
                time = late
        if odd:
            late = self.odd - max(self.WINDOW - odd, 0)
            if late > time:
                time = late
        if even:
            self.even = (self.even if self.even > time else time) + even
        if odd:
            self.odd = (self.odd if self.odd > time else time) + odd
        return time

    def state(self, time: int) -> tuple[int, int]:
        return max(self.even - time, 0), max(self.odd - time, 0)


class MemoryQueue:
    """A scheduler's queue to the memory pipe, and its own way there and back. leaves: when each of its
    entries leaves it; next: when the registers of the last one have been sent; returned: when its result is
    back.
    """

    __slots__ = ("leaves", "next", "returned", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.leaves: deque[int] = deque()
        self.next = self.returned = 0

    def free(self, time: int) -> int:
        """From when on it takes another instruction."""
        leaves = self.leaves
        while leaves and leaves[0] <= time:
            leaves.popleft()
        return self.next if len(leaves) < self.size else max(self.next, leaves[len(leaves) - self.size])

    def put(self, time: int, sends: int, leaves: int) -> None:
        """An instruction enters that sends its registers for so long, and leaves later."""
        self.next = time + sends
        self.leaves.append(leaves)

    def state(self, time: int) -> tuple[int, ...]:
        ways = max(self.next - time, 0), max(self.returned - time, 0)
        return *ways, *(leave - time for leave in self.leaves if leave > time)


class Way(NamedTuple):
    """What lies behind L1 for a wave of blocks. far, near: cycles from the tag stage to the data of misses,
    one after the other and again; far: of what nobody asked L2 for before. read_cost: cycles that a sector
    takes to this multiprocessor; bulk_cost: of one that is copied in bulk.
    """

    far: tuple[int, ...]
    near: tuple[int, ...]
    read_cost: float
    bulk_cost: float


class MemoryPipe:
    """The one memory pipe of the multiprocessor: the queue that its schedulers share, L1's data and tag
    stages, its way to L2, and the turns of its atomics there.

    write_cost: as `Way.read_cost`, of stores. first_fetch: cycles until the first fetch of a texture finds
    what describes it, and its texels; fetched: when it has. pending: when the data of loads that others
    follow arrive, by the load's instruction and how often its warp had executed it. copied: when the data of
    copies arrive, which then take wavefronts (in parts) to be written to shared memory.
    """

    __slots__ = (
        "backlog", "bulk", "bulk_latency", "bulk_sector", "bulk_stored", "copied", "crowded", "data",
        "fetched", "first_fetch", "from_l2", "is_off", "misses", "pending", "queued",
        "tags", "to_l2", "to_memory", "turns", "write_cost",
    )  # fmt: skip

    def __init__(
        self, set_to: Latencies, write_cost: float, backlog: int | None, first_fetch: int, is_off: bool
    ) -> None:
        self.data, self.tags, self.from_l2, self.to_l2, self.turns, self.bulk = (Stage() for _ in range(6))
        self.bulk_sector = set_to.bulk_line / 100 * SECTOR / LINE
        self.bulk_latency, self.bulk_stored = set_to.bulk_latency, set_to.bulk_stored
        self.write_cost, self.to_memory, self.backlog = write_cost, set_to.to_memory, backlog
        self.queued: deque[int] = deque([0] * set_to.shared_queue, set_to.shared_queue)
        self.pending: dict[tuple[int, int], int] = {}
        self.copied: list[tuple[int, int]] = []
        self.is_off, self.misses, self.crowded = is_off, 0, set_to.crowded
        self.first_fetch, self.fetched = first_fetch, 0

    def take(
        self, one: TimedInstruction, time: int, way: Way, nth: int, queue: MemoryQueue
    ) -> tuple[int, int]:
        """(leaves, result): when an instruction of `time` leaves its scheduler's queue, and its result is
        there. nth: how often its warp executed it before.

        A scheduler gets 128 bytes of results a cycle and a wavefront in two, all of them together 256 bytes
        and a wavefront in one. Measured: loads of 4 and 16 bytes a lane, of one word and with conflicts, by 1
        to 16 warps (docs/validation/queues.json, traces/*/time.json).
        """
        arrives = leaves = self.enters(one, time, queue)
        if one.is_global and self.backlog is not None:
            arrives = max(arrives, self.tags.free // PARTS - self.backlog)
        self.write_copied(arrives)
        cost = one.wavefronts
        if self.data.free > arrives * PARTS:
            cost += one.widens * self.crowded // 100
        if one.returned:
            cost = max(cost, one.returned * PARTS // 2)
        start, end = self.data.serve(arrives, cost)
        self.queued.append(start)
        if one.returned:
            alone, back = 2 * one.wavefronts // PARTS, max(start, queue.returned)
            end = back + max(alone - 1, one.returned)
            queue.returned = back + max(alone, one.returned)
        if one.fetches:
            self.fetched = self.fetched or start + self.first_fetch
            end = max(end, self.fetched)
        if not one.is_global:
            return leaves, end + one.latency
        _, looked_up = self.tags.serve(start, one.tags)
        result = max(end, looked_up) + one.latency
        if one.follows is not None:
            index, ahead = one.follows
            result = max(result, self.pending.get((index, nth + ahead), 0))
        changed = self.turns.serve(looked_up, one.turns)[1] if one.turns else 0
        if one.writes:
            self.to_l2.serve(looked_up, round(one.sectors * self.write_cost))
        elif one.sectors:
            _, come = self.from_l2.serve(looked_up, max(round(one.sectors * way.read_cost), one.lines))
            come = max(come, changed)
            self.misses = (self.misses + one.moves) % len(way.near)
            near, far = way.near[self.misses], way.far[self.misses]
            result = max(result, come + near + (far - near) * one.late // LATEST)
            if one.followed:
                self.pending[one.index, nth] = result
        if one.copied:
            written = one.copied + (PARTS if one.fills and one.sectors else 0)
            heappush(self.copied, (result, written))
            result += -(-written // PARTS)
        return leaves, result

    def enters(self, one: TimedInstruction, time: int, queue: MemoryQueue) -> int:
        """When an instruction that is issued at `time` leaves its scheduler's queue for that of all."""
        leaves = max(time + self.to_memory + one.sends, 0 if self.is_off else self.queued[0])
        queue.put(time, one.sends, leaves)
        return leaves

    def write_copied(self, time: int) -> None:
        """The data that have come until `time` are written to shared memory."""
        while self.copied and self.copied[0][0] <= time:
            self.data.serve(*heappop(self.copied))

    def serve_product(self, one: TimedInstruction, time: int) -> int:
        """When the data stage has read what a product of a warpgroup takes from shared memory."""
        self.write_copied(time)
        return self.data.serve(time, one.wavefronts)[1]

    def copy(
        self, one: TimedInstruction, time: int, way: Way, late: int, queue: MemoryQueue
    ) -> tuple[int, int]:
        """As `take`, of a copy in bulk, by the engine that makes them. late: as of an instruction."""
        leaves = self.enters(one, time, queue)
        self.queued.append(leaves)
        begins, asked = self.bulk.serve(leaves, one.bulk)
        if one.writes:
            _, gone = self.to_l2.serve(begins, round(one.sectors * self.write_cost))
            return leaves, max(asked, gone) + self.bulk_stored
        cost = max(one.sectors * way.bulk_cost, one.received * self.bulk_sector)
        _, come = self.from_l2.serve(begins, round(cost))
        self.misses = (self.misses + 1) % len(way.near)
        near, far = way.near[self.misses], way.far[self.misses]
        result = max(asked, come) + near + (far - near) * late // LATEST + self.bulk_latency
        return leaves, result

    @property
    def stages(self) -> tuple[Stage, ...]:
        """In the order in which a load passes them."""
        return self.data, self.tags, self.from_l2, self.to_l2, self.turns, self.bulk

    @property
    def drained(self) -> int:
        """When the last store has left, and the last atomic has had its turns."""
        return -(-max(self.to_l2.free, self.turns.free) // PARTS)

    def forget_arrived(self, time: int) -> None:
        """Drop what nobody has to wait for any more."""
        self.pending = {key: arrives for key, arrives in self.pending.items() if arrives > time}

    def state(self, time: int) -> tuple[int, ...]:
        stages = (stage.state(time) for stage in self.stages)
        fetched = max(self.fetched - time, 0)
        copied = (part for arrives, cost in sorted(self.copied) for part in (arrives - time, cost))
        return *stages, self.misses, fetched, *(max(one - time, 0) for one in self.queued), *copied


class BarrierUnit:
    """Takes the warps that arrive at barriers one after the other. Measured: barriers of 1 to 32 warps."""

    __slots__ = ("each", "free")

    def __init__(self, each: int) -> None:
        self.each, self.free = each, 0

    def take(self, time: int) -> int:
        """When a warp that arrives at `time` has been counted."""
        self.free = max(self.free, time) + self.each
        return self.free

    def state(self, time: int) -> int:
        return max(self.free - time, 0)


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
        if number == BARRIER_OF_GROUP and one.expected:
            number += warp.number // one.expected
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
