"""A recording of the loops and of the catalogue: executed instructions, and the chip's counters."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from memsim.validate.device import Device
from memsim.validate.recording_files import check_record, free_path, on_gpu, read_record, write_record

SCHEMA = 1
FOLDER = STEM = "rates"


@dataclass(frozen=True, slots=True)
class RateLaunch:
    """One launch. unit: the unit that a loop keeps busy, "" for a kernel of the catalogue.

    digest: SHA-256 of the code. executed: opcode with modifiers -> warp instructions, as counted by memsim.
    wavefronts: lower bound for the L1 data stage; tags: look-ups of the L1 tag stage. counters: ncu metric ->
    value.
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


@dataclass(frozen=True, slots=True)
class RateRecording:
    """All launches of one run. date: UTC, ISO 8601."""

    device: Device
    ncu: str
    date: str
    launches: tuple[RateLaunch, ...]

    def save(self, folder: Path) -> Path:
        """Write a new file below `folder`, named after the GPU.

        Raises:
            MemsimError: it cannot be written.
        """
        path = free_path(folder / self.device.slug / FOLDER, STEM)
        write_record({"schema": SCHEMA, **asdict(self)}, path)
        return path


def load_rates(path: Path) -> RateRecording:
    """The recording in a file.

    Raises:
        MemsimError: no such file, not JSON, or not a recording of rates.
    """
    return check_record(read_record(path), SCHEMA, RateRecording, str(path))


def newest_rates(folder: Path, gpu: str | None = None) -> RateRecording:
    """The newest recording of rates, on the GPU of that folder name or on any.

    Raises:
        MemsimError: there is none.
    """
    paths = folder.glob(f"*/{FOLDER}/*.json")
    fitting = on_gpu(folder, paths, gpu, "of rates", "memsim probe --rates --live --record")
    return max(map(load_rates, fitting), key=lambda recording: recording.date)
