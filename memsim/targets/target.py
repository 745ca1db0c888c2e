"""A target: one launch of one kernel, from the catalogue or from a file.

In: names and texts, as a configuration or a command line has them. Out: `Work`, ready to be traced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from memsim import api
from memsim.data import data_folder
from memsim.errors import MemsimError
from memsim.kernels import Dispatcher, Spec, catalog, read_catalog
from memsim.launch import Launch, dim3
from memsim.ptx.demangle import demangle
from memsim.targets.arguments import describe, read_arguments

if TYPE_CHECKING:
    from memsim.trace.trace import Trace


@dataclass(frozen=True)
class Work:
    """All that decides the trace of a launch.

    max_steps: as in `memsim.api.trace`; it decides only whether there is one.
    """

    kernel: api.Kernel
    launch: Launch
    args: Sequence[Any]
    blocks: int | None = None
    max_steps: int | None = None

    def trace(self, progress: api.Progress | None = None) -> Trace:
        """As `memsim.api.trace`."""
        launch = self.launch
        return api.trace(
            self.kernel,
            launch.grid,
            launch.block,
            self.args,
            launch.shared_bytes,
            blocks=self.blocks,
            progress=progress,
            max_steps=self.max_steps,
        )


class Target(Protocol):
    """What every kind of target has.

    name: what budgets, the baseline and reports call it. arch: whose rules to count by.
    """

    @property
    def name(self) -> str: ...

    @property
    def arch(self) -> str: ...

    @property
    def folder(self) -> Path:
        """What the file names of its accesses are relative to."""

    @property
    def file(self) -> str:
        """The file that the kernel is in, relative to `folder`."""

    @property
    def arguments(self) -> str:
        """What the kernel is given, in a line; of arrays their types and shapes.

        Raises:
            MemsimError: a size that the kernel refuses.
        """

    def load(self) -> Work:
        """Compiles or reads the kernel, and reads its arguments.

        Raises:
            MemsimError: whatever is wrong with the kernel or its launch.
        """


@dataclass(frozen=True, slots=True)
class CatalogueTarget:
    """A kernel of the catalogue; `kernels` is the folder of another catalogue than the one that ships."""

    name: str
    kernel: str
    size: str | None = None
    blocks: int | None = None
    arch: str = "sm_90"
    kernels: Path | None = None
    max_steps: int | None = None
    code: str | None = None

    @property
    def folder(self) -> Path:
        return (self.kernels or data_folder("kernels")).parent

    @property
    def file(self) -> str:
        return f"kernels/{self._spec().source.name}"

    @property
    def arguments(self) -> str:
        return ", ".join(f"{name} {size}" for name, size in self._spec().sizes(self.size).items())

    def load(self) -> Work:
        spec = self._spec()
        plan = spec.launch(self.size)
        return Work(spec.kernel(self.code), plan.launch, plan.args, self.blocks, self.max_steps)

    def _spec(self) -> Spec:
        kernels = catalogue(self.kernels)
        if self.kernel not in kernels:
            raise MemsimError(f"there is no kernel {self.kernel!r} in the catalogue")
        return kernels[self.kernel].pick(self.size)


@dataclass(frozen=True, slots=True)
class FileTarget:
    """A kernel of a file, relative to `folder`, as folders of headers in `options` are.

    args: as `read_arguments` takes them. code, compiler: as `memsim.load` takes them.
    """

    name: str
    folder: Path
    file: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: tuple[Any, ...] = ()
    kernel: str | None = None
    shared_bytes: int = 0
    options: tuple[str, ...] = ()
    blocks: int | None = None
    arch: str = "sm_90"
    where: str = field(default="args", compare=False)
    max_steps: int | None = None
    code: str | None = None
    compiler: str | None = None

    @property
    def arguments(self) -> str:
        return ", ".join(map(describe, self.args))

    def load(self) -> Work:
        module = self._module()
        kernel = module[self.kernel or only_kernel(self.file, module.kernels)]
        parameters = dict(zip(kernel.argument_names, kernel.parameters, strict=True))
        args = read_arguments(self.args, parameters, self.folder, self.where)
        launch = Launch(dim3(self.grid, "grid"), dim3(self.block, "block"), self.shared_bytes)
        return Work(kernel, launch, args, self.blocks, self.max_steps)

    def _module(self) -> api.Module:
        path = self.folder / self.file
        if not path.is_file():
            raise MemsimError("there is no such file", file=self.file)
        # Named by what the project calls it: what is kept of it is the same wherever the project is.
        options = [_relative_to(self.folder, option) for option in self.options]
        return api.load(path, options, code=self.code, compiler=self.compiler, name=self.file)


def _relative_to(folder: Path, option: str) -> str:
    """`-Iinclude` with the folder that it means; other options as they are."""
    match = re.fullmatch(r"(-I|--include-path=)(.+)", option)
    return option if match is None else f"{match[1]}{folder / match[2]}"


@cache
def catalogue(kernels: Path | None = None) -> Mapping[str, Spec | Dispatcher]:
    """The catalogue that ships, or the one in a folder."""
    return catalog() if kernels is None else read_catalog(kernels / "catalog.toml")


def only_kernel(file: str, kernels: Sequence[str]) -> str:
    """The one kernel of a file that has one.

    Raises:
        MemsimError: it has none, or several.
    """
    if len(kernels) == 1:
        return kernels[0]
    if not kernels:
        raise MemsimError(
            "there is no kernel in it",
            file=file,
            hint="a kernel is a __global__ function, of a template an instance",
        )
    raise MemsimError(
        f"there are {len(kernels)} kernels in it",
        file=file,
        hint=f"choose one by --kernel, or by kernel in a configuration: {', '.join(map(demangle, kernels))}",
    )
