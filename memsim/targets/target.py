"""Reads a target, from the command line, a configuration or a test, as a `Job`. All of them use
this module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from memsim.api import kernel_file, loading
from memsim.arch import get_arch, plain_name
from memsim.boundary import check_inside, confinement
from memsim.captured.cache_files import is_cache
from memsim.errors import MemsimError
from memsim.files import file_exists, folder_exists
from memsim.job import Job
from memsim.kernels import Catalog, Spec, catalog, read_catalog
from memsim.launch import Launch, dim3
from memsim.trace.suffixes import is_trace
from memsim.trace.trace import TraceFile

if TYPE_CHECKING:
    from memsim.captured.launched import Launched
    from memsim.sketch.python_function import PythonFunction
    from memsim.targets.offers import Said, Spell


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of target, in words, and the keys that apply to it."""

    what: str
    keys: tuple[str, ...]


COMMON = ("name", "arch", "blocks", "max_steps")
LAUNCH = (*COMMON, "kernel", "grid", "block", "args", "shared_bytes", "cluster", "allow_out_of_bounds")
CATALOGUE = Kind("a catalogue kernel", (*COMMON, "size"))
CUDA = Kind("a CUDA file", (*LAUNCH, "let", "options", "compiler"))
TARGET = Kind("a target of a project", ("arch", "blocks", "max_steps", "allow_out_of_bounds"))
PTX = Kind("a PTX file", LAUNCH)
BINARY = Kind("a file of machine code", LAUNCH)
PYTHON_KEYS = ("name", "arch", "blocks", "kernel", "grid", "block", "args", "options")
PYTHON = Kind("a function in Python", PYTHON_KEYS)
SAVED = Kind("a saved trace", ("name", "arch", "kernel"))
LAUNCHED = Kind("a launch", (*COMMON, "allow_out_of_bounds"))
CACHED = Kind("a folder of Triton's cache", (*COMMON, "kernel", "grid", "args", "allow_out_of_bounds"))
FILES = {
    ".py": PYTHON,
    ".json": LAUNCHED,
    **dict.fromkeys(loading.SOURCE_SUFFIXES, CUDA),
    ".ptx": PTX,
    **dict.fromkeys(loading.BINARY_SUFFIXES, BINARY),
}


def is_file(target: str) -> bool:
    """Whether a target is a file or cache; else it is a kernel of the catalogue."""
    return kind_of(target) is not CATALOGUE


def _is_program(path: Path) -> bool:
    if not file_exists(path):
        return False
    from memsim.sass.binary import CONTAINERS

    with path.open("rb") as file:
        return file.read(8).startswith(CONTAINERS)


def may_be_named(target: str) -> bool:
    """Whether a target of a project may be called that: a name that is no file's, or a program's."""
    return kind_of(target) in (CATALOGUE, BINARY) and Path(target).suffix not in FILES


def kind_of(target: str) -> Kind:
    """The kind of a target. What has no suffix of `FILES` may be a program's file."""
    return _kind_of_file(file_of(target))


def _kind_of_file(file: str) -> Kind:
    if is_trace(file):
        return SAVED
    if Path(file).suffix in FILES:
        return FILES[Path(file).suffix]
    if is_cache(Path(file)):
        return CACHED
    if file_exists(Path(file, "launch.json")):
        return LAUNCHED
    return BINARY if file not in catalog() and _is_program(Path(file)) else CATALOGUE


def split_target(target: str) -> tuple[str, str | None]:
    """`layouts.py:transpose`, `scale.cu:scale<float>` as file and kernel; else the target, and None."""
    for colon in re.finditer(":", target):
        file, kernel = target[: colon.start()], target[colon.end() :]
        if kernel and "kernel" in _kind_of_file(file).keys and not file_exists(Path(target)):
            return file, kernel
    return target, None


def file_of(target: str) -> str:
    """The file of a target: `layouts.py` for `layouts.py:transpose`."""
    return split_target(target)[0]


def read_job(
    target: str,
    said: Said,
    *,
    folder: Path = Path(),
    where: str = "args",
    spell: Spell = str,
    verb: str = "analyze",
) -> Job:
    """The job of a target.

    target: a kernel of the catalogue, a file, or a kernel in it as `FILE:KERNEL`. said: values by the keys of
    its `Kind`. folder: that file names are relative to. where: the source of the arguments, in errors. spell:
    how the user spells a key. verb: of the command lines that hints offer.

    Raises:
        MemsimError: a key that does not apply, an invalid value, no such kernel, or no launch.
    """
    if is_file(target):
        return file_job(target, said, folder=folder, where=where, spell=spell, verb=verb)
    return catalogue_job(target, said, spell=spell)


def catalogue_job(kernel: str, said: Said, *, kernels: Path | None = None, spell: Spell = str) -> Job:
    """The job of a kernel of the catalogue; as `read_job`."""
    if folder_exists(Path(kernel)):
        raise MemsimError(
            "it is a folder", file=kernel, hint="name a file in it; memsim list FILE lists its kernels"
        )
    spec = catalogue(kernels)[kernel]
    check_keys(CATALOGUE, said, spell)
    job = replace(spec.job(said.get("size")), name=said.get("name", kernel))
    return vary(job, said)


def file_job(
    file: str,
    said: Said,
    *,
    folder: Path = Path(),
    where: str = "args",
    spell: Spell = str,
    verb: str = "analyze",
) -> Job:
    """The job of a kernel in a file with any suffix, in a folder of Triton's cache, or of a saved launch; as
    `read_job`.
    """
    kind, (file, kernel) = kind_of(file), split_target(file)
    if kernel is not None:
        if said.get("kernel", kernel) != kernel:
            raise MemsimError(f"{kernel} and {spell('kernel')} {said['kernel']} are two kernels", file=file)
        said = {**said, "kernel": kernel}
    if kind is not CACHED:
        check_inside(folder / file, file)
    check_keys(BINARY if kind is CATALOGUE else kind, said, spell)
    if kind is SAVED:
        trace = TraceFile(folder, Path(file).as_posix(), said.get("kernel"))
        return vary(Job(trace, Launch((1, 1, 1), (1, 1, 1)), name=said.get("name", Path(file).stem)), said)
    if kind is PYTHON:
        return _python_job(file, said, folder, spell)
    if kind is CACHED:
        return _cached_job(file, said, folder, where, spell)
    if kind is LAUNCHED:
        from memsim.captured.saved_launch import read_launch

        return launched_job(read_launch(folder / file), said, spell)
    unsaid = ("grid", "block", "args") if kind is CUDA and file_exists(folder / file) else ("grid", "block")
    if said.get("let") or any(said.get(key) is None for key in unsaid):
        said = _with_source_launch(file, said, folder, spell, verb)
    arch = said.get("arch", "")
    code = kernel_file.KernelFile(
        folder=folder,
        file=Path(file).as_posix(),
        name=said.get("kernel"),
        options=(*said.get("options", ()), *([f"-arch={arch}"] if arch != plain_name(arch) else ())),
        compiler=said.get("compiler"),
    )
    cluster = dim3(said["cluster"], "cluster") if said.get("cluster") is not None else None
    shared_bytes = said.get("shared_bytes", 0)
    launch = Launch(dim3(said["grid"], "grid"), dim3(said["block"], "block"), shared_bytes, cluster)
    name = said.get("name", code.name or Path(file).stem)
    job = Job(code, launch, tuple(said.get("args", ())), name=name, where=where)
    if "arch" not in said and kind in (BINARY, CATALOGUE) and file_exists(folder / file):
        from memsim.api.machine_code_file import chip_in

        job = replace(job, arch=chip_in(folder / file))
    return vary(job, said)


def _python_job(file: str, said: Said, folder: Path, spell: Spell) -> Job:
    """The job of a function in a Python file; `options` set its parameters: `-Dpad=3`."""
    if confinement() is not None:
        raise MemsimError("a target in Python is a program, and none is run with --untrusted", file=file)
    values = {}
    for option in said.get("options", ()):
        name, equals, value = option.removeprefix("-D").partition("=")
        if not option.startswith("-D") or not equals:
            raise MemsimError(f"{option} does not set a parameter of a function", hint="write -D NAME=VALUE")
        values[name] = value
    name = said.get("kernel")
    from memsim.sketch.python_function import PythonFunction

    source = PythonFunction(folder, Path(file).as_posix(), name, values)
    return _sketched(source, name or Path(file).stem, said, spell)


def function_job(function: Callable[..., object], said: Said, spell: Spell = str) -> Job:
    """The job of a function object; `said` as in `read_job`."""
    check_keys(PYTHON, said, spell)
    name = getattr(function, "__name__", "function")
    from memsim.sketch.python_function import PythonFunction

    return _sketched(PythonFunction(function=function), name, said, spell)


def _sketched(source: PythonFunction, name: str, said: Said, spell: Spell) -> Job:
    if said.get("block") is None:
        raise MemsimError(
            f"{name} needs {spell('block')}",
            hint="a Python target is a function of index math (docs/layouts.md); for a script that launches "
            "kernels of Triton, Warp or CuTe DSL: memsim capture -o FOLDER SCRIPT",
        )
    launch = Launch(dim3(said.get("grid", 1), "grid"), dim3(said["block"], "block"))
    return vary(Job(source, launch, tuple(said.get("args", ())), name=said.get("name", name)), said)


def _with_source_launch(file: str, said: Said, folder: Path, spell: Spell, verb: str) -> Said:
    """The options, completed from the source's own launch."""
    path = folder / file
    if Path(file).suffix in loading.SOURCE_SUFFIXES and file_exists(path):
        from memsim.compile.cuda_source import read_launching_text
        from memsim.compile.options import absolute_paths
        from memsim.targets.completed import complete_launch

        try:
            options = absolute_paths(said.get("options") or (), folder)
            return complete_launch(file, read_launching_text(path, options), said, spell, verb)
        except MemsimError as error:
            if spell is not str:
                raise
            raise MemsimError(f"{file}: {error.message}") from None  # the place is in the configuration
    if not file_exists(path):
        raise MemsimError("there is no such file", file=file)
    raise MemsimError(f"{file} needs {spell('grid')} and {spell('block')}")


def _cached_job(cache: str, said: Said, folder: Path, where: str, spell: Spell) -> Job:
    """The job of a kernel in a folder of Triton's cache."""
    if said.get("grid") is None:
        raise MemsimError(f"{cache} needs {spell('grid')}")
    from memsim.captured.triton_launch import read_cache

    launched = read_cache(folder / cache, said["grid"], said.get("args", ()), said.get("kernel"), where)
    return vary(launched.job(name=said.get("name", launched.kernel.title)), said)


def launched_job(launched: Launched, said: Said, spell: Spell = str) -> Job:
    """The job of a captured or loaded launch; as `read_job`."""
    check_keys(LAUNCHED, said, spell)
    return vary(launched.job(name=said.get("name", launched.kernel.title)), said)


def vary(job: Job, said: Said) -> Job:
    """The job with options of any target applied: `COMMON` and `allow_out_of_bounds`."""
    return replace(
        job,
        arch=get_arch(said.get("arch", job.arch)),
        blocks=said.get("blocks", job.blocks),
        max_steps=said.get("max_steps", job.max_steps),
        allow_out_of_bounds=said.get("allow_out_of_bounds", job.allow_out_of_bounds),
    )


def check_keys(kind: Kind, said: Said, spell: Spell = str) -> None:
    """Raise a MemsimError unless all options apply to this kind of target."""
    for key in said:
        if key not in kind.keys:
            near = get_close_matches(key, kind.keys, n=1)
            hint = f"did you mean {spell(near[0])}?" if near else None
            raise MemsimError(f"{spell(key)} does not apply to {kind.what}", hint=hint)


@cache
def catalogue(kernels: Path | None = None) -> Mapping[str, Spec]:
    """The catalogue that ships, or the one in a folder."""
    return catalog() if kernels is None else Catalog(read_catalog(kernels / "catalog.toml"))
