"""A recording: what a GPU counted for one launch of a kernel, and all that it was made with.

In: profiles of a launch, or a file. Out: `Recording`, and its file, which `documents.Recording`
describes. Recordings are never changed: a file that exists is never written again.
Left out on purpose: which recordings there are (`memsim.validate.recordings`), and what they mean.
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
    """What was launched. `size` by name; `seed` of the inputs; `options` the source was compiled with."""

    size: dict[str, int]
    seed: int
    entry: str
    options: tuple[str, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int


@dataclass(frozen=True, slots=True)
class ResultCheck:
    """The check of what the kernel computed, in the same run. `largest_error` is null if not finite."""

    reference: str
    right: bool
    largest_error: float | None


@dataclass(frozen=True, slots=True)
class Recording:
    """One launch of a kernel on a GPU.

    date: UTC, ISO 8601. code: what ran, in words. sources and ptx: SHA-256 of the files, sources by name.
    profiles: each run of the profiler; the first has a row for each instruction that touches memory.
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
        """A row for each instruction that touches memory."""
        return self.profiles[0].rows

    @property
    def size(self) -> tuple[int, ...]:
        """The problem size, in the order of the kernel's family."""
        return tuple(self.launch.size.values())

    def counter(self, metric: str) -> int | float | None:
        """A counter's value; None if it was not collected. One that several runs have: the first's."""
        return counter_of(self.profiles, metric)

    def to_dict(self) -> dict[str, Any]:
        """The recording as its file holds it."""
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
            MemsimError: not as the schema says.
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
        """Writes a new file: whole, or not at all.

        Raises:
            MemsimError: the file exists, or cannot be written.
        """
        write_record(self.to_dict(), path)


def load_recording(path: Path) -> Recording:
    """The recording in a file.

    Raises:
        MemsimError: no such file, not JSON, or not as the schema says.
    """
    return Recording.from_dict(read_record(path), str(path))


def _without_kernel(profile: dict[str, Any]) -> dict[str, Any]:
    """The launch says the kernel's name already."""
    return {name: value for name, value in profile.items() if name != "kernel"}
