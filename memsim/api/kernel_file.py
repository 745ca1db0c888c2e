"""A kernel of a file, named before it is loaded, so that a job can carry it to another process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Protocol, runtime_checkable

from memsim.api.loading import SOURCE_SUFFIXES, Module, load, shown_names
from memsim.arch import Arch
from memsim.boundary import confinement
from memsim.errors import MemsimError
from memsim.files import file_exists
from memsim.kernel import Kernel


@runtime_checkable
class OfFile(Protocol):
    """A kernel that can be made again from its file, such as one of the catalogue."""

    @property
    def as_file(self) -> KernelFile:
        """The file, and how it is compiled."""


@dataclass(frozen=True, slots=True)
class KernelFile:
    """A kernel of a file, as a `memsim.job.KernelProvider`.

    `file`, and folders of headers, are relative to `folder`. name: which kernel; None if the file has one
    only. options, compiler, text: as `load` takes them.
    """

    folder: Path
    file: str
    name: str | None = None
    options: tuple[str, ...] = ()
    compiler: str | None = None
    text: str | None = None

    def load(self, arch: Arch) -> Kernel:
        """The kernel; its file is called what it is called here, wherever `folder` is.

        Raises:
            MemsimError: as `memsim.load`; or the file has no such kernel, or several.
        """
        loaded, key = _LOADED.get(), (self.whole, arch.name)
        if loaded is None and self.text is not None and self.name is not None and "<" in self.name:
            with suppress(MemsimError):  # of a change the instance is compiled alone, if it can be
                return self._module(arch, (self.name,))[self.name]
        made = loaded.get(key) if loaded is not None else None
        if made is None:
            made = self._module(arch)
        if loaded is not None:
            loaded[key] = made
        return made[self.name or _only_kernel(made, self.file)]

    @property
    def as_file(self) -> KernelFile:
        """Itself."""
        return self

    @property
    def whole(self) -> KernelFile:
        """The file with all of its kernels: equal for those that one compilation makes."""
        return replace(self, name=None)

    def launching_text(self) -> str:
        """The text in which the launches of a CUDA source are read.

        Raises:
            MemsimError: it cannot be read.
            FileNotFoundError: there is no such file.
        """
        from memsim.compile.cuda_source import read_launching_text

        return read_launching_text(self.folder / self.file, self._absolute_options)

    def included_texts(self, text: str) -> list[str]:
        """Those of the files that `text`, which the file holds, includes directly or indirectly."""
        from memsim.compile.included_files import included_files

        beside = (self.folder / self.file).parent
        return list(included_files(text, beside, self._absolute_options).values())

    @property
    def _absolute_options(self) -> tuple[str, ...]:
        from memsim.compile.options import absolute_paths

        return tuple(absolute_paths(self.options, self.folder))

    def included_paths(self, text: str) -> list[Path]:
        """Where the files are that `text`, a part of what the file holds, includes directly."""
        from memsim.compile.included_files import included_by
        from memsim.compile.options import absolute_paths

        here, options = (self.folder / self.file).parent, absolute_paths(self.options, self.folder)
        return [path for path, _ in included_by(text, here, here, options)]

    def _module(self, arch: Arch, instances: tuple[str, ...] = ()) -> Module:
        from memsim.compile.compile_cache import what_is_read

        path = self.folder / self.file
        if not file_exists(path):
            raise MemsimError("there is no such file", file=self.file)
        options = self._absolute_options
        if path.suffix in SOURCE_SUFFIXES and self.text is None:
            read = what_is_read(path, options, self.file)
            if read is not None:
                key = repr((path.absolute(), read, confinement()))
                return _module_once(path, options, self.compiler, arch.name, self.file, key)
        how = {"compiler": self.compiler, "arch": arch.name, "name": self.file, "text": self.text}
        return load(path, options, **how, instances=instances)


_LOADED: ContextVar[dict[tuple[KernelFile, str], Module] | None] = ContextVar("_LOADED", default=None)


@contextmanager
def files_loaded_once() -> Iterator[None]:
    """Within, a file is loaded once for all of its kernels, and taken not to change meanwhile."""
    token = _LOADED.set({})
    try:
        yield
    finally:
        _LOADED.reset(token)


@lru_cache(maxsize=2)
def _module_once(
    path: Path, options: tuple[str, ...], compiler: str | None, arch: str, name: str, read: str
) -> Module:
    """The module, for several jobs in a row; `read`: all that decides what it is."""
    return load(path, options, compiler=compiler, arch=arch, name=name)


def _only_kernel(module: Module, file: str) -> str:
    """The one kernel of a file that has one."""
    if len(module) == 1:
        return module.kernels[0]
    if not module.kernels:
        raise module.only_templates() or MemsimError(
            "it contains no kernel", file=file, hint="a kernel is a __global__ function"
        )
    names = ", ".join(sorted(shown_names(module)))
    raise MemsimError(
        f"it contains {len(module)} kernels",
        file=file,
        hint=f"choose one by --kernel, or by kernel in a configuration: {names}",
    )
