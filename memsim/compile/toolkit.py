"""Finds NVIDIA's tools, libraries and headers: in pip's wheels, in a CUDA toolkit, on PATH."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from memsim.errors import MemsimError
from memsim.reads import note_stamp

NVRTC_WHEEL = "nvidia-cuda-nvrtc-cu12"
HEADERS_WHEEL = "nvidia-cuda-runtime-cu12"

_RELEASE = re.compile(r"\bV(\d+(?:\.\d+)+)")


def find_tool(name: str, *, wheels_first: bool = True) -> Path | None:
    """The program `name` (`nvdisasm`), or None.

    Wheels come first, because their releases are known to work; `wheels_first=False` prefers what the user
    has set up: PATH, then CUDA_HOME and CUDA_PATH.
    """
    return next(_programs(name, wheels_first), None)


def find_tools(name: str, *, wheels_first: bool = True) -> list[Path]:
    """All installed programs `name`, in the order of `find_tool`."""
    found: dict[Path, Path] = {}
    for path in _programs(name, wheels_first):
        found.setdefault(path.resolve(), path)
    return list(found.values())


def _programs(name: str, wheels_first: bool) -> Iterator[Path]:
    """The same one after the other, some of them perhaps by several paths."""
    file = name + (".exe" if sys.platform == "win32" else "")
    wheels, chosen = _in_wheels(file), _chosen(name, file)
    first = (wheels, chosen) if wheels_first else (chosen, wheels)
    usual = sorted(Path("/usr/local").glob(f"cuda*/bin/{file}"), reverse=True)
    for path in chain(*first, usual):
        if path.is_file() and os.access(path, os.X_OK):
            yield path


def _chosen(name: str, file: str) -> Iterator[Path]:
    """Where what the user has set up may be."""
    from shutil import which

    on_path = which(name)
    if on_path:
        yield Path(on_path)
    yield from (root / "bin" / file for root in _toolkits())


def tool_release(tool: Path) -> str:
    """The release of an NVIDIA program, such as `13.0.88`; empty if unknown."""
    from memsim.programs import run_program, text_of

    try:
        found = _RELEASE.search(text_of(run_program([tool, "--version"], tool.name)))
    except MemsimError:
        return ""
    return found[1] if found else ""


def wheel_folders(package: str) -> list[Path]:
    """The folders of an installed package (`nvidia.cuda_nvrtc`), without importing it."""
    try:
        spec = importlib.util.find_spec(package)
    except (ModuleNotFoundError, ValueError):
        return []
    return [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []


def header_folders() -> list[Path]:
    """The folders that contain `cuda_fp16.h` and other CUDA headers."""
    return _include_folders("nvidia.cuda_runtime", "cuda_fp16.h")


def cccl_folders() -> list[Path]:
    """The folders that contain CUB, Thrust and libcu++ (`cub/cub.cuh`, `cuda/std/limits`)."""
    return _include_folders("nvidia.cuda_cccl", "cuda/std/limits", ("", "cccl"))


def crt_folders() -> list[Path]:
    """The folders that contain `crt/mma.h`, which CUDA's headers need and their wheel lacks."""
    return _include_folders("nvidia.cuda_nvcc", "crt/mma.h")


def curand_folders() -> list[Path]:
    """The folders that contain `curand_kernel.h`, which has a wheel of its own."""
    return _include_folders("nvidia.curand", "curand_kernel.h")


def _include_folders(package: str, header: str, inside: Sequence[str] = ("",)) -> list[Path]:
    """The include folders, or those inside of them, of a wheel of CUDA 12, of one of 13, and of toolkits that
    have a header.
    """
    roots = [*wheel_folders(package), *wheel_folders("nvidia.cu13"), *_toolkits()]
    places = [root / "include" / part for root in roots for part in inside]
    return [place for place in places if (place / header).is_file()]


def _toolkits() -> list[Path]:
    return [Path(os.environ[key]) for key in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(key)]


def _in_wheels(file: str) -> Iterator[Path]:
    for root in wheel_folders("nvidia"):
        yield from sorted(root.glob(f"cu[0-9]*/bin/{file}"), reverse=True)  # cu13 before cu12
        yield from sorted(root.glob(f"cuda_*/bin/{file}"))
    for root in wheel_folders("triton"):  # Triton has its own; it is not imported
        yield root / "backends" / "nvidia" / "bin" / file


def identity(file: Path) -> list[object]:
    """A tool's file, by path, size and time: too large to hash each time."""
    note_stamp(file)
    stat = file.stat()
    return [str(file), stat.st_size, stat.st_mtime_ns]
