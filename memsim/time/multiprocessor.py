"""One multiprocessor in time: four schedulers issue what warps execute, and blocks start as others end.

All results of an issue are known at once: when its result arrives, when its operands have been read. So a
warp's next issue has a time from which on it is possible, unless it waits for others at a barrier. Schedulers
act in the order of time, and of their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from memsim.time.code_caches import CodeMemory, ConstantCache, InstructionCache
from memsim.time.control_codes import AT_BARRIER
from memsim.time.handovers import NOTHING, PhasesOfBlock
from memsim.time.hardware_units import (
    NEVER,
    BarrierUnit,
    MemoryPipe,
    Way,
)
from memsim.time.latencies import Latencies
from memsim.time.resident_warps import LaunchedBlocks, ResidentBlock, Scheduler, TimedWarp
from memsim.time.timed_instructions import LATEST, TimedInstruction

#: Why a warp does not issue, by the names of ncu's `smsp__average_warps_issue_stalled_*`.
REASONS = (
    "selected",
    "wait",
    "short_scoreboard",
    "long_scoreboard",
    "barrier",
    "math_pipe_throttle",
    "mio_throttle",
    "lg_throttle",
    "dispatch_stall",
    "not_selected",
    "no_instruction",
    "branch_resolving",
    "membar",
    "imc_miss",
)
_NUMBER = {reason: number for number, reason in enumerate(REASONS)}
#: Units that can be switched off, and what then holds.
ABLATIONS = {
    "register banks": "operands are read at once",
    "reuse cache": "every operand is read from its bank",
    "memory queue": "the queues to the memory pipe have no end",
    "tag stage": "the tag stage never holds back the data stage",
    "instruction cache": "all code is there from the start",
    "L1 cache": "every load of global memory misses",
    "barrier unit": "warps arrive at barriers at once",
    "atomics' turns": "L2 executes the atomics of all multiprocessors at once",
    "greedy": "the warp whose turn it is issues, not the last one first",
}


#: Blocks end together if their ends are so near, as a share of the time that one takes: where there are
#: places for two on a multiprocessor, and where there are more. Measured, of launches whose last blocks do
#: not fill a wave: with places for two, some multiprocessor takes two of these in all of 16 tiles of `sgemm`,
#: and by chance in 3, 12 and 13 of 20 runs of three kernels (docs/validation/l2_states_large.json). With
#: places for more it depends: this is right of 13 launches of 16, wrong of 2, and of one it is not clear.
TWO_TOGETHER, TOGETHER = 0.25, 0.02


def end_together(apart: float, resident: int) -> bool:
    """Do the blocks of a multiprocessor end at nearly the same time? apart: as a share of the time of one."""
    return apart <= (TWO_TOGETHER if resident == 2 else TOGETHER)


class IssuedInstruction(NamedTuple):
    """An instruction that was issued. cycle: since the start of the launch. scheduler: its number. warp: its
    number among the resident ones, blocks one after the other. op: number of the instruction. since: the
    cycle of its warp's issue before, or start. why: of `REASONS`, what it waited for longest since then.
    """

    cycle: int
    scheduler: int
    warp: int
    op: int
    since: int
    why: str


@dataclass(frozen=True, slots=True)
class Setup:
    """What does not change in a launch. ways: to what the blocks of each wave miss in L1, the last also for
    later ones. write_cost: as `MemoryPipe`; start: before the first instruction. off: of `ABLATIONS`.
    watched: cycles of which all issues are kept. code_far, code_moved: as `CodeMemory`. constant_block: as
    `ConstantCache`. first_fetch: as `MemoryPipe`. ahead: instructions that a warp executes while DRAM serves
    a load.
    """

    set_to: Latencies
    ways: tuple[Way, ...]
    write_cost: float
    start: int
    off: frozenset[str] = field(default_factory=frozenset)
    watched: range = range(0)
    code_far: int = 0
    code_moved: int = 0
    constant_block: int = 0
    first_fetch: int = 0
    ahead: float = NEVER


class Multiprocessor:
    """Runs blocks, each by the streams of its warps. waits: cycles of all warps by instruction and reason
    [instructions][reasons]; issued: instructions. Both count what was skipped, too. issues: those of the
    watched cycles, and the next one of each warp. skipped: cycles that no time has in it, because they
    repeated others; less those in which no block was there.
    """

    def __init__(
        self,
        setup: Setup,
        instructions: Sequence[TimedInstruction],
        launched: LaunchedBlocks,
        resident: int,
        partitions: int = 4,
    ) -> None:
        set_to, off = setup.set_to, setup.off
        self.setup, self.instructions, self.launched = setup, instructions, launched
        self.are_plain = [one.is_plain for one in instructions]
        self.lines = [one.index // InstructionCache.LINE for one in instructions]
        self.greedy, self.operands_read = "greedy" not in off, set_to.operands_read
        self.watched, self.watched_until = setup.watched, setup.watched.stop
        self.blocks_left, self.spare = launched.blocks, launched.spare
        self.handed_out = 0  # when a block ended and it was given its latest one
        self.running = self.next_start = 0
        self.now = self.end = self.issued = self.skipped = 0
        self.code = CodeMemory(set_to.code_first, setup.code_far, set_to.code_skipped, setup.code_moved)
        self.constants = ConstantCache(set_to.constant_line, setup.constant_block)
        self.schedulers = [Scheduler(set_to, off, self.code) for _ in range(partitions)]
        backlog = None if "tag stage" in off else set_to.tag_backlog
        self.memory = MemoryPipe(set_to, setup.write_cost, backlog, setup.first_fetch, "memory queue" in off)
        self.arrivals = BarrierUnit(0 if "barrier unit" in off else set_to.arrival)
        self.issues: list[IssuedInstruction] = []
        self.waits = [[0] * len(REASONS) for _ in range(1 + max(one.index for one in instructions))]
        self.resident = [ResidentBlock(setup.ways[0]) for _ in range(min(resident, launched.blocks))]
        number = 0
        for place, block in enumerate(self.resident):
            for _ in range(launched.warps):
                block.warps.append(TimedWarp(block, number, self.schedulers[number % partitions]))
                number += 1
            self.start_block(block, setup.start + place * (set_to.next_start + launched.warps**2 // 4))

    @property
    def warps(self) -> list[TimedWarp]:
        """All resident ones."""
        return [warp for block in self.resident for warp in block.warps]

    # --- blocks ----------------------------------------------------------------------------

    def start_block(self, block: ResidentBlock, time: int) -> None:
        """The next block of the launch starts at a place."""
        number = self.launched.blocks - self.blocks_left
        self.blocks_left -= 1
        self.running += 1
        block.started += 1
        block.alive = len(block.warps)
        ways = self.setup.ways
        block.way = ways[min(number // len(self.resident), len(ways) - 1)]
        handovers = self.launched.handovers_of(number)
        block.phases = PhasesOfBlock(handovers.expected)
        streams = self.launched.streams(number)
        for warp, stream, own in reversed([*zip(block.warps, streams, handovers.of_warps)]):
            warp.start(stream, own)
            if not len(stream):
                block.alive -= 1
                continue
            scheduler = warp.scheduler
            scheduler.warps.append(warp)
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
        if not self.blocks_left and self.spare and self.is_soon(time):
            self.blocks_left, self.spare = 1, False
            self.launched = replace(self.launched, blocks=self.launched.blocks + 1)
        if self.blocks_left:
            set_to = self.setup.set_to
            start = max(time + set_to.next_block, self.next_start)
            self.next_start = start + set_to.successors
            if not self.running:  # until then it is not active
                self.skipped -= start - time - 1
            self.handed_out = time + self.skipped
            self.start_block(block, start)

    def is_soon(self, time: int) -> bool:
        """Are blocks still handed out, nearly as late as its last one was?"""
        waves = self.launched.blocks / len(self.resident)
        later = time + self.skipped - self.handed_out
        return end_together(later * waves / (time + self.skipped), len(self.resident))

    # --- warps -----------------------------------------------------------------------------

    def prepare(self, warp: TimedWarp, issued: int, base: int, branch: int) -> None:
        """Set from when on the next instruction of a warp can be issued, and what it waits for."""
        number = warp.stream[warp.at]
        one = warp.one = self.instructions[number]
        ready, why = base + branch, _BRANCH
        for counter in one.waits:
            if warp.counters[counter] > ready:
                ready, why = warp.counters[counter], warp.reasons[counter]
        warp.is_plain = self.are_plain[number]
        if not warp.is_plain:
            if one.copies >= 0 and len(warp.groups) > one.copies:
                arrives = warp.groups[-1 - one.copies]
                if arrives > ready:
                    ready, why = arrives, _LONG
            if one.products >= 0 and len(warp.product_groups) > one.products:
                ends = warp.product_groups[-1 - one.products]
                if ends > ready:
                    ready, why = ends, _BARRIER  # as ncu calls it
            if one.constant >= 0 and one.result is None:  # it stalls
                fetched = self.constants.fetch(one.constant, base + branch)
                if fetched > ready:
                    ready, why = fetched, _IMC_MISS
        line = self.lines[number]
        if line != warp.line and warp.scheduler.code is not None:
            warp.line = line
            fetched = warp.scheduler.code.fetch(line, base + branch)
            if fetched > ready:
                ready, why = fetched, _NO_INSTRUCTION
        warp.issued, warp.base, warp.ready, warp.why = issued, base, ready, why

    def prepare_again(self, warp: TimedWarp) -> None:
        """As `prepare`, when something is known for which a warp waits."""
        self.prepare(warp, warp.issued, warp.base, 0)
        warp.scheduler.next = min(warp.scheduler.next, warp.ready)

    def release(self, warps: Sequence[TimedWarp], arrived: int) -> None:
        """All have arrived at the barrier of these warps."""
        for warp in warps:
            warp.counters[AT_BARRIER] = arrived + self.setup.set_to.barrier
            warp.reasons[AT_BARRIER] = _BARRIER
            if warp.ready >= NEVER and not warp.is_at_cluster:
                self.prepare_again(warp)

    def account(self, warp: TimedWarp, time: int, held: int) -> None:
        """Add the cycles since a warp's last issue to the reasons of its instruction. held: of them the last,
        in which its operands were not read yet.
        """
        waits = self.waits[warp.one.index]
        waits[_SELECTED] += 1
        waits[_WAIT] += warp.base - warp.issued - 1
        waits[warp.why] += warp.ready - warp.base
        waits[_DISPATCH] += held
        left = time - held - warp.ready
        blocked, unit = 0, _NOT_SELECTED
        if left:
            blocked = min(max(warp.blocked - warp.ready, 0), left)
            if blocked:
                one = warp.one
                unit = _MATH if one.pipe != "memory" else _LG if one.is_global else _MIO
                waits[unit] += blocked
            waits[_NOT_SELECTED] += left - blocked
        if warp.issued < self.watched_until and time >= self.watched.start:
            spent = {
                _WAIT: warp.base - warp.issued - 1, warp.why: warp.ready - warp.base, _DISPATCH: held,
                _NOT_SELECTED: left - blocked, unit: blocked,
            }  # fmt: skip
            why = REASONS[max(spent, key=spent.__getitem__)]
            scheduler = warp.number % len(self.schedulers)
            self.issues.append(
                IssuedInstruction(time, scheduler, warp.number, warp.one.index, warp.issued, why)
            )

    def issue(self, scheduler: Scheduler, warp: TimedWarp, time: int) -> None:
        """A scheduler issues the next instruction of a warp."""
        one = warp.one
        chosen = time
        if one.even or one.odd:
            time = self.now = scheduler.banks.read(one, time)
        self.account(warp, time, time - chosen)
        self.issued += 1
        scheduler.issues(warp)
        scheduler.next = time + 1
        result = read = time + 1
        if one.pipe == "memory":
            nth = 0
            if one.followed or one.follows is not None:
                nth = warp.times.get(one.index, 0)
                warp.times[one.index] = nth + 1
            if one.bulk:
                leaves, result = self.copy(warp, one, time)
            else:
                leaves, result = self.memory.take(one, time, warp.block.way, nth, scheduler.queue)
            read = leaves + self.operands_read
        elif one.pipe:
            result = read = scheduler.pipes.take(one, time)
            if one.wavefronts:
                result = max(result, self.memory.serve_product(one, time))
            result += one.latency
        is_plain = warp.is_plain
        if not is_plain:
            self.group(warp, one, result)
            if one.constant >= 0:
                result = self.constants.fetch(one.constant, result)
            if one.hands_over:
                result = self.hand_over(warp, one, time, result)
        if one.result is not None and result > warp.counters[one.result]:
            warp.counters[one.result] = result
            warp.reasons[one.result] = _NUMBER[one.why]
        if one.operands is not None and read > warp.counters[one.operands]:
            warp.counters[one.operands] = read
            warp.reasons[one.operands] = _NUMBER[one.why]
        warp.at += 1
        if warp.at >= len(warp.stream):
            self.end_warp(warp, time)
        elif is_plain:
            self.prepare(warp, time, time + one.stall, 0)
        else:
            self.go_on(warp, one, time, result if one.hands_over and not one.pipe else 0)

    def group(self, warp: TimedWarp, one: TimedInstruction, result: int) -> None:
        """Keep when groups of copies, or of products, are done that an instruction belongs to or ends."""
        if one.is_copy:
            warp.copies = max(warp.copies, result)
        elif one.is_product:
            warp.products = max(warp.products, result)
            if one.closes:
                warp.product_groups.append(warp.products)
        elif one.closes:
            warp.groups.append(warp.copies)
        elif one.copies >= 0:
            while len(warp.groups) > one.copies:
                warp.groups.popleft()
        elif one.products >= 0:
            while len(warp.product_groups) > one.products:
                warp.product_groups.popleft()

    def copy(self, warp: TimedWarp, one: TimedInstruction, time: int) -> tuple[int, int]:
        """A warp copies in bulk, unless none of its lanes does; as `MemoryPipe.copy`."""
        if warp.at not in warp.handovers:
            return time, time
        behind = warp.handovers[warp.at].behind - 1
        late = round(LATEST * max(1 - behind / self.setup.ahead, 0)) if behind > 0 else LATEST
        return self.memory.copy(one, time, warp.block.way, late, warp.scheduler.queue)

    def hand_over(self, warp: TimedWarp, one: TimedInstruction, time: int, result: int) -> int:
        """A warp contributes to phases, or waits for one; when it has its result, which may not be known."""
        what, phases, set_to = warp.handovers.get(warp.at, NOTHING), warp.block.phases, self.setup.set_to
        if what.fills:
            arrives = result if one.bulk else time + set_to.arrives
            if one.follows_copies:
                arrives = max(arrives, warp.copies)
            for phase in what.fills:
                for other, counter, earliest in phases.fill(phase, arrives):
                    self.wake(other, counter, earliest, phases.over[phase])
        if what.awaits < 0:
            return result
        if not phases.left[what.awaits]:
            late = set_to.handed_over if one.result is not None else set_to.met
            return max(result, phases.over[what.awaits] + late)
        phases.waiting.setdefault(what.awaits, []).append((warp, one.result, result))
        if one.result is not None:
            warp.held.append(one.result)
        return NEVER

    def wake(self, warp: TimedWarp, counter: int | None, earliest: int, over: int) -> None:
        """The phase for which a warp waits, or will, is over: it has its result, at `earliest` or later."""
        set_to = self.setup.set_to
        if counter is None:
            warp.is_at_cluster = False
            self.prepare_again(warp)
            if over + set_to.met >= warp.ready:
                warp.ready, warp.why = max(warp.base, over + set_to.met), _BARRIER
            return
        warp.held.remove(counter)
        if counter in warp.held:
            return
        warp.counters[counter] = max(earliest, over + set_to.handed_over)
        if warp.ready >= NEVER and not warp.is_at_cluster:
            self.prepare_again(warp)

    def go_on(self, warp: TimedWarp, one: TimedInstruction, time: int, until: int) -> None:
        """After a fence, a barrier or a branch that was issued. until: when its cluster's barrier is over."""
        base = time + one.stall
        if until >= NEVER:
            warp.issued, warp.base, warp.ready, warp.is_at_cluster = time, base, NEVER, True
            return
        if until > base:
            self.prepare(warp, time, base, 0)
            if until > warp.ready:
                warp.ready, warp.why = until, _BARRIER
            return
        if one.fences:
            self.prepare(warp, time, base, 0)
            if base + one.fences > warp.ready:
                warp.ready, warp.why = base + one.fences, _MEMBAR
            return
        if one.barrier >= 0:
            if not one.arrives:
                warp.counters[AT_BARRIER] = NEVER
            arrived = self.arrivals.take(time)
            self.release(warp.block.barriers.arrive(one, warp, warp.block.alive), arrived)
        following = self.instructions[warp.stream[warp.at]].index
        goes_on = not one.branches or following == one.index + 1
        self.prepare(warp, time, base, one.holds if goes_on else self.setup.set_to.branch)

    # --- time ------------------------------------------------------------------------------

    def step(self) -> TimedWarp | None:
        """The next scheduler acts; the warp that it issues of."""
        time = NEVER
        for other in self.schedulers:
            if other.next < time:
                scheduler, time = other, other.next
        self.now = time
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


(
    _SELECTED, _WAIT, _SHORT, _LONG, _BARRIER, _MATH, _MIO, _LG, _DISPATCH, _NOT_SELECTED, _NO_INSTRUCTION,
    _BRANCH, _MEMBAR, _IMC_MISS,
) = range(len(REASONS))  # fmt: skip
