"""A recording of machine code: what a GPU counted for one launch, by instruction, and what it was made with.

In: profiles of a launch, or a file. Out: `CodeRecording`, and its file, which
`documents.CodeRecording` describes. Recordings are never changed: a file that exists is never written again.
Left out on purpose: the code itself, of which only the digest is kept, and what the figures mean.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memsim.errors import MemsimError
from memsim.validate import documents
from memsim.validate.code_profile import EVERYWHERE, CodeProfile
from memsim.validate.device import Device
from memsim.validate.recording import ResultCheck
from memsim.validate.recording_files import check_record, read_record, write_record

SCHEMA = 1
PLAIN = ("name", "size", "date", "ncu")
LAUNCHED = ("kernel", "grid", "block")  # said once, and not in each profile


@dataclass(frozen=True, slots=True)
class CodeOrigin:
    """What ran. compiler: "" if that is not known. digest: SHA-256 of the code, as in `Trace.origin`."""

    compiler: str
    arch: str
    digest: str


@dataclass(frozen=True, slots=True)
class CodeLaunchRecord:
    """What was launched. kernel: the name in the code. arguments: in words, in the kernel's order."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CodeRecording:
    """One launch of machine code on a GPU.

    name: in the catalogue, or the kernel's own. size: the problem's, by name; None if it has none.
    date: UTC, ISO 8601. result: the check of what was computed, in the same run; None without a reference.
    profiles: each run of the profiler; the first has the figures of every instruction.
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
        """The recording as its file holds it."""
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
            MemsimError: not as the schema says.
        """
        check_record(record, SCHEMA, documents.CodeRecordingDocument, file)
        launch = record["launch"]
        triples = {name: tuple(launch[name]) for name in ("grid", "block", "arguments")}
        launched = {name: launch[name] for name in LAUNCHED}
        for one in record["profiles"]:
            missing = {*one["collected"]} & {*EVERYWHERE} - {*one["instructions"]}
            if missing:
                raise MemsimError(f"not a recording: there is no {', '.join(sorted(missing))}", file=file)
        return CodeRecording(
            **{name: record[name] for name in PLAIN},
            device=Device(**record["device"]),
            code=CodeOrigin(**record["code"]),
            launch=CodeLaunchRecord(**{**launch, **triples}),
            result=None if record["result"] is None else ResultCheck(**record["result"]),
            profiles=tuple(CodeProfile.from_dict({**launched, **one}) for one in record["profiles"]),
        )

    def save(self, path: Path) -> None:
        """Writes a new file: whole, or not at all.

        Raises:
            MemsimError: the file exists, or cannot be written.
        """
        write_record(self.to_dict(), path)


def load_code_recording(path: Path) -> CodeRecording:
    """The recording in a file.

    Raises:
        MemsimError: no such file, not JSON, or not as the schema says.
    """
    return CodeRecording.from_dict(read_record(path), str(path))
