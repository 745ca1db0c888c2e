"""Tests whether instructions use the pipes, and for the cycles, that the bounds assume.

Counts must be equal. Cycles are a lower bound, which a loop must nearly attain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lab.rates.rates_recording import STREAM, RateLaunch, RateRecording
from lab.rates.run_loops import CLOCK, CYCLES, WAVEFRONTS
from memsim.arch import SM_90, Arch
from memsim.bound import units_of
from memsim.launch import Launch
from memsim.least_work import L2Sectors
from memsim.model.pipes import pipe_use

#: Allowance for a loop's start and end; if it took longer, the rate of its unit would be wrong.
SLOWEST_LOOP = 1.12
#: Of a stream, every sector of every access.
L2_SECTORS = "lts__t_sectors_srcunit_tex.sum"
#: Rates of `memsim.arch.chip.MemoryRates` for a cycle.
L2_RATES = ("l2_read", "l2_written", "l2_read_of_one", "l2_written_of_one")


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
