"""Finds recordings in a folder: `<gpu>/<kernel>.json`.

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
from memsim.validate.recording import Recording, load_recording
from memsim.validate.recording_files import free_path

OTHERS = {"bench", "clock", "rules"}  # other files beside them


def recording_paths(folder: Path, kernel: str = "*") -> list[Path]:
    """All recordings of a kernel, for any GPU and size."""
    paths = {*folder.glob(f"*/{kernel}.json"), *folder.glob(f"*/{kernel}.*.json")}
    return sorted(path for path in paths if path.name.partition(".")[0] not in OTHERS)


def new_path(folder: Path, recording: Recording, default_size: Sequence[int]) -> Path:
    """An unused path for a new recording."""
    size = "" if recording.size == tuple(default_size) else "." + "x".join(map(str, recording.size))
    stem = f"{recording.kernel}{size}"
    return free_path(folder / recording.device.slug, stem)


def newest_recording(folder: Path, spec: Spec, size: Sequence[int], gpu: str | None = None) -> Recording:
    """The newest recording of a kernel at a size, on the GPU of that folder name or on any.

    Raises:
        MemsimError: there is none (the hint lists those that exist), or its PTX has changed.
    """
    every = [load_recording(path) for path in recording_paths(folder, spec.name)]
    fitting = [
        recording
        for recording in every
        if recording.size == tuple(size) and gpu in (None, recording.device.slug)
    ]
    if not fitting:
        wanted = f"at {_by(size)}" + (f" on {gpu}" if gpu else "")
        there = [f"{recording.device.slug} at {_by(recording.size)}" for recording in every]
        raise MemsimError(
            f"there is no recording of {spec.name} {wanted}",
            hint=f"there are: {', '.join(dict.fromkeys(there))}" if there else _others(folder),
        )
    return max(fitting, key=lambda recording: recording.date)


def newest_of_each(folder: Path, gpu: str | None = None) -> Iterator[Recording]:
    """The newest recording for each kernel, size and GPU, by name."""
    newest: dict[tuple[str, tuple[int, ...], str], Recording] = {}
    for path in recording_paths(folder):
        recording = load_recording(path)
        key = recording.kernel, recording.size, recording.device.slug
        if gpu in (None, recording.device.slug) and (key not in newest or newest[key].date < recording.date):
            newest[key] = recording
    yield from newest.values()


def _others(folder: Path) -> str:
    kernels = sorted({path.name.partition(".")[0] for path in recording_paths(folder)})
    record = "memsim validate KERNEL --live --record makes one, on a machine with a GPU"
    return f"recorded are {', '.join(kernels)}; {record}" if kernels else record


def _by(size: Sequence[int]) -> str:
    return ",".join(map(str, size))
