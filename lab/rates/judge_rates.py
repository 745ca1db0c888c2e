"""Loops, streams and the catalogue as recorded, and whether pipes and cycles are as the bounds assume.

Counts must be equal. Cycles are a lower bound, which a loop must nearly attain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lab.experiment import ByCounters
from memsim.arch import SM_90, Arch
from memsim.bound import units_of
from memsim.launch import Launch
from memsim.least_work import L2Sectors
from memsim.model.pipes import pipe_use

CYCLES = "sm__cycles_active.max"
CLOCK = "sm__cycles_elapsed.avg.per_second"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts.sum"
#: How the names of kernels that move data begin.
STREAM = "stream_"
#: Allowance for a loop's start and end; if it took longer, the rate of its unit would be wrong.
SLOWEST_LOOP = 1.12
#: Of a stream, every sector of every access.
L2_SECTORS = "lts__t_sectors_srcunit_tex.sum"
#: Rates of `memsim.arch.chip.MemoryRates` for a cycle.
L2_RATES = ("l2_read", "l2_written", "l2_read_of_one", "l2_written_of_one")


@dataclass(frozen=True, slots=True)
class RateLaunch:
    """One launch. unit: the unit that a loop keeps busy, "" for a kernel of the catalogue.

    digest: SHA-256 of the code. executed: opcode with modifiers -> warp instructions, as counted by memsim.
    wavefronts: lower bound for the L1 data stage; tags: look-ups of the L1 tag stage. counters: ncu metric ->
    value. l2_read, l2_written, dram_bytes: lower bounds for the L2 cache and DRAM; 0 in a recording without.
    """

    name: str
    unit: str
    digest: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    executed: dict[str, int]
    wavefronts: int
    tags: int
    counters: dict[str, int]
    l2_read: int = 0
    l2_written: int = 0
    dram_bytes: int = 0

    @property
    def is_of_catalogue(self) -> bool:
        """Whether it is neither a loop nor a stream."""
        return not self.name.startswith(("loop_", STREAM))


@dataclass(frozen=True, slots=True)
class RateRecording(ByCounters):
    """All launches of one run. failed: the error of each that could not be measured."""

    launches: tuple[RateLaunch, ...]
    failed: dict[str, str] = field(default_factory=dict)

    def about(self) -> dict[str, Any]:
        """What records in JSON tell of it."""
        return {**ByCounters.about(self), "failed": self.failed}

    def notes(self, found: Sequence[Any]) -> Iterator[str]:
        """What was not measured, and how it was made."""
        for name, error in self.failed.items():
            yield f"{name}: not measured: {error}"
        yield f"{self.made}."


@dataclass(frozen=True, slots=True)
class Rated:
    """One launch. different: metric -> (predicted, measured) of unequal counts; equal: the number of equal
    ones.

    bound, by: cycles, and the unit that bounds them. own: cycles of the unit that a loop keeps busy, or 0; a
    stream may be bound by another on another product.
    cycles: measured.
    """

    launch: RateLaunch
    equal: int
    different: dict[str, tuple[int, int]]
    bound: int
    by: str
    own: int
    cycles: int

    @property
    def holds(self) -> bool:
        """Whether all counts are equal, the bound holds, and a loop is bound as expected."""
        if self.different or self.bound > self.cycles:
            return False
        return not self.own or self.cycles <= SLOWEST_LOOP * self.own

    @property
    def name(self) -> str:
        """The launch's."""
        return self.launch.name

    @property
    def cells(self) -> tuple[str, ...]:
        """Its row of the table."""
        equal = f"{self.equal} of {self.equal + len(self.different)}"
        bound, cycles = f"{self.bound:,}", f"{self.cycles:,}"
        return self.name, self.by, bound, cycles, f"{self.cycles / self.bound:.2f}", equal

    def differences(self) -> Iterator[str]:
        """The counters that differ."""
        for metric, (predicted, measured) in self.different.items():
            yield f"{self.name}: {metric}: {measured:,} and not {predicted:,}"


def judge_rates(recording: RateRecording) -> list[Rated]:
    """The results, launch by launch."""
    chip = SM_90.on(recording.device.gpu)
    return [_judge(launch, chip) for launch in recording.launches]


def _judge(launch: RateLaunch, chip: Arch) -> Rated:
    use = pipe_use(launch.executed)
    compared = {
        name: (predicted, launch.counters[name])
        for name, predicted in use.counters.items()
        if predicted is not None and name in launch.counters
    }
    is_stream = launch.name.startswith(STREAM)
    if is_stream:
        compared[L2_SECTORS] = launch.l2_read + launch.l2_written, launch.counters[L2_SECTORS]
    different = {name: pair for name, pair in compared.items() if pair[0] != pair[1]}
    if launch.wavefronts > launch.counters[WAVEFRONTS]:
        different[WAVEFRONTS] = launch.wavefronts, launch.counters[WAVEFRONTS]
    work = launch.wavefronts, launch.tags, Launch(launch.grid, launch.block), chip_at(launch, chip)
    l2 = L2Sectors(launch.l2_read, launch.l2_written)
    units = units_of(use, *work, l2=l2, dram=launch.dram_bytes)
    busiest = units[0]
    own = sum(unit.cycles for unit in units if not is_stream and unit.name == launch.unit)
    equal = len(compared) - sum(name in compared for name in different)
    return Rated(launch, equal, different, busiest.cycles, busiest.name, own, launch.counters[CYCLES])


def chip_at(launch: RateLaunch, chip: Arch) -> Arch:
    """A chip at the clock of a launch: a slower multiprocessor gets more from L2 and DRAM in a cycle."""
    sheet, memory = chip.sheet, chip.memory
    clock = launch.counters.get(CLOCK, int(sheet.clock))
    faster = max(1.0, sheet.clock / clock)
    chip = replace(chip, sheet=replace(sheet, clock=clock))
    if memory is None:
        return chip
    return replace(
        chip, boards=(replace(memory, **{name: getattr(memory, name) * faster for name in L2_RATES}),)
    )
