"""A recording of machine code: what a GPU counted for one launch, by instruction, and how it was made.

Recordings are immutable: an existing file is never overwritten. Of the code only a digest is stored. In a
folder they are `<gpu>/code/<name>.json`; file names are for people, and the contents identify a recording.

    kernel_v4.json                  kernel_v4 at its default size
    kernel_v4.331x269x147.json      at another size
    kernel_v4.run2.json             a later recording of the same
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import accumulate, groupby
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from memsim.analysis import Analysis
from memsim.document import JsonObject
from memsim.errors import MemsimError
from memsim.files import read_json
from memsim.kernels import Spec, catalog
from memsim.validate.compare_instructions import CodeComparison, compare_code
from memsim.validate.device import (
    Chip,
    Date,
    Device,
    Dim3,
    Natural,
    Positive,
    Sha256,
    T,
    Text,
    check_record,
    free_path,
    on_gpu,
    write_record,
)
from memsim.validate.profiles import CODE_METRICS, EVERYWHERE, CodeProfile, Column, Counted

SCHEMA = 1
FOLDER = "code"
RECORD_ALL = "memsim validate --all --live --record"
RAGGED = "ragged"
ODD = (331, 269, 147, 3)  # not a multiple of any tile; K in three parts, if a kernel splits it
Figure = Natural | None


@dataclass(frozen=True, slots=True)
class CodeOrigin:
    """The code. compiler: "" if unknown. digest: SHA-256 of all kernels' names and instructions."""

    compiler: str
    arch: Chip
    digest: Sha256


@dataclass(frozen=True, slots=True)
class CodeLaunchRecord:
    """The launch. kernel: the name in the code. arguments: in words, in the kernel's order."""

    kernel: Text
    grid: Dim3
    block: Dim3
    shared_bytes: Natural
    arguments: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class ResultCheck:
    """The check of the kernel's results in the same run. `largest_error` is null if not finite."""

    reference: Text
    right: bool
    largest_error: Annotated[float, Meta(ge=0)] | None


class EncodedProfile(msgspec.Struct):
    """A `CodeProfile` in a file, but for what the launch says.

    Columns are run-length encoded; those of accesses refer to `rows`.
    """

    passes: Positive
    counters: Annotated[dict[str, tuple[int | float, str]], Meta(min_length=1)]
    distances: list[Natural]
    sass: list[Text]
    collected: list[str]
    instructions: dict[str, list[Figure]]
    accesses: dict[str, list[Figure]]

    def __post_init__(self) -> None:
        for name in (*self.collected, *self.instructions):
            if name not in CODE_METRICS:
                raise ValueError(f"{name!r} is not a metric of an instruction")
        if None in self.accesses.get("rows", [None]):
            raise ValueError("accesses have no rows")
        missing = {*self.collected} & {*EVERYWHERE} - {*self.instructions}
        if missing:
            raise ValueError(f"{', '.join(sorted(missing))} missing")
        columns: list[Sequence[Figure]] = [self.distances, *self.instructions.values()]
        for column in columns:
            times = [one for one in column[::2] if one is not None]
            if 2 * len(times) != len(column) or sum(times) != len(self.sass):
                raise ValueError(f"a column is not of {len(self.sass):,} instructions")

    @classmethod
    def of(cls, profile: CodeProfile) -> EncodedProfile:
        """As a file has it: addresses as differences, metrics of accesses only where they have values."""
        figures, size = profile.figures, len(profile.sass)
        of_accesses = [column for name, column in figures.items() if name not in EVERYWHERE]
        rows = [row for row in range(size) if any(column[row] is not None for column in of_accesses)]
        distances = [b - a for a, b in zip((0, *profile.addresses), profile.addresses, strict=False)]
        columns = {
            name: [column[row] for row in rows]
            for name, column in figures.items()
            if name not in EVERYWHERE and any(value is not None for value in column)
        }
        return cls(
            profile.passes,
            {name: (counted.value, counted.unit) for name, counted in profile.counters.items()},
            _runs(distances),
            list(profile.sass),
            list(figures),
            {name: _runs(figures[name]) for name in EVERYWHERE if name in figures},
            {"rows": list[Figure](rows), **columns},
        )

    def decoded(self, launch: CodeLaunchRecord) -> CodeProfile:
        """The profile of a launch."""
        figures: dict[str, Column] = {}
        for name in self.collected:
            if name in EVERYWHERE:
                figures[name] = tuple(_unrolled(self.instructions[name]))
            else:
                found = dict(zip(self.accesses["rows"], self.accesses.get(name, ()), strict=False))
                figures[name] = tuple(found.get(row) for row in range(len(self.sass)))
        return CodeProfile(
            launch.kernel,
            launch.grid,
            launch.block,
            self.passes,
            {name: Counted(*pair) for name, pair in self.counters.items()},
            tuple(accumulate(_unrolled(self.distances))),
            tuple(self.sass),
            figures,
        )


def _runs(values: Sequence[int | T]) -> list[int | T]:
    """Run-length encoding: 16 16 16 4 as 3 16 1 4."""
    return [part for value, run in groupby(values) for part in (len(list(run)), value)]


def _unrolled(runs: Sequence[T]) -> list[T]:
    """The inverse of `_runs`."""
    return [value for times, value in zip(runs[::2], runs[1::2], strict=True) for _ in range(times)]  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True)
class CodeRecording:
    """One launch of machine code on a GPU.

    name: in the catalogue, or the kernel's own. size: the problem size by name; None if it has none. date:
    UTC, ISO 8601. result: the check of the kernel's results in the same run; None without a reference.
    profiles: each run of the profiler; the first has the metrics of every instruction.
    """

    name: Text
    size: Annotated[dict[str, Positive], Meta(min_length=1)] | None
    date: Date
    ncu: Text
    device: Device
    code: CodeOrigin
    launch: CodeLaunchRecord
    result: ResultCheck | None
    profiles: tuple[CodeProfile, ...]

    @property
    def extents(self) -> tuple[int, ...]:
        """The problem size, in the order of the kernel's family; () outside the catalogue."""
        return tuple((self.size or {}).values())

    @property
    def title(self) -> str:
        """`kernel_v4 1024,1024,1024`."""
        return f"{self.name} {','.join(map(str, self.extents))}".rstrip()

    def to_dict(self) -> JsonObject:
        """The contents of its file."""
        return {
            "schema": SCHEMA,
            **asdict(replace(self, profiles=())),
            "profiles": [msgspec.to_builtins(EncodedProfile.of(profile)) for profile in self.profiles],
        }

    @staticmethod
    def from_dict(record: JsonObject, file: str | None = None) -> CodeRecording:
        """The inverse of `to_dict`.

        Raises:
            MemsimError: it does not conform to the schema.
        """
        told = check_record(record, SCHEMA, RecordingFile, file)
        about = (told.name, told.size, told.date, told.ncu, told.device, told.code, told.launch, told.result)
        return CodeRecording(*about, tuple(one.decoded(told.launch) for one in told.profiles))

    def save(self, path: Path) -> None:
        """Write a new file atomically.

        Raises:
            MemsimError: the file exists, or cannot be written.
        """
        write_record(self.to_dict(), path)


@dataclass(frozen=True, slots=True)
class RecordingFile(CodeRecording):
    """A `CodeRecording` as a file has it. Only those with correct results are recorded."""

    profiles: Annotated[tuple[EncodedProfile, ...], Meta(min_length=1)]  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.result is not None and not self.result.right:
            raise ValueError("the result is not right")


def load_code_recording(path: Path) -> CodeRecording:
    """The recording in a file.

    Raises:
        MemsimError: no such file, not JSON, or not conforming to the schema.
    """
    return CodeRecording.from_dict(read_json(path, "the recording"), str(path))


def code_paths(folder: Path, name: str = "*") -> list[Path]:
    """All recordings of a kernel, for any GPU, size and code."""
    return sorted({*folder.glob(f"*/{FOLDER}/{name}.json"), *folder.glob(f"*/{FOLDER}/{name}.*.json")})


def new_code_path(folder: Path, recording: CodeRecording, default_size: Sequence[int] = ()) -> Path:
    """An unused path for a new recording."""
    extents = recording.extents
    size = "" if extents == tuple(default_size) else "." + "x".join(map(str, extents))
    return free_path(folder / recording.device.slug / FOLDER, f"{recording.name}{size}")


def newest_code(folder: Path, spec: Spec, size: Sequence[int], gpu: str | None = None) -> CodeRecording:
    """The newest recording of a kernel at a size, on the GPU of that folder name or on any.

    One of the kernel's present code is preferred.

    Raises:
        MemsimError: there is none; the hint lists those that exist.
    """
    found = map(load_code_recording, code_paths(folder, spec.name))
    every = [recording for recording in found if recording.name == spec.name]
    fitting = [
        recording
        for recording in every
        if recording.extents == tuple(size) and gpu in (None, recording.device.slug)
    ]
    if not fitting:
        wanted = f"at {_by(size)}" + (f" on {gpu}" if gpu else "")
        there = dict.fromkeys(f"{recording.device.slug} at {_by(recording.extents)}" for recording in every)
        raise MemsimError(
            f"there is no recording of {spec.name} {wanted}",
            hint=f"there are: {', '.join(there)}"
            if there
            else f"memsim validate {spec.name} --live --record makes one, on a machine with a GPU",
        )
    digest = spec.kernel().origin.digest
    return max(fitting, key=lambda recording: (recording.code.digest == digest, recording.date))


def newest_code_of_each(folder: Path, gpu: str | None = None) -> Iterator[CodeRecording]:
    """The newest recording for each kernel, size and GPU, by name.

    Raises:
        MemsimError: there is none; the hint lists the GPUs with recordings.
    """
    newest: dict[tuple[str, tuple[int, ...], str], CodeRecording] = {}
    for path in on_gpu(folder, code_paths(folder), gpu, "of a kernel", RECORD_ALL):
        recording = load_code_recording(path)
        key = recording.name, recording.extents, recording.device.slug
        if key not in newest or newest[key].date < recording.date:
            newest[key] = recording
    yield from newest.values()


def _by(size: Sequence[int]) -> str:
    return ",".join(map(str, size))


def size_of(spec: Spec, wanted: str | None) -> tuple[int, ...]:
    """The size at which a kernel is validated; `wanted` is `M,N,K`, "ragged" or None for the default.

    Raises:
        MemsimError: a size that the kernel does not support.
    """
    if wanted != RAGGED:
        return tuple(spec.sizes(wanted).values())
    divisors = dict(spec.requires)  # what the kernel needs its size to be a multiple of
    steps = ((extent, divisors.get(name, 1)) for name, extent in zip(spec.family.sizes, ODD))
    return tuple(spec.sizes(tuple(-(-extent // step) * step for extent, step in steps)).values())


def replay(recording: CodeRecording, predicted: Analysis | None = None) -> CodeComparison:
    """Predict the recorded launch of a kernel of the catalogue and compare. predicted: what was already.

    Raises:
        MemsimError: no such kernel, or its machine code is not the recorded one.
    """
    spec = catalog()[recording.name]
    if spec.kernel().origin.digest != recording.code.digest:
        raise _changed(recording.name, recording.date)
    shape, launch = spec.job(recording.extents).launch, recording.launch
    if (shape.grid, shape.block, shape.shared_bytes) != (launch.grid, launch.block, launch.shared_bytes):
        raise _changed(recording.name, recording.date)
    return compare_code(recording.profiles, predicted or _analysis(spec.name, recording.extents))


def _changed(kernel: str, date: str) -> MemsimError:
    return MemsimError(
        f"{kernel} has changed since it was recorded on {date}",
        hint=f"memsim validate {kernel} --live --record makes a new recording",
    )


@cache
def _analysis(kernel: str, size: tuple[int, ...]) -> Analysis:
    """Cached, because it is the same for every GPU on which a launch was recorded."""
    return catalog()[kernel].analyze(size)
