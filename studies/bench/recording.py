"""A recording of speed: how long each launch took, of kernels and of cuBLAS in the same run.

`Document` describes its file, which is never written over.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from memsim.errors import MemsimError
from memsim.validate import documents
from memsim.validate.device import Device
from memsim.validate.recording_files import check_record, free_path, read_record, write_record

SCHEMA = 1
STEM = "bench"
CUBLAS = "cuBLAS"  # stands in for a kernel's name
TEXTS = ("date", "code", "cublas", "multiprocessors", "max_clock_mhz", "seed")

Size = tuple[int, int, int]  # M, N, K
Milliseconds = Annotated[float, Meta(gt=0)]


class CodeDocument(documents.FileObject):
    """SHA-256 of what a kernel was made of. sources: every file that the PTX names, by its name there."""

    sources: Annotated[dict[str, documents.Sha256], Meta(min_length=1)]
    ptx: documents.Sha256


class RestDocument(documents.FileObject):
    """The kernel of the last rows."""

    kernel: documents.Text
    rows: documents.Positive
    parts: documents.Positive


class TimingDocument(documents.FileObject):
    """Milliseconds of a kernel, or of cuBLAS, at one size."""

    kernel: documents.Text
    size: documents.Dim3
    times_ms: Annotated[list[Milliseconds], Meta(min_length=1)]
    beside_ms: list[Milliseconds]
    parts: Annotated[int, Meta(ge=2)] | UnsetType = UNSET
    rest: RestDocument | UnsetType = UNSET


class Document(documents.FileObject):
    """A recording of speed."""

    schema: Literal[1]
    date: documents.Date
    code: documents.Text
    cublas: Annotated[str, Meta(pattern=r"^\d+\.\d+\.\d+$")]
    multiprocessors: documents.Positive
    max_clock_mhz: documents.Positive
    seed: documents.Natural
    device: documents.DeviceDocument
    kernels: Annotated[dict[str, CodeDocument], Meta(min_length=1)]
    timings: Annotated[list[TimingDocument], Meta(min_length=2)]


@dataclass(frozen=True, slots=True)
class Code:
    """SHA-256 of what a kernel was made of: its sources by name, and the PTX that ran."""

    sources: dict[str, str]
    ptx: str


@dataclass(frozen=True, slots=True)
class Rest:
    """The last rows of C, which another launch makes: by which kernel, K divided among so many blocks."""

    kernel: str
    rows: int
    parts: int


@dataclass(frozen=True, slots=True)
class Timing:
    """Launches of a kernel, or of cuBLAS, at one size.

    times_ms: each launch's own, in their order, or of short ones the mean of a group. beside_ms: those of
    cuBLAS just before and just after a kernel's, which met the clocks that it met. parts: among how many
    blocks K is divided; with more than one, adding them is timed, too. rest: the last rows, if another
    launch makes them.
    """

    kernel: str
    size: Size
    times_ms: tuple[float, ...]
    beside_ms: tuple[float, ...] = ()
    parts: int = 1
    rest: Rest | None = None


@dataclass(frozen=True, slots=True)
class BenchRecording:
    """One run of the bench.

    date: UTC, ISO 8601. code: what ran, in words. cublas: its version. max_clock_mhz: of the
    multiprocessors. seed: of the inputs. kernels: all that were timed, but for cuBLAS.
    """

    device: Device
    date: str
    code: str
    cublas: str
    multiprocessors: int
    max_clock_mhz: int
    seed: int
    kernels: dict[str, Code]
    timings: tuple[Timing, ...]

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The sizes, in the order in which they were timed."""
        return tuple(dict.fromkeys(timing.size for timing in self.timings))

    def to_dict(self) -> dict[str, Any]:
        """The recording as its file holds it."""
        return {
            "schema": SCHEMA,
            **{name: getattr(self, name) for name in TEXTS},
            "device": asdict(self.device),
            "kernels": {name: asdict(code) for name, code in self.kernels.items()},
            "timings": [
                {
                    "kernel": timing.kernel,
                    "size": list(timing.size),
                    "times_ms": list(timing.times_ms),
                    "beside_ms": list(timing.beside_ms),
                    **({"parts": timing.parts} if timing.parts > 1 else {}),
                    **({"rest": asdict(timing.rest)} if timing.rest is not None else {}),
                }
                for timing in self.timings
            ],
        }

    @staticmethod
    def from_dict(record: dict[str, Any], file: str | None = None) -> BenchRecording:
        """The inverse of `to_dict`.

        Raises:
            MemsimError: not as the schema says, or a time without its kernel's code or cuBLAS's time.
        """
        check_record(record, SCHEMA, Document, file)
        timings = tuple(
            Timing(
                timing["kernel"],
                tuple(timing["size"]),
                tuple(timing["times_ms"]),
                tuple(timing["beside_ms"]),
                timing.get("parts", 1),
                Rest(**timing["rest"]) if "rest" in timing else None,
            )
            for timing in record["timings"]
        )
        there = {(timing.kernel, timing.size) for timing in timings}
        for timing in timings:
            kernel, size = timing.kernel, timing.size
            if kernel not in {CUBLAS, *record["kernels"]}:
                raise MemsimError(f"not a recording: no code of {kernel}", file=file)
            if (CUBLAS, size) not in there or (kernel != CUBLAS and not timing.beside_ms):
                raise MemsimError(
                    f"not a recording: no time of {CUBLAS} beside {kernel} at {size}", file=file
                )
        if len(there) < len(timings):
            raise MemsimError("not a recording: a kernel twice at one size", file=file)
        return BenchRecording(
            **{name: record[name] for name in TEXTS},
            device=Device(**record["device"]),
            kernels={name: Code(**code) for name, code in record["kernels"].items()},
            timings=timings,
        )

    def save(self, folder: Path, within: str = "") -> Path:
        """Writes a new file in the folder of the GPU below `folder`, or in one `within` that; its path.

        Raises:
            MemsimError: it cannot be written.
        """
        path = free_path(folder / self.device.slug / within, STEM)
        write_record(self.to_dict(), path)
        return path


def bench_paths(folder: Path) -> list[Path]:
    """All recordings of the bench, whatever GPU."""
    return sorted({*folder.glob(f"*/{STEM}.json"), *folder.glob(f"*/{STEM}.run*.json")})


def load_bench(path: Path) -> BenchRecording:
    """The recording in a file.

    Raises:
        MemsimError: no such file, not JSON, or not a recording.
    """
    return BenchRecording.from_dict(read_record(path), str(path))


def newest_bench(folder: Path, gpu: str | None = None) -> BenchRecording:
    """The newest recording of the bench, on the GPU of that folder name or on any.

    Raises:
        MemsimError: there is none; then the error says on which GPUs there are.
    """
    paths = bench_paths(folder)
    fitting = [load_bench(path) for path in paths if gpu in (None, path.parent.name)]
    if not fitting:
        there = sorted({path.parent.name for path in paths})
        raise MemsimError(
            "there is no recording of the bench" + (f" on {gpu}" if gpu else ""),
            hint=f"there are: {', '.join(there)}"
            if there
            else "python -m studies.bench --live --record makes one, on a machine with a GPU",
        )
    return max(fitting, key=lambda recording: recording.date)


def newest_of_each_gpu(folder: Path) -> list[BenchRecording]:
    """The newest recording of each GPU, by the GPU's name."""
    return [newest_bench(folder, gpu) for gpu in sorted({path.parent.name for path in bench_paths(folder)})]
