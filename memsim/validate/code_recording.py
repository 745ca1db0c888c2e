"""A recording of machine code: what a GPU counted for one launch, by instruction, and how it was made.

Recordings are immutable: an existing file is never overwritten. Of the code only a digest is stored.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memsim.validate.device import Device
from memsim.validate.field_types import Chip, Date, Dim3, Natural, Positive, Sha256, Text
from memsim.validate.profiles import CODE_METRICS, EVERYWHERE, CodeProfile
from memsim.validate.recording_files import check_record, read_record, write_record

SCHEMA = 1
LAUNCHED = ("kernel", "grid", "block")  # stored once, not in each profile
Size = Annotated[dict[str, Positive], Meta(min_length=1)]
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
    """A `CodeProfile` in a file. Columns are run-length encoded; those of accesses refer to `rows`."""

    passes: Positive
    counters: Annotated[dict[str, tuple[int | float, str]], Meta(min_length=1)]
    distances: list[Figure]
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


class RecordingFile(msgspec.Struct):
    """A `CodeRecording` in a file. Only those with correct results are recorded."""

    schema: Literal[1]
    name: Text
    size: Size | None
    date: Date
    ncu: Text
    device: Device
    code: CodeOrigin
    launch: CodeLaunchRecord
    result: ResultCheck | None
    profiles: Annotated[list[EncodedProfile], Meta(min_length=1)]

    def __post_init__(self) -> None:
        if self.result is not None and not self.result.right:
            raise ValueError("the result is not right")


@dataclass(frozen=True, slots=True)
class CodeRecording:
    """One launch of machine code on a GPU.

    name: in the catalogue, or the kernel's own. size: the problem size by name; None if it has none. date:
    UTC, ISO 8601. result: the check of the kernel's results in the same run; None without a reference.
    profiles: each run of the profiler; the first has the metrics of every instruction.
    """

    name: str
    size: dict[str, int] | None
    date: str
    ncu: str
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

    def to_dict(self) -> dict[str, Any]:
        """The contents of its file."""
        return {
            "schema": SCHEMA,
            **asdict(replace(self, profiles=())),
            "profiles": [
                {name: value for name, value in profile.to_dict().items() if name not in LAUNCHED}
                for profile in self.profiles
            ],
        }

    @staticmethod
    def from_dict(record: dict[str, Any], file: str | None = None) -> CodeRecording:
        """The inverse of `to_dict`.

        Raises:
            MemsimError: it does not conform to the schema.
        """
        told = check_record(record, SCHEMA, RecordingFile, file)
        launched = {name: getattr(told.launch, name) for name in LAUNCHED}
        fields = msgspec.structs.asdict(told)
        del fields["schema"]
        fields["profiles"] = tuple(
            CodeProfile.from_dict({**launched, **msgspec.structs.asdict(one)}) for one in told.profiles
        )
        return CodeRecording(**fields)

    def save(self, path: Path) -> None:
        """Write a new file atomically.

        Raises:
            MemsimError: the file exists, or cannot be written.
        """
        write_record(self.to_dict(), path)


def load_code_recording(path: Path) -> CodeRecording:
    """The recording in a file.

    Raises:
        MemsimError: no such file, not JSON, or not conforming to the schema.
    """
    return CodeRecording.from_dict(read_record(path), str(path))
