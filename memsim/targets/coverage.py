"""Which kernels of a project's CUDA files its targets check, and which they do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from memsim.api.kernel_file import KernelFile
from memsim.errors import MemsimError
from memsim.files import file_exists, read_bytes
from memsim.guard.outcome import Coverage, UnguardedKernel
from memsim.job import Job
from memsim.reads import listed
from memsim.source.kernels import kernels
from memsim.targets.project import OWN_FILE, Base, Project
from memsim.targets.revision import text_at
from memsim.targets.source_launch import kernel_of, launching_text_of

SUFFIXES = (".cu", ".cuh")
#: A folder with more than so many folders is no project's own.
MOST_FOLDERS = 5_000


def coverage_of(project: Project, chosen: Sequence[Job], cache: Path | None = None) -> Coverage:
    """The kernels that are defined in CUDA files below the project's folder, and those without a target.

    Hidden folders, links, the cache, and folders with a configuration of their own are left out. Nothing is
    counted if no target is of a CUDA file.
    """
    guarded = set(filter(None, map(_definition, chosen)))
    if not guarded:
        return Coverage()
    found = {}
    for path in _cuda_files(project.folder, cache):
        for kernel in kernels(read_bytes(path).decode("utf-8", "replace")):
            file = path.relative_to(project.folder).as_posix()
            shown = file if file.isprintable() else ascii(file)
            found[path.resolve(), kernel.plain] = UnguardedKernel(kernel.plain, shown, kernel.line)
    unguarded = tuple(one for key, one in found.items() if key not in guarded)
    base = project.base
    if base is None:
        return Coverage(len(found), unguarded)
    folder = project.folder.resolve().relative_to(base.repository.resolve()).as_posix()
    before = {file: _kernels_at(base, f"{folder}/{file}") for file in {one.file for one in unguarded}}
    unguarded = tuple(replace(one, is_new=one.name not in before[one.file]) for one in unguarded)
    return Coverage(len(found), unguarded, gone=base.gone)


def _kernels_at(base: Base, place: str) -> set[str]:
    """The kernels that a file of the base's revision defines."""
    text = text_at(base.repository, base.known, PurePosixPath(place).as_posix())
    return {kernel.plain for kernel in kernels(text or "")}


def _definition(job: Job) -> tuple[Path, str] | None:
    """The file that defines a target's kernel, and its plain name; None if it is of no CUDA source."""
    file = job.kernel
    if not isinstance(file, KernelFile) or Path(file.file).suffix not in SUFFIXES:
        return None
    path = file.folder / file.file
    try:
        text = launching_text_of(file)
    except (MemsimError, FileNotFoundError):
        return None
    kernel = kernel_of(text, file.name)
    return None if kernel is None else ((Path(kernel.file) if kernel.file else path).resolve(), kernel.plain)


def _cuda_files(folder: Path, cache: Path | None) -> Iterator[Path]:
    """The CUDA files below a folder, in order, but for the cache's."""
    waiting = [folder]
    for _ in range(MOST_FOLDERS):
        if not waiting:
            return
        here = waiting.pop()
        inside: set[str] = set()
        for suffix in SUFFIXES:
            names = listed(here / f"*{suffix}")
            inside |= {name for name in names if name.endswith("/") and not name.startswith(".")}
            files = (here / name for name in names if not name.endswith("/"))
            yield from (file for file in files if not file.is_symlink() and file_exists(file))
        folders = (here / name for name in sorted(inside, reverse=True))
        waiting += [one for one in folders if one != cache and not file_exists(one / OWN_FILE)]
