"""The constants of `memsim.time` that a measurement decides, beside what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lab.time.run_time import TimeRecording
from memsim.time.latencies import Latencies

#: Cycles by which a constant may differ from a measurement that holds other things, too.
SLACK = 2
#: Of a hop, beside the load; an L1 hit takes the rest.
HOP = 53

Measured = Callable[[TimeRecording, Latencies], float]


def _chain(op: str, registers: int = 1) -> Measured:
    """Of a chain's step, what comes after the memory pipe got so many registers and served a wavefront."""
    sent = 2 * registers
    return lambda one, set_to: one.value("chain", 0, op=op, warps=1) - set_to.to_memory - sent - 1


def _barrier(one: TimeRecording, set_to: Latencies) -> float:
    """Of the step of 32 warps less than that of 8, for each warp."""
    steps = [one.value("chain", op="bar_sync", warps=warps) for warps in (8, 32)]
    return (steps[1] - steps[0]) / 24


def _hop(cold: int) -> Measured:
    def measured(one: TimeRecording, set_to: Latencies) -> float:
        hops = [one.value("hops", megabytes=4, cold=cold, sm=sm) for sm in (0, 1, 40, 100)]
        return sum(hops) / len(hops) - HOP - set_to.to_memory - 4

    return measured


#: Constant -> what is measured of it, and by how much it may be off.
MEASURED: dict[str, tuple[Measured, float]] = {
    "shared": (_chain("lds32"), SLACK),
    "atomic_shared": (_chain("atoms", 2), SLACK),
    "swap_shared": (_chain("cass", 3), SLACK),
    "shuffle": (_chain("shfl", 2), SLACK),
    "l1_hit": (_chain("ldg32"), SLACK),
    "match": (lambda one, _: one.value("chain", op="match_any", warps=1) - 1, SLACK),
    "redux": (lambda one, _: one.value("chain", op="redux", warps=1) - 1, SLACK),
    "multi_function": (lambda one, _: one.value("chain", op="mufu_ex2", warps=1) - 8, SLACK),
    "double": (lambda one, _: one.value("chain", op="dfma", warps=1) - 2, SLACK),
    "arrival": (_barrier, 0.5),
    "fence": (lambda one, _: one.value("chain", op="membar_gl", warps=1), 10),
    "l2": (_hop(0), 15),
    "dram": (_hop(1), 60),
}


@dataclass(frozen=True, slots=True)
class TimedConstant:
    """A constant. value: as it is set. measured: as recorded. slack: by which they may differ."""

    name: str
    value: int
    measured: float
    slack: float

    @property
    def holds(self) -> bool:
        """Whether it is as measured."""
        return abs(self.value - self.measured) <= self.slack

    @property
    def cells(self) -> tuple[str, ...]:
        """Its row of the table."""
        return self.name, str(self.value), f"{self.measured:.1f}", "holds" if self.holds else "differs"

    def differences(self) -> Iterator[str]:
        """How far it is off."""
        if not self.holds:
            yield f"{self.name}: {self.measured:.1f} and not {self.value}"


def judge_time(recording: TimeRecording) -> list[TimedConstant]:
    """Each constant that is measured alone."""
    set_to = Latencies()
    return [
        TimedConstant(name, getattr(set_to, name), measured(recording, set_to), slack)
        for name, (measured, slack) in MEASURED.items()
    ]
