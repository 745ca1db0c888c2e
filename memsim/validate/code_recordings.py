"""Finds recordings of machine code in a folder: `<gpu>/code/<name>.json`.

File names are for people, as in `memsim.validate.recordings`; the contents identify a recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from memsim.kernels import Spec
from memsim.validate.code_recording import CodeRecording, load_code_recording
from memsim.validate.recording_files import free_path

FOLDER = "code"


def code_paths(folder: Path, name: str = "*") -> list[Path]:
    """All recordings of a kernel, for any GPU, size and code."""
    return sorted({*folder.glob(f"*/{FOLDER}/{name}.json"), *folder.glob(f"*/{FOLDER}/{name}.*.json")})


def new_code_path(folder: Path, recording: CodeRecording, default_size: Sequence[int] = ()) -> Path:
    """An unused path for a new recording."""
    extents = recording.extents
    size = "" if extents == tuple(default_size) else "." + "x".join(map(str, extents))
    return free_path(folder / recording.device.slug / FOLDER, f"{recording.name}{size}")


def newest_code(
    folder: Path, spec: Spec, size: Sequence[int], gpu: str | None = None
) -> CodeRecording | None:
    """The newest recording of a kernel's present code, on the GPU of that folder name or on any."""
    digest = spec.kernel().origin.digest
    found = (load_code_recording(path) for path in code_paths(folder, spec.name))
    fitting = [
        recording
        for recording in found
        if (recording.name, recording.extents, recording.code.digest) == (spec.name, tuple(size), digest)
        and gpu in (None, recording.device.slug)
    ]
    return max(fitting, key=lambda recording: recording.date, default=None)


def newest_code_of_each(folder: Path, gpu: str | None = None) -> Iterator[CodeRecording]:
    """The newest recording for each kernel, size and GPU, by name."""
    newest: dict[tuple[str, tuple[int, ...], str], CodeRecording] = {}
    for path in code_paths(folder):
        recording = load_code_recording(path)
        key = recording.name, recording.extents, recording.device.slug
        if gpu in (None, recording.device.slug) and (key not in newest or newest[key].date < recording.date):
            newest[key] = recording
    yield from newest.values()
