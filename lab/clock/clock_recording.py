"""A recording of the probe by clock, as the program of one file writes it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from lab.clock.clock_programs import ACTIVE_BIT
from memsim.errors import MemsimError
from memsim.validate.device import slug
from memsim.validate.recording_files import check_record, free_path, newest, read_record, write_record

SCHEMA = 1
STEM = "clock"
LANES = 32


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

    @property
    def arch(self) -> str:
        """The chip's name in compilers: sm_90 for 9.0."""
        return f"sm_{self.compute_capability.replace('.', '')}"

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

    def save(self, folder: Path) -> Path:
        """Write a new file below `folder`, named after the GPU.

        Raises:
            MemsimError: it cannot be written.
        """
        path = free_path(folder / slug(self.gpu), STEM)
        write_record({"schema": SCHEMA, **asdict(self)}, path)
        return path


def load_clock(path: Path) -> ClockRecording:
    """The recording in a file.

    Raises:
        MemsimError: no such file, not JSON, or not a recording of the probe by clock.
    """
    return clock_recording(read_record(path), str(path))


def clock_recording(record: object, file: str | None = None) -> ClockRecording:
    """What the program of one file returned or wrote.

    Raises:
        MemsimError: it is something else.
    """
    recording = check_record(record, SCHEMA, ClockRecording, file)
    digits = 4 * LANES
    complete = len(recording.rounds) == 2 and all(
        len(one.cycles) == 2
        and {len(cycles) for cycles in one.cycles} == {len(recording.tables.get(one.table, ()))}
        for one in recording.measured.values()
    )
    if not complete or any(len(row) != digits for rows in recording.tables.values() for row in rows):
        raise MemsimError("not a recording: patterns or cycles are missing", file=file)
    return recording


def newest_clock(folder: Path, gpu: str | None = None) -> ClockRecording:
    """The newest recording by clock, on the GPU of that folder name or on any.

    Raises:
        MemsimError: there is none.
    """
    paths = folder.glob(f"*/{STEM}*.json")
    return newest(folder, paths, load_clock, gpu, "by clock", "python -m lab clock --live --record")
