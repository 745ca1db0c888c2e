"""A recording: what a GPU counted for one launch of a kernel, and how it was made.

Its file format is `documents.RecordingDocument`. Recordings are immutable: an existing file is never
overwritten. Finding them is in `memsim.validate.recordings`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memsim.validate import documents
from memsim.validate.device import Device
from memsim.validate.profiles import Profile, SassRow, counter_of
from memsim.validate.recording_files import check_record, read_record, write_record

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """The launch. `size` by name; `seed` of the inputs; `options` with which the source was compiled."""

    size: dict[str, int]
    seed: int
    entry: str
    options: tuple[str, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int


@dataclass(frozen=True, slots=True)
class ResultCheck:
    """The check of the kernel's results in the same run. `largest_error` is null if not finite."""

    reference: str
    right: bool
    largest_error: float | None


@dataclass(frozen=True, slots=True)
class Recording:
    """One launch of a kernel on a GPU.

    date: UTC, ISO 8601. code: what ran, in words. sources and ptx: SHA-256 of the files, sources by name.
    profiles: each run of the profiler; the first has a row for each instruction that accesses memory.
    """

    kernel: str
    device: Device
    ncu: str
    date: str
    code: str
    sources: dict[str, str]
    ptx: str
    launch: LaunchRecord
    result: ResultCheck
    profiles: tuple[Profile, ...]

    @property
    def rows(self) -> tuple[SassRow, ...]:
        """A row for each instruction that accesses memory."""
        return self.profiles[0].rows

    @property
    def size(self) -> tuple[int, ...]:
        """The problem size, in the order of the kernel's family."""
        return tuple(self.launch.size.values())

    def counter(self, metric: str) -> int | float | None:
        """A counter's value; None if it was not collected. If several runs have it, the first one's."""
        return counter_of(self.profiles, metric)

    def to_dict(self) -> dict[str, Any]:
        """The contents of its file."""
        return {
            "schema": SCHEMA,
            **{name: getattr(self, name) for name in ("kernel", "date", "ncu", "code", "sources", "ptx")},
            "device": asdict(self.device),
            "launch": asdict(self.launch),
            "result": asdict(self.result),
            "profiles": [_without_kernel(profile.to_dict()) for profile in self.profiles],
        }

    @staticmethod
    def from_dict(record: dict[str, Any], file: str | None = None) -> Recording:
        """The inverse of `to_dict`.

        Raises:
            MemsimError: it does not conform to the schema.
        """
        check_record(record, SCHEMA, documents.RecordingDocument, file)
        launch = record["launch"]
        triples = {name: tuple(launch[name]) for name in ("options", "grid", "block")}
        return Recording(
            **{name: record[name] for name in ("kernel", "date", "ncu", "code", "sources", "ptx")},
            device=Device(**record["device"]),
            launch=LaunchRecord(**{**launch, **triples}),
            result=ResultCheck(**record["result"]),
            profiles=tuple(
                Profile.from_dict({**profile, "kernel": launch["entry"]}) for profile in record["profiles"]
            ),
        )

    def save(self, path: Path) -> None:
        """Write a new file atomically.

        Raises:
            MemsimError: the file exists, or cannot be written.
        """
        write_record(self.to_dict(), path)


def load_recording(path: Path) -> Recording:
    """The recording in a file.

    Raises:
        MemsimError: no such file, not JSON, or not conforming to the schema.
    """
    return Recording.from_dict(read_record(path), str(path))


def _without_kernel(profile: dict[str, Any]) -> dict[str, Any]:
    """The launch already has the kernel's name."""
    return {name: value for name, value in profile.items() if name != "kernel"}
