"""The probe by clock: tests the rules of shared memory, and the rates of the pipes, against cycles.

Each wavefront of a request takes the data stage the same time, which the fastest request shows. A request's
cycles in units of it, rounded, are its wavefronts. On an H200 they are, but for requests that bring more data
to the registers than their wavefronts carry: those patterns are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.clock.clock_programs import ACCESSES, ACTIVE_BIT, PIPES
from lab.experiment import verdict_cell
from lab.probe.instructions import ProbedInstruction
from lab.recordings import JSON_SCHEMA
from memsim.arch import ARCHS, SM_90, Arch
from memsim.arch.units import LINE, WARP
from memsim.errors import MemsimError
from memsim.model import shared_access
from memsim.model.pipes import pipe_use
from memsim.validate import standalone
from memsim.validate.device import check_record, program_data

LANES = 32
#: The instruction whose fastest request is one wavefront.
ONE_WAVEFRONT = "LDS32"
PARTITIONS = SM_90.partitions
#: Operations that bring data to registers.
TO_REGISTERS = ("load", "atomic", "atomic_cas")
#: A shuffle takes the data stage one cycle, whichever partition it comes from.
SHUFFLE = "SHFL"


#: Patterns that differ which are told one by one, of each instruction.
TOLD = 5


@dataclass(frozen=True, slots=True)
class Clocked:
    """One instruction. table: the name of its patterns. repeats: executions in a round of the loop.

    cycles: of each pattern, for each number of rounds.
    """

    table: str
    repeats: int
    cycles: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class ClockRecording:
    """One run on a GPU. memsim: the version that wrote the program. rounds: of each measurement.

    threads: of the only block. tables: patterns by name, four hexadecimal digits for a lane. refused: why the
    driver did not run an instruction.
    """

    gpu: str
    compute_capability: str
    driver: str
    cuda: str
    date: str
    memsim: str
    rounds: tuple[int, ...]
    threads: int
    tables: dict[str, tuple[str, ...]]
    measured: dict[str, Clocked]
    refused: dict[str, str]

    def __post_init__(self) -> None:
        complete = len(self.rounds) == 2 and all(
            len(one.cycles) == 2
            and {len(cycles) for cycles in one.cycles} == {len(self.tables.get(one.table, ()))}
            for one in self.measured.values()
        )
        digits = {len(row) for rows in self.tables.values() for row in rows}
        if not complete or digits - {4 * LANES}:
            raise ValueError("patterns or cycles are missing")

    @property
    def arch(self) -> str:
        """The chip's name in compilers: sm_90 for 9.0."""
        return f"sm_{self.compute_capability.replace('.', '')}"

    def about(self) -> dict[str, Any]:
        """What records in JSON tell of it."""
        names = ("gpu", "compute_capability", "driver", "cuda", "date", "refused")
        about = {name: getattr(self, name) for name in names}
        return {**about, "cycles_of_a_wavefront": cycles_of_a_wavefront(self)}

    def notes(self, found: Sequence[ByClock]) -> Iterator[str]:
        """What was not measured, and how it was made."""
        others = [held.what for held in found if held.key is None and not held.holds]
        if others and SHUFFLE not in others:
            used = "are used for this chip as they were measured (docs/chips.md)"
            yield f"Rates that differ from sm_90's {used}."
        for name, why in self.refused.items():
            yield f"{name}: not measured: {why}"
        cycles = cycles_of_a_wavefront(self)
        yield (
            f"Recorded {self.date} (driver {self.driver}, CUDA {self.cuda}), without counters: for accesses, "
            f"wavefronts of a request, {cycles} cycle{'s' * (cycles > 1)} each; for arithmetic, cycles of a "
            "partition for an instruction."
        )

    def patterns(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Addresses int64 [patterns, 32] and active lanes bool [patterns, 32] of an instruction."""
        rows = self.tables[self.measured[name].table]
        words = np.array([[int(row[4 * i : 4 * i + 4], 16) for i in range(LANES)] for row in rows], np.int64)
        return words & (1 << ACTIVE_BIT) - 1, words >> ACTIVE_BIT > 0

    def cycles_each(self, name: str) -> np.ndarray:
        """Cycles of the multiprocessor for one execution by one warp, float [patterns]."""
        one = self.measured[name]
        executions = (self.rounds[1] - self.rounds[0]) * one.repeats * self.threads // LANES
        less, more = np.array(one.cycles, np.int64)
        each: np.ndarray = (more - less) / executions
        return each


@dataclass(frozen=True, slots=True)
class ByClock:
    """One instruction. predicted, measured: wavefronts of each pattern that is compared; of arithmetic, the
    cycles of a partition for one. exact: the cycles behind `measured`.

    what: the access, or the machine instruction. key: space, operation and width of an access.
    """

    name: str
    what: str
    predicted: tuple[int, ...]
    measured: tuple[int, ...]
    exact: tuple[float, ...]
    key: tuple[str, str, int] | None = None

    @property
    def compared(self) -> int:
        """The number of patterns compared."""
        return len(self.predicted)

    @property
    def equal(self) -> int:
        """Of how many patterns the prediction is equal."""
        return sum(a == b for a, b in zip(self.predicted, self.measured, strict=True))

    @property
    def holds(self) -> bool:
        """Whether all are."""
        return self.predicted == self.measured

    @property
    def cells(self) -> tuple[str, ...]:
        """Its row of the table."""
        equal = f"{self.equal:,} of {self.compared:,}"
        return (
            self.name,
            self.what,
            equal,
            _range(self.predicted),
            _range(self.exact),
            verdict_cell(self.holds),
        )

    def differences(self) -> Iterator[str]:
        """The patterns that differ, in a line."""
        compared = enumerate(zip(self.predicted, self.measured, self.exact, strict=True))
        wrong = [
            f"{exact} and not {predicted} (pattern {number})"
            for number, (predicted, measured, exact) in compared
            if predicted != measured
        ]
        if wrong:
            more = f", and {len(wrong) - TOLD:,} more" if len(wrong) > TOLD else ""
            yield f"{self.name}: {', '.join(wrong[:TOLD])}{more}"


def _range(values: Sequence[float]) -> str:
    """`1 to 32`."""
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def run_clock(gpu: Callable[[], standalone.Gpu] = standalone.Gpu) -> ClockRecording:
    """Measures every instruction that the chip has, by the program that is also exported.

    Raises:
        MemsimError: driver or GPU missing.
    """
    try:
        measured = standalone.measure(gpu(), program_data())
    except standalone.Refused as error:
        raise MemsimError(str(error), hint="omit --live to see what was recorded") from None
    return check_record(measured, JSON_SCHEMA, ClockRecording)


def judge_clock(recording: ClockRecording) -> list[ByClock]:
    """The result for each instruction measured. An unknown chip is tested by the rules of sm_90."""
    arch = ARCHS.get(recording.arch, SM_90)
    accesses = [_access(recording, name, arch) for name in recording.measured if name in ACCESSES]
    return accesses + [_pipe(recording, name) for name in recording.measured if name in PIPES]


def cycles_of_a_wavefront(recording: ClockRecording) -> int:
    """For which the data stage is busy with one; 1 on an H200."""
    if ONE_WAVEFRONT not in recording.measured:
        return 1
    return max(1, round(float(recording.cycles_each(ONE_WAVEFRONT).min())))


def _access(recording: ClockRecording, name: str, arch: Arch) -> ByClock:
    one = ACCESSES[name]
    addresses, active = recording.patterns(name)
    wavefronts = shared_access(addresses, one.width, one.op, active, arch).wavefronts
    compared = wavefronts >= cycles_to_registers(one)
    wavefronts = wavefronts[compared]
    exact = recording.cycles_each(name)[compared] / cycles_of_a_wavefront(recording)
    return ByClock(
        name,
        f"{one.space} {one.op.replace('_', '.')} {one.width} B",
        tuple(wavefronts.tolist()),
        tuple(np.rint(exact).astype(int).tolist()),
        tuple(exact.round(3).tolist()),
        (one.space, one.op, one.width),
    )


def cycles_to_registers(one: ProbedInstruction) -> int:
    """For which a request may keep the way to the registers busy, 128 bytes a cycle, whatever its wavefronts.

    A compare-and-swap does so twice; a matrix never has fewer wavefronts.
    """
    if one.matrices or one.op not in TO_REGISTERS:
        return 1
    cycles = max(1, one.width * WARP // LINE)
    return 2 * cycles if one.op == "atomic_cas" else cycles


def _pipe(recording: ClockRecording, name: str) -> ByClock:
    form = PIPES[name]
    exact = recording.cycles_each(name) * PARTITIONS
    predicted = cycles_of_a_pipe(form)
    measured = tuple(np.rint(exact).astype(int).tolist())
    return ByClock(name, form, (predicted,) * len(measured), measured, tuple(exact.round(3).tolist()))


def cycles_of_a_pipe(form: str) -> int:
    """Cycles for which a machine instruction keeps its pipe busy in a partition, or the issue slot."""
    if form == SHUFFLE:
        return PARTITIONS
    return max(pipe_use({form: PARTITIONS}).cycles.values()) // PARTITIONS
