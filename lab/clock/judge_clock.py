"""Tests the rules of shared memory, and the rates of the pipes, against cycles.

Each wavefront of a request takes the data stage the same time, which the fastest request shows. A request's
cycles in units of it, rounded, are its wavefronts. On an H200 they are, but for requests that bring more data
to the registers than their wavefronts carry: those patterns are not compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lab.clock.clock_programs import ACCESSES, PIPES
from lab.clock.clock_recording import ClockRecording
from lab.probe.instructions import ProbedInstruction
from memsim.arch import ARCHS, SM_90, Arch
from memsim.arch.units import LINE, WARP
from memsim.model import shared_access
from memsim.model.pipes import pipe_use

#: The instruction whose fastest request is one wavefront.
ONE_WAVEFRONT = "LDS32"
PARTITIONS = SM_90.partitions
#: Operations that bring data to registers.
TO_REGISTERS = ("load", "atomic", "atomic_cas")
#: A shuffle takes the data stage one cycle, whichever partition it comes from.
SHUFFLE = "SHFL"


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
