"""A recording of machine code: what a GPU counted for one launch, by instruction, and how it was made.

Its file format is `documents.CodeRecordingDocument`. Recordings are immutable: an existing file is never
overwritten. Of the code only a digest is stored.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memsim.errors import MemsimError
from memsim.validate import documents
from memsim.validate.code_profile import EVERYWHERE, CodeProfile
from memsim.validate.device import Device
from memsim.validate.recording_files import check_record, read_record, write_record

SCHEMA = 1
PLAIN = ("name", "size", "date", "ncu")
LAUNCHED = ("kernel", "grid", "block")  # stored once, not in each profile


@dataclass(frozen=True, slots=True)
class CodeOrigin:
    """The code. compiler: "" if unknown. digest: SHA-256 of the code, as in `Trace.origin`."""

    compiler: str
    arch: str
    digest: str


@dataclass(frozen=True, slots=True)
class CodeLaunchRecord:
    """The launch. kernel: the name in the code. arguments: in words, in the kernel's order."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResultCheck:
    """The check of the kernel's results in the same run. `largest_error` is null if not finite."""

    reference: str
    right: bool
    largest_error: float | None


@dataclass(frozen=True, slots=True)
class CodeRecording:
    """One launch of machine code on a GPU.

    name: in the catalogue, or the kernel's own. size: the problem size by name; None if it has none. date:
    UTC, ISO 8601. result: the check of the kernel's results in the same run; None without a reference.
    profiles: each run of the profiler; the first has the metrics of every instruction.
    """

    name: str
    size: dict[str, int] | None
    device: Device
    ncu: str
    date: str
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
            **{name: getattr(self, name) for name in PLAIN},
            "device": asdict(self.device),
            "code": asdict(self.code),
            "launch": asdict(self.launch),
            "result": None if self.result is None else asdict(self.result),
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
        check_record(record, SCHEMA, documents.CodeRecordingDocument, file)
        launch = record["launch"]
        triples = {name: tuple(launch[name]) for name in ("grid", "block", "arguments")}
        launched = {name: launch[name] for name in LAUNCHED}
        for one in record["profiles"]:
            missing = {*one["collected"]} & {*EVERYWHERE} - {*one["instructions"]}
            if missing:
                raise MemsimError(f"not a recording: {', '.join(sorted(missing))} missing", file=file)
        return CodeRecording(
            **{name: record[name] for name in PLAIN},
            device=Device(**record["device"]),
            code=CodeOrigin(**record["code"]),
            launch=CodeLaunchRecord(**{**launch, **triples}),
            result=None if record["result"] is None else ResultCheck(**record["result"]),
            profiles=tuple(CodeProfile.from_dict({**launched, **one}) for one in record["profiles"]),
        )

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
