"""A recording of speed: how long each launch took, of kernels and of cuBLAS in the same run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from memsim.errors import MemsimError
from memsim.files import read_json
from memsim.validate.device import (
    Date,
    Device,
    Dim3,
    Natural,
    Positive,
    Sha256,
    Text,
    check_record,
    free_path,
    on_gpu,
    write_record,
)

SCHEMA = 1
STEM = "bench"
CUBLAS = "cuBLAS"  # stands in for a kernel's name

Size = Dim3  # M, N, K
Milliseconds = Annotated[float, Meta(gt=0)]


@dataclass(frozen=True, slots=True)
class Code:
    """SHA-256 of what a kernel was made of: its sources by name, and the PTX that ran."""

    sources: Annotated[dict[str, Sha256], Meta(min_length=1)]
    ptx: Sha256


@dataclass(frozen=True, slots=True)
class Rest:
    """The last rows of C, which another launch makes: by which kernel, K divided among so many blocks."""

    kernel: Text
    rows: Positive
    parts: Positive


@dataclass(frozen=True, slots=True)
class Timing:
    """Launches of a kernel, or of cuBLAS, at one size.

    times_ms: each launch's own, in their order, or of short ones the mean of a group. beside_ms: those of
    cuBLAS just before and just after a kernel's, which met the clocks that it met. parts: among how many
    blocks K is divided; with more than one, adding them is timed, too. rest: the last rows, if another
    launch makes them.
    """

    kernel: Text
    size: Size
    times_ms: Annotated[tuple[Milliseconds, ...], Meta(min_length=1)]
    beside_ms: tuple[Milliseconds, ...] = ()
    parts: Positive = 1
    rest: Rest | None = None


#: What a file leaves out of a timing.
USUAL = (("parts", 1), ("rest", None))


@dataclass(frozen=True, slots=True)
class BenchRecording:
    """One run of the bench.

    date: UTC, ISO 8601. code: what ran, in words. cublas: its version. max_clock_mhz: of the
    multiprocessors. seed: of the inputs. kernels: all that were timed, but for cuBLAS.
    """

    date: Date
    code: Text
    cublas: Annotated[str, Meta(pattern=r"^\d+\.\d+\.\d+$")]
    multiprocessors: Positive
    max_clock_mhz: Positive
    seed: Natural
    device: Device
    kernels: Annotated[dict[str, Code], Meta(min_length=1)]
    timings: Annotated[tuple[Timing, ...], Meta(min_length=2)]

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The sizes, in the order in which they were timed."""
        return tuple(dict.fromkeys(timing.size for timing in self.timings))

    def to_dict(self) -> dict[str, Any]:
        """The recording as its file holds it."""
        record = {"schema": SCHEMA, **asdict(self)}
        record["timings"] = [
            {name: value for name, value in timing.items() if (name, value) not in USUAL}
            for timing in record["timings"]
        ]
        return record

    @staticmethod
    def from_dict(record: dict[str, Any], file: str | None = None) -> BenchRecording:
        """The inverse of `to_dict`.

        Raises:
            MemsimError: not as the schema says, or a time without its kernel's code or cuBLAS's time.
        """
        recording = check_record(record, SCHEMA, BenchRecording, file)
        there = {(timing.kernel, timing.size) for timing in recording.timings}
        for timing in recording.timings:
            kernel, size = timing.kernel, timing.size
            if kernel not in {CUBLAS, *recording.kernels}:
                raise MemsimError(f"not a recording: no code of {kernel}", file=file)
            if (CUBLAS, size) not in there or (kernel != CUBLAS and not timing.beside_ms):
                raise MemsimError(
                    f"not a recording: no time of {CUBLAS} beside {kernel} at {size}", file=file
                )
        if len(there) < len(recording.timings):
            raise MemsimError("not a recording: a kernel twice at one size", file=file)
        return recording

    def save(self, folder: Path, within: str = "") -> Path:
        """Writes a new file in the folder of the GPU below `folder`, or in one `within` that; its path.

        Raises:
            MemsimError: it cannot be written.
        """
        path = free_path(folder / self.device.slug / within, STEM)
        write_record(self.to_dict(), path)
        return path


def bench_paths(folder: Path, within: str = "") -> list[Path]:
    """All recordings of the bench, whatever GPU; `within` as in `BenchRecording.save`."""
    return sorted(folder.glob(Path("*", within, f"{STEM}*.json").as_posix()))


def load_bench(path: Path) -> BenchRecording:
    """The recording in a file.

    Raises:
        MemsimError: no such file, not JSON, or not a recording.
    """
    return BenchRecording.from_dict(read_json(path, "the recording"), str(path))


def newest_bench(folder: Path, gpu: str | None = None, within: str = "") -> BenchRecording:
    """The newest recording of the bench, on the GPU of that folder name or on any.

    Raises:
        MemsimError: there is none; then the error says on which GPUs there are.
    """
    command = "python -m studies.bench --live --record"
    paths = on_gpu(folder, bench_paths(folder, within), gpu, "of the bench", command)
    return max(map(load_bench, paths), key=lambda recording: recording.date)


def newest_of_each_gpu(folder: Path, within: str = "") -> list[BenchRecording]:
    """The newest recording of each GPU, by the GPU's name."""
    gpus = {path.relative_to(folder).parts[0] for path in bench_paths(folder, within)}
    return [newest_bench(folder, gpu, within) for gpu in sorted(gpus)]
