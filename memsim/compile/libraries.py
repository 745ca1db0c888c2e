"""NVRTC, NVIDIA's compiler library: found in pip's wheels or by the system's loader, and loaded only while in
use.

CuPy would use a library that stays loaded as its own, whatever its release. What may crash or not end is
called in a process of its own (`memsim.compile.library_calls`).
"""

from __future__ import annotations

import ctypes
import marshal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memsim.compile import library_calls
from memsim.compile.toolkit import wheel_folders
from memsim.errors import MemsimError
from memsim.programs import run_program, text_of


@dataclass(frozen=True, slots=True)
class Library:
    """A library. packages: of wheels that have it, best first, as `file` (Windows: `dll`). names: for the
    system's loader, if no wheel is installed.
    """

    packages: tuple[str, ...]
    file: str
    dll: str
    names: tuple[str, ...]

    def candidates(self) -> Iterator[str]:
        """Files and names that may be it."""
        for package in self.packages:
            for folder in wheel_folders(package):
                yield from map(str, sorted(folder.glob(f"lib/{self.file}")))
                yield from map(str, sorted(folder.glob(f"bin/**/{self.dll}")))
        yield from self.names

    def path(self) -> Path | None:
        """Its file in a wheel; None if the system's loader has to find it."""
        return next((Path(found) for found in self.candidates() if Path(found).is_absolute()), None)

    @contextmanager
    def loaded(self) -> Iterator[ctypes.CDLL | None]:
        """The library for the code inside; None if it is not installed."""
        library = self._load()
        try:
            yield library
        finally:
            if library is not None:
                _unload(library)

    def _load(self) -> ctypes.CDLL | None:
        for candidate in self.candidates():
            try:
                return ctypes.CDLL(candidate)
            except OSError:
                continue
        return None


def _unload(library: ctypes.CDLL) -> None:
    """Unload a library, which ctypes itself never does."""
    import _ctypes

    if sys.platform == "win32":
        _ctypes.FreeLibrary(library._handle)
    else:
        _ctypes.dlclose(library._handle)


_WINDOWS = sys.platform == "win32"
NVRTC = Library(
    packages=("nvidia.cuda_nvrtc", "nvidia.cu13"),  # CUDA 12 is preferred to 13
    file="libnvrtc.so*",
    dll="nvrtc64_*_0.dll",
    names=("nvrtc64_120_0.dll", "nvrtc64_130_0.dll")
    if _WINDOWS
    else ("libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so"),
)

_PROGRAM = Path(library_calls.__file__)


def call_nvrtc(*arguments: Any, file: str | None = None) -> list[bytes] | None:
    """What `library_calls.nvrtc` answers; None if NVRTC is not installed.

    arguments: byte strings, and lists and tuples of them. file: what it reads.

    Raises:
        MemsimError: it did not finish in time, or crashed.
    """
    question = marshal.dumps((list(NVRTC.candidates()), arguments))
    done = run_program([sys.executable, "-I", "-S", _PROGRAM], "NVRTC", file=file, given=question)
    if done.returncode != 0:
        hint = text_of(done).strip()
        raise MemsimError(f"NVRTC crashed ({done.returncode})", file=file, hint=hint[-2000:] or None)
    return list(_parts(done.stdout)) or None


def _parts(answer: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(answer):
        size = int.from_bytes(answer[at : at + 8], "little")
        yield answer[at + 8 : at + 8 + size]
        at += 8 + size
