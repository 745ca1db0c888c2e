"""The Python interface: load a module, analyze or run a kernel.

In: CUDA source, PTX or a file of either. Out: kernels, traces, analyses, results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.errors import MemsimError
from memsim.launch import Launch, dim3
from memsim.ptx import program

if TYPE_CHECKING:
    from memsim.analysis import Analysis
    from memsim.trace.trace import Trace

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Kernel:
    """A kernel of a loaded module, ready to be analyzed or run.

    `name` is the entry's name in the PTX. `sources` maps a file that `.loc` names to its text.
    """

    name: str
    module: program.Module = field(repr=False)
    sources: Mapping[str, str] = field(repr=False, default_factory=dict)

    def __repr__(self) -> str:
        from memsim.ptx.demangle import demangle

        return f"<Kernel {demangle(self.name)}({', '.join(self.argument_names)})>"

    @cached_property
    def function(self) -> program.Function:
        """The kernel with its device functions spliced in."""
        from memsim.ptx.inline import inline_calls

        return inline_calls(self.module, self.name)

    @property
    def parameters(self) -> tuple[program.Parameter, ...]:
        """The kernel's parameters, in order."""
        return self.module.functions[self.name].parameters

    @cached_property
    def argument_names(self) -> tuple[str, ...]:
        """The parameters' names in the source where it is known, else `arg0`, `arg1`, ..."""
        from memsim.source import parameter_names

        count = len(self.parameters)
        for text in self.sources.values():
            names = parameter_names(text, self.name)
            if len(names) == count:
                return names
        return tuple(f"arg{i}" for i in range(count))


@dataclass(frozen=True)
class Module:
    """A loaded module. `module[name]` takes an entry's name in the PTX, or its demangled name."""

    program: program.Module = field(repr=False)
    sources: Mapping[str, str] = field(repr=False, default_factory=dict)

    def __repr__(self) -> str:
        return f"<Module with {', '.join(_shown(self)) or 'no kernel'}>"

    @property
    def kernels(self) -> tuple[str, ...]:
        """Entry names as in the PTX, in its order."""
        return self.program.entries

    def __getitem__(self, name: str) -> Kernel:
        """The kernel of that name.

        Raises:
            MemsimError: there is none, or several.
        """
        from memsim.ptx.demangle import resolve

        if not isinstance(name, str):
            raise MemsimError(f"a kernel is chosen by its name, not by {name!r}", hint=_choice(self))
        try:
            return Kernel(resolve(self.kernels, name), self.program, self.sources)
        except MemsimError as error:
            raise self._without_instance(name) or error from None

    def _without_instance(self, name: str) -> MemsimError | None:
        """The error for a name that is of a template only; None if it is not."""
        from memsim.ptx.demangle import demangle, plain_name
        from memsim.source import is_template

        plain = plain_name(name)
        if plain in (plain_name(demangle(kernel)) for kernel in self.kernels):
            return None
        file = next((file for file, text in self.sources.items() if is_template(text, plain)), None)
        if file is None:
            return None
        wanted = name if "<" in name else f"{name}<...>"
        return MemsimError(
            f"{plain} is a template with no instance",
            file=file,
            hint=f"add `template __global__ void {wanted}(...);`, with its parameters' types, behind it",
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.kernels)

    def __len__(self) -> int:
        return len(self.kernels)


def _shown(module: Module) -> list[str]:
    """Its kernels by the names that people write."""
    from memsim.ptx.demangle import demangle

    return [demangle(name) for name in module.kernels]


def _choice(module: Module) -> str:
    """How to choose a kernel of the module."""
    names = _shown(module)
    return f"write module[{names[0]!r}]; it has {', '.join(names)}" if names else "it has no kernel"


def _check_kernel(kernel: object) -> None:
    """Is it something that can be launched?

    Raises:
        MemsimError: it is a module, a name, or something else.
    """
    if isinstance(kernel, Kernel):
        return
    if isinstance(kernel, Module):
        raise MemsimError("a module is no kernel: choose one of it", hint=_choice(kernel))
    shown = repr(kernel) if isinstance(kernel, str) else f"a {type(kernel).__name__}"
    raise MemsimError(f"{shown} is no kernel", hint='memsim.load("file.cu")["name"] gives one')


def load(source: str | Path, options: Sequence[str] = ()) -> Module:
    """A module from a `.cu` file (compiled with NVRTC and `options`), a `.ptx` file, or PTX text.

    Raises:
        MemsimError: no such file, it does not compile, or it is not PTX.
    """
    from memsim.ptx.parser import parse

    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith(".version")):
        return _module(parse(source))
    if not isinstance(source, (str, Path)) or source == "":
        raise MemsimError(
            f"{source!r} cannot be loaded",
            hint="load takes the path of a .cu or .ptx file, or the text of PTX",
        )
    if isinstance(options, str):
        raise MemsimError(f"options are a list, not {options!r}", hint=f"write options={options.split()}")
    path = Path(source)
    if not path.is_file():
        raise MemsimError(f"there is no file {path}")
    if path.suffix == ".ptx":
        if options:
            raise MemsimError(f"{path} is PTX already: compiler options {list(options)} change nothing")
        return _module(parse(_read(path), str(path)), path)
    if path.suffix not in (".cu", ".cuh", ".cpp", ".cc"):
        raise MemsimError(f"{path} is neither CUDA source (.cu) nor PTX (.ptx)")
    from memsim.compile import compile_cuda

    return _module(parse(compile_cuda(path, options), str(path)), path)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise MemsimError(f"cannot read {path}: {problem}") from None


def _module(parsed: program.Module, file: Path | None = None) -> Module:
    """A module with those source files that can still be found: beside the file, or as named.

    The PTX of a file with nothing but templates does not name it.
    """
    sources = {}
    own = [file.as_posix()] if file and file.suffix != ".ptx" else []
    for name in dict.fromkeys([*parsed.files.values(), *own]):
        near = [file.parent / name, file.parent / Path(name).name] if file else []
        found = next((path for path in (*near, Path(name)) if path.is_file()), None)
        if found is not None:
            sources[name] = found.read_text(encoding="utf-8", errors="replace")
    return Module(parsed, sources)


def _blocks(launch: Launch, count: int | None) -> np.ndarray | None:
    """Linear numbers of `count` blocks spread evenly over the grid, the first and last included."""
    if count is None:
        return None
    if not isinstance(count, (int, np.integer)) or count < 1:
        raise MemsimError(f"blocks must be an integer of at least 1, not {count!r}")
    if count >= launch.blocks:
        return None
    return np.unique(np.linspace(0, launch.blocks - 1, count).round().astype(np.int64))


def trace(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any] = (),
    shared_bytes: int = 0,
    blocks: int | None = None,
    progress: Progress | None = None,
    *,
    everything: bool = False,
    max_steps: int | None = None,
) -> Trace:
    """The addresses of every shared and global access of a launch.

    `blocks`: replay only so many, spread evenly over the grid. `everything`: execute all
    instructions instead of those that addresses and branches depend on; the trace is the
    same, and array arguments are written in place. `max_steps`: instructions after which a
    chunk of blocks counts as endless.

    Raises:
        MemsimError: a launch or arguments that do not fit, or whatever goes wrong in the kernel.
    """
    from memsim.ptx.demangle import demangle, short_name
    from memsim.simt.execute import MAX_STEPS, execute
    from memsim.simt.memory import SHARED_BASE
    from memsim.trace.record import Recorder
    from memsim.trace.trace import Trace

    _check_kernel(kernel)
    launch = Launch(dim3(grid, "grid"), dim3(block, "block"), shared_bytes)
    chosen = _blocks(launch, blocks)
    recorder = Recorder()
    memory = execute(
        kernel.module,
        kernel.function,
        launch,
        args,
        kernel.argument_names,
        recorder,
        everything=everything,
        blocks=chosen,
        progress=progress,
        max_steps=max_steps or MAX_STEPS,
    )
    sites, columns = recorder.columns()
    arrays = [
        (short_name(buffer.name), space, buffer.start - base, buffer.end - buffer.start)
        for space, base in (("shared", SHARED_BASE), ("global", 0))
        for buffer in memory.layouts[space].buffers
    ]
    return Trace(
        kernel=demangle(kernel.name),
        launch=launch,
        blocks_replayed=launch.blocks if chosen is None else len(chosen),
        sites=tuple(sites),
        arrays=tuple(arrays),
        sources={site.file: kernel.sources[site.file] for site in sites if site.file in kernel.sources},
        notes=tuple(recorder.notes),
        writers=recorder.writers.threads,
        **columns,
    )


def analyze(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any] = (),
    shared_bytes: int = 0,
    blocks: int | None = None,
    arch: str = "sm_90",
    progress: Progress | None = None,
    *,
    max_steps: int | None = None,
) -> Analysis:
    """What every access of a launch costs, by source line.

    Args:
        kernel: `load(...)[name]`.
        grid, block: one to three ints, as CUDA's `dim3`.
        args: arrays (numpy, or `ArrayArg` by shape and type) and scalars, in kernel order. Arrays
            lie at 256-byte aligned addresses, as `cudaMalloc` gives them, and are not changed. A struct is a
            list of its parts, as `[A, np.int32(3)]` for a pointer and an int, a numpy scalar, or bytes.
        shared_bytes: dynamic shared memory of a block, in bytes.
        blocks: replay only so many blocks, spread evenly over the grid; None for all.
        arch: whose rules to count by.
        max_steps: instructions after which a chunk of blocks counts as endless; None for five million.

    Raises:
        MemsimError: a launch or arguments that do not fit, or whatever goes wrong in the kernel.
    """
    from memsim.analysis import analyze_trace

    made = trace(kernel, grid, block, args, shared_bytes, blocks, progress, max_steps=max_steps)
    return analyze_trace(made, arch)


class _Deaf:
    """A listener for those who want results only."""

    def start_chunk(self, machine: Any) -> None:
        """Nothing to do."""

    def access(self, *event: Any) -> None:
        """Nothing to do."""

    def unknown(self, *event: Any) -> None:
        """Nothing to do."""

    def aside(self, *event: Any) -> None:
        """Nothing to do."""

    def unsure(self, what: str) -> None:
        """Nothing to do."""


def run(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any] = (),
    shared_bytes: int = 0,
    progress: Progress | None = None,
    *,
    max_steps: int | None = None,
) -> None:
    """Execute a launch completely; arrays are written in place, as on a GPU. `max_steps` as in `trace`.

    Raises:
        MemsimError: a launch or arguments that do not fit, a result that depends on an
            instruction that is not executed, or whatever goes wrong in the kernel.
    """
    from memsim.simt.execute import MAX_STEPS, execute

    _check_kernel(kernel)
    launch = Launch(dim3(grid, "grid"), dim3(block, "block"), shared_bytes)
    execute(
        kernel.module,
        kernel.function,
        launch,
        args,
        kernel.argument_names,
        _Deaf(),
        everything=True,
        progress=progress,
        max_steps=max_steps or MAX_STEPS,
    )
