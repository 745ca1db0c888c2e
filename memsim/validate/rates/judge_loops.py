"""Tests whether instructions use the pipes, and for the cycles, that the bounds assume.

Counts must be equal. Cycles are a lower bound, which a loop must nearly attain.
"""

from __future__ import annotations

from dataclasses import dataclass

from memsim.bound import units_of
from memsim.launch import Launch
from memsim.model.pipes import pipe_use
from memsim.validate.rates.rates_recording import RateLaunch, RateRecording
from memsim.validate.rates.run_loops import CYCLES, WAVEFRONTS

#: Allowance for a loop's start and end; if it took longer, the rate of its unit would be wrong.
SLOWEST_LOOP = 1.12


@dataclass(frozen=True, slots=True)
class Rated:
    """One launch. different: metric -> (predicted, measured) of unequal counts; equal: the number of equal
    ones.

    bound, by: cycles, and the unit that bounds them. cycles: measured.
    """

    launch: RateLaunch
    equal: int
    different: dict[str, tuple[int, int]]
    bound: int
    by: str
    cycles: int

    @property
    def holds(self) -> bool:
        """Whether all counts are equal, the bound holds, and a loop is bound as expected."""
        if self.different or self.bound > self.cycles:
            return False
        return not self.launch.unit or (
            self.by == self.launch.unit and self.cycles <= SLOWEST_LOOP * self.bound
        )


def judge_rates(recording: RateRecording) -> list[Rated]:
    """The results, launch by launch."""
    return [_judge(launch) for launch in recording.launches]


def _judge(launch: RateLaunch) -> Rated:
    use = pipe_use(launch.executed)
    compared = {
        name: (predicted, launch.counters[name])
        for name, predicted in use.counters.items()
        if predicted is not None and name in launch.counters
    }
    different = {name: pair for name, pair in compared.items() if pair[0] != pair[1]}
    if launch.wavefronts > launch.counters[WAVEFRONTS]:
        different[WAVEFRONTS] = launch.wavefronts, launch.counters[WAVEFRONTS]
    busiest = units_of(use, launch.wavefronts, launch.tags, Launch(launch.grid, launch.block))[0]
    equal = len(compared) - sum(name in compared for name in different)
    return Rated(launch, equal, different, busiest.cycles, busiest.name, launch.counters[CYCLES])
