"""A recording of the loops and of the catalogue: executed instructions, and the chip's counters."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

from memsim.validate.device import Device
from memsim.validate.recording_files import check_record, free_path, newest, read_record, write_record

SCHEMA = 1
FOLDER = STEM = "rates"
#: How the names of kernels that move data begin.
STREAM = "stream_"


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
class RateRecording:
    """All launches of one run. date: UTC, ISO 8601. failed: the error of each that could not be measured."""

    device: Device
    ncu: str
    date: str
    launches: tuple[RateLaunch, ...]
    failed: dict[str, str] = field(default_factory=dict)

    def save(self, folder: Path, begun: Path | None = None) -> Path:
        """Write a new file below `folder`, named after the GPU. begun: a file of the same run, to replace.

        Raises:
            MemsimError: it cannot be written.
        """
        path = begun or free_path(folder / self.device.slug / FOLDER, STEM)
        write_record({"schema": SCHEMA, **asdict(self)}, path, replaces=begun is not None)
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
    return newest(folder, paths, load_rates, gpu, "of rates", "python -m lab rates --live --record")
