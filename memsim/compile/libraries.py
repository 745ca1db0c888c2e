"""NVIDIA's compiler libraries: found in pip's wheels or by the system's loader, and loaded only while in use.

CuPy would use a library that stays loaded as its own, whatever its release.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memsim.compile.toolkit import wheel_folders


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
NVJITLINK = Library(
    packages=("nvidia.nvjitlink", "nvidia.cu13"),
    file="libnvJitLink.so*",
    dll="nvJitLink_*_0.dll",
    names=("nvJitLink_120_0.dll", "nvJitLink_130_0.dll")
    if _WINDOWS
    else ("libnvJitLink.so.12", "libnvJitLink.so.13"),
)
