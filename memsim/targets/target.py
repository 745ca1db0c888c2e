"""A target: from what a user writes, on a command line, in a configuration or in a test, to a `Job`.

In: the name of a catalogue kernel or of a file, and what is said of its launch, by name. Out: a `Job`. There
is no other place where one is read. Left out on purpose: analyzing it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from memsim import api
from memsim.arch import get_arch
from memsim.captured.launch_json import read_launch
from memsim.captured.triton_cache import is_cache, read_cache
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.kernels import Catalog, Dispatcher, Spec, catalog, read_catalog
from memsim.launch import Launch, dim3


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of target, in words, and what can be said of it."""

    what: str
    keys: tuple[str, ...]


COMMON = ("name", "arch", "blocks", "max_steps")
LAUNCH = (*COMMON, "kernel", "grid", "block", "args", "shared_bytes")
CATALOGUE = Kind("a catalogue kernel", (*COMMON, "size", "code"))
CUDA = Kind("a CUDA file", (*LAUNCH, "options", "code", "compiler"))
TARGET = Kind("a target of a project", ("arch", "blocks", "max_steps", "code"))
PTX = Kind("a PTX file", (*LAUNCH, "code"))
BINARY = Kind("a file of machine code", LAUNCH)
LAUNCHED = Kind("a launch", COMMON)
CACHED = Kind("a folder of Triton's cache", (*COMMON, "kernel", "grid", "args"))
FILES = {
    ".json": LAUNCHED,
    **dict.fromkeys(api.SOURCE_SUFFIXES, CUDA),
    ".ptx": PTX,
    **dict.fromkeys(api.BINARY_SUFFIXES, BINARY),
}


def is_file(target: str) -> bool:
    """Whether a target is a file, by its suffix, or a cache; else it is a kernel of the catalogue."""
    return Path(target).suffix in FILES or is_cache(Path(target))


def kind_of(target: str) -> Kind:
    """What a target is."""
    if Path(target).suffix in FILES:
        return FILES[Path(target).suffix]
    return CACHED if is_cache(Path(target)) else CATALOGUE


def read_job(
    target: str,
    said: Mapping[str, Any],
    *,
    folder: Path = Path(),
    kernels: Path | None = None,
    where: str = "args",
    spell: Callable[[str], str] = str,
) -> Job:
    """The job of a target.

    Args:
        target: a kernel of the catalogue, or a file.
        said: values by the keys of its `Kind`.
        folder: what file names are relative to.
        kernels: the folder of another catalogue than the one that ships.
        where: what errors call the place of the arguments.
        spell: how the user writes a key.

    Raises:
        MemsimError: a key that makes no sense, a value that cannot be, no such kernel, or no launch.
    """
    if kind_of(target) is CACHED:
        return cached_job(target, said, folder=folder, where=where, spell=spell)
    if is_file(target):
        return file_job(target, said, folder=folder, where=where, spell=spell)
    return catalogue_job(target, said, kernels=kernels, spell=spell)


def catalogue_job(
    kernel: str,
    said: Mapping[str, Any],
    *,
    kernels: Path | None = None,
    spell: Callable[[str], str] = str,
) -> Job:
    """The job of a kernel of the catalogue; as `read_job`."""
    check_keys(CATALOGUE, said, spell)
    job = replace(catalogue(kernels)[kernel].job(said.get("size")), name=said.get("name", kernel))
    return vary(job, said)


def file_job(
    file: str,
    said: Mapping[str, Any],
    *,
    folder: Path = Path(),
    where: str = "args",
    spell: Callable[[str], str] = str,
) -> Job:
    """The job of a kernel of a file, whatever its suffix; as `read_job`."""
    kind = FILES.get(Path(file).suffix, BINARY)
    check_keys(kind, said, spell)
    if kind is LAUNCHED:
        launched = read_launch(folder / file)
        return vary(launched.job(name=said.get("name", launched.kernel.title)), said)
    if said.get("grid") is None or said.get("block") is None:
        raise MemsimError(f"{file} needs {spell('grid')} and {spell('block')}")
    kernel = api.KernelFile(
        folder=folder,
        file=Path(file).as_posix(),
        name=said.get("kernel"),
        options=tuple(said.get("options", ())),
        compiler=said.get("compiler"),
    )
    launch = Launch(dim3(said["grid"], "grid"), dim3(said["block"], "block"), said.get("shared_bytes", 0))
    name = said.get("name", kernel.name or Path(file).stem)
    return vary(Job(kernel, launch, tuple(said.get("args", ())), name=name, where=where), said)


def cached_job(
    cache: str,
    said: Mapping[str, Any],
    *,
    folder: Path = Path(),
    where: str = "args",
    spell: Callable[[str], str] = str,
) -> Job:
    """The job of a kernel in a folder of Triton's cache; as `read_job`."""
    check_keys(CACHED, said, spell)
    if said.get("grid") is None:
        raise MemsimError(f"{cache} needs {spell('grid')}")
    launched = read_cache(folder / cache, said["grid"], said.get("args", ()), said.get("kernel"), where)
    return vary(launched.job(name=said.get("name", launched.kernel.title)), said)


def vary(job: Job, said: Mapping[str, Any]) -> Job:
    """The job with what is said of any target: `blocks`, `max_steps`, `arch` and `code`."""
    kernel = job.kernel
    if said.get("code") and isinstance(kernel, (Spec, api.KernelFile)):
        kernel = replace(kernel, code=said["code"])
    return replace(
        job,
        kernel=kernel,
        arch=get_arch(said.get("arch", job.arch)),
        blocks=said.get("blocks", job.blocks),
        max_steps=said.get("max_steps", job.max_steps),
    )


def check_keys(kind: Kind, said: Mapping[str, Any], spell: Callable[[str], str] = str) -> None:
    """Is all that is said one of its keys? What would change nothing is a mistake of the user's.

    Raises:
        MemsimError: it is not.
    """
    for key in said:
        if key not in kind.keys:
            near = get_close_matches(key, kind.keys, n=1)
            hint = f"did you mean {spell(near[0])}?" if near else None
            raise MemsimError(f"{spell(key)} makes no sense with {kind.what}", hint=hint)


@cache
def catalogue(kernels: Path | None = None) -> Mapping[str, Spec | Dispatcher]:
    """The catalogue that ships, or the one in a folder."""
    return catalog() if kernels is None else Catalog(read_catalog(kernels / "catalog.toml"))
