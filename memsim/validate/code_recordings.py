"""Finds recordings of machine code in a folder: `<gpu>/code/<name>.json`.

File names are for people; the contents identify a recording.

    kernel_v4.json                  kernel_v4 at its default size
    kernel_v4.331x269x147.json      at another size
    kernel_v4.run2.json             a later recording of the same
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from memsim.errors import MemsimError
from memsim.kernels import Spec
from memsim.validate.code_recording import CodeRecording, load_code_recording
from memsim.validate.recording_files import free_path, on_gpu

FOLDER = "code"
RECORD_ALL = "memsim validate --all --live --record"


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
