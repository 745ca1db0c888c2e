"""An estimate of the cycles of a launch: its machine code, replayed, on one multiprocessor in time.

The busiest multiprocessor runs as many blocks as the launch gives it, all as one block in the middle of the
grid does. What an access costs is the mean of what it costs in this block, exactly counted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from memsim.analysis import Analysis, SiteCounts, analyze_trace
from memsim.api.running import trace_job, trace_with
from memsim.arch import MEASURED
from memsim.errors import MemsimError
from memsim.isa.program import Op
from memsim.job import Job
from memsim.launch import Natural
from memsim.model.alike import SameCost
from memsim.model.occupancy import Needs, occupancy
from memsim.time.control_codes import control_codes
from memsim.time.latencies import Latencies
from memsim.time.multiprocessor import ABLATIONS, REASONS, Multiprocessor, Setup
from memsim.time.shortened_runs import timed_run
from memsim.time.tag_lookups import lookups_by_address
from memsim.time.timed_instructions import PARTS, timed_instructions
from memsim.time.warp_streams import StreamRecorder
from memsim.trace.trace import Trace

#: The mean error on the catalogue's kernels that no constant was chosen on, on the board where it is larger,
#: rounded up (docs/time.md). That of other launches was not measured.
HELD_OUT_ERROR = 0.07
#: Caches before the launch: as a profiler leaves them, which flushes, or as a program does that just ran it.
COLD, WARM = "cold", "warm"


@dataclass(frozen=True, slots=True)
class InstructionTime:
    """One instruction: how often warps of the multiprocessor executed it, and for how many cycles they waited
    before it, by ncu's reason; "selected" are those in which it was issued.
    """

    address: Natural
    text: str
    file: str
    line: Natural
    executed: Natural
    waits: dict[str, Natural]

    @property
    def cycles(self) -> int:
        """Of all warps."""
        return sum(self.waits.values())


@dataclass(frozen=True, slots=True)
class LaunchTime:
    """The estimated time of a launch.

    active: ncu's `sm__cycles_active.max`; elapsed: its `sm__cycles_elapsed.max`. seconds: of the elapsed
    cycles at the clock of `chip`. l2: "cold" or "warm". blocks: of the busiest multiprocessor, `resident` of
    them at once. issued: instructions of all warps there. lacks: what is not modelled, in words. off: units
    that were switched off. is_whole: all blocks and iterations were run, or are known to repeat others; else
    some were extrapolated.
    """

    kernel: str
    chip: str
    clock: float
    l2: str
    active: int
    elapsed: int
    blocks: int
    resident: int
    issued: int
    instructions: tuple[InstructionTime, ...]
    lacks: tuple[str, ...]
    off: tuple[str, ...]
    is_whole: bool = True

    @property
    def seconds(self) -> float:
        """At the boost clock."""
        return self.elapsed / self.clock

    @property
    def waits(self) -> dict[str, int]:
        """Cycles of all warps by reason, most first."""
        found = {reason: sum(one.waits.get(reason, 0) for one in self.instructions) for reason in REASONS}
        return dict(sorted(((r, n) for r, n in found.items() if n), key=lambda item: -item[1]))


def predict_time(
    job: Job,
    l2: str = COLD,
    off: Collection[str] = (),
    set_to: Latencies | None = None,
    skips: bool = True,
) -> LaunchTime:
    """An estimate of how many cycles a launch takes, and what its warps wait for.

    l2: "cold" or "warm". off: of `ABLATIONS`. set_to: other constants. skips: whether what repeats is gone
    over in one step, which changes nothing but the time that this takes.

    Raises:
        MemsimError: no machine code, a chip that was not measured, an ablation that there is not, a launch
            that does not fit, or one that cannot be followed to its end.
    """
    return PreparedTime(job).predict(l2, off, set_to, skips)


class PreparedTime:
    """A launch whose block was replayed, to be timed with several settings."""

    def __init__(self, job: Job, whole: Trace | None = None) -> None:
        """whole: the launch's trace, if there is one already."""
        chip = job.arch
        if chip.rates != MEASURED:
            raise MemsimError(f"the time of a launch is not known on {chip}: nothing was measured there")
        self.job, self.chip = job, chip
        kernel, launch = job.loaded, job.launch
        self.whole = trace_job(job) if whole is None else whole
        recorder = StreamRecorder(launch.warps, SameCost(chip))
        self.one: Trace = trace_with(job, recorder, np.array([middle_block(launch.grid)]))
        self.streams = recorder.streams()
        self.analysis = analyze_trace(self.one, chip)
        self.lookups = lookups_by_address(self.one)
        self.ops: tuple[Op, ...] = kernel.executable.program.ops
        self.codes = control_codes(kernel.machine.image.code)
        held = kernel.resources
        assert held is not None  # machine code says what it needs
        needs = Needs(launch.threads, held.registers, held.static_shared + launch.shared_bytes, held.barriers)
        self.resident = occupancy(needs, chip).blocks
        if not self.resident:
            raise MemsimError("no block of this launch fits on a multiprocessor")
        self.blocks = ceil(launch.blocks / chip.multiprocessors)

    def predict(
        self,
        l2: str = COLD,
        off: Collection[str] = (),
        set_to: Latencies | None = None,
        skips: bool = True,
    ) -> LaunchTime:
        """As `predict_time`."""
        if l2 not in (COLD, WARM):
            raise MemsimError(f"l2 must be {COLD} or {WARM}, not {l2!r}")
        for name in off:
            if name not in ABLATIONS:
                raise MemsimError(f"there is no unit {name!r} to switch off", hint=", ".join(ABLATIONS))
        set_to = set_to or Latencies()
        costs: dict[int, list[SiteCounts]] = {}
        for rows in self.analysis.instructions:
            for row in rows:
                costs.setdefault(row.address, []).append(row.counts)
        misses = 1.0 if "L1 hits" in off else miss_share(self.analysis)
        instructions, lacks = timed_instructions(self.ops, self.codes, costs, self.lookups, misses, set_to)
        setup = Setup(
            set_to,
            read_cost=self.read_cost(l2, misses),
            write_cost=self.write_cost(),
            far=set_to.dram if l2 == COLD else set_to.l2,
            start=set_to.start_cold if l2 == COLD else set_to.start_warm,
            off=frozenset(off),
        )

        def make(streams: Sequence[np.ndarray], blocks: int) -> Multiprocessor:
            return Multiprocessor(setup, instructions, streams, blocks, self.resident, self.chip.partitions)

        found = timed_run(make, self.streams, self.blocks, self.resident, skips)
        if found is None:
            raise MemsimError("the launch is too long to be followed in time", hint="give a smaller one")
        return LaunchTime(
            kernel=self.one.kernel,
            chip=self.chip.chip,
            clock=self.chip.sheet.clock,
            l2=l2,
            active=found.cycles,
            elapsed=found.cycles + set_to.launch,
            blocks=self.blocks,
            resident=min(self.resident, self.blocks),
            issued=found.issued,
            instructions=self.instruction_times(found.waits.tolist()),
            lacks=(*self.lacks(), *lacks),
            off=tuple(off),
            is_whole=found.is_whole,
        )

    def instruction_times(self, waits_of: Sequence[Sequence[int]]) -> tuple[InstructionTime, ...]:
        """What warps waited for before each instruction."""
        return tuple(
            InstructionTime(
                op.address,
                op.text,
                op.source.file if op.source else "",
                op.line,
                waits[0],
                {reason: cycles for reason, cycles in zip(REASONS, waits) if cycles},
            )
            for op, waits in zip(self.ops, waits_of)
        )

    def lacks(self) -> list[str]:
        """What the blocks hide that one of them stands for, in words."""
        found = []
        if not self.whole.blocks_alike:
            found.append("blocks that execute other instructions than the one in the middle of the grid")
        return found

    def read_cost(self, l2: str, misses: float) -> int:
        """Parts of a cycle that a sector takes from L2 to the busiest multiprocessor, if all of them read."""
        rates, used = self.chip.memory, self.used
        assert rates is not None  # its chip was measured
        cycles = max(1 / rates.l2_read_of_one, used / rates.l2_read)
        is_all = self.whole.blocks_replayed == self.job.launch.blocks
        footprint = self.whole.footprint if is_all else None
        loaded = loaded_sectors(self.analysis) * misses
        if l2 == COLD and footprint is not None and loaded:
            share = min(footprint.read / (loaded * self.job.launch.blocks), 1.0)
            cycles = max(cycles, share * used * self.chip.sector_bytes / self.chip.dram_bytes_a_cycle)
        return ceil(cycles * PARTS)

    def write_cost(self) -> int:
        """The same of a sector that is written."""
        rates = self.chip.memory
        assert rates is not None  # as above
        return ceil(max(1 / rates.l2_written_of_one, self.used / rates.l2_written) * PARTS)

    @property
    def used(self) -> int:
        """Multiprocessors that have a block."""
        return min(self.chip.multiprocessors, self.job.launch.blocks)


def middle_block(grid: tuple[int, int, int]) -> int:
    """The linear number of the block in the middle of a grid."""
    x, y, z = (size // 2 for size in grid)
    return x + grid[0] * (y + grid[1] * z)


def loaded_sectors(analysis: Analysis) -> int:
    """Sectors of global loads, as often as they are asked for."""
    return sum(row.sectors or 0 for row in analysis.sites if row.space == "global" and row.op == "load")


def miss_share(analysis: Analysis) -> float:
    """The share of the sectors of a block's global loads that L1 does not have, if it holds what the block
    reads: each distinct sector misses once.
    """
    footprint, loaded = analysis.trace.footprint, loaded_sectors(analysis)
    if footprint is None or not loaded:
        return 1.0
    others = sum(
        row.sectors or 0
        for row in analysis.sites
        if row.space == "global" and row.op not in ("load", "store")
    )
    return 1.0 if others else min(footprint.read / loaded, 1.0)
