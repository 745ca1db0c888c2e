"""The Python interface: load a module, analyze or run a kernel.

In: CUDA source, PTX, or files with machine code. Out: kernels, traces, analyses, results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.errors import MemsimError
from memsim.launch import Launch, dim3
from memsim.ptx import program

if TYPE_CHECKING:
    from memsim.analysis import Analysis
    from memsim.sass.kernel import MachineKernel, MachineModule
    from memsim.sass.listing import Listing
    from memsim.trace.trace import Origin, Trace

Progress = Callable[[float], None]


class PtxKernel:
    """A kernel as PTX, the text that ptxas is given."""

    def __init__(self, module: program.Module, name: str) -> None:
        self.module = module
        self.name = name

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
    def origin(self) -> Origin:
        """What was read."""
        from memsim.compile import compiler_of
        from memsim.trace.trace import Origin

        compiler = compiler_of(self.module.text) or ""
        digest = sha256(self.module.text.encode()).hexdigest()
        return Origin("PTX", self.module.target, f"NVVM {compiler}" if compiler else "", digest)

    @property
    def key(self) -> str:
        """A name for all that a trace of it depends on."""
        return self.origin.digest

    @property
    def listing(self) -> tuple[tuple[int, str, str, int], ...]:
        """No machine code is known of it."""
        return ()

    def execute(
        self, launch: Launch, args: Sequence[Any], names: Sequence[str], listener: Any, **how: Any
    ) -> Any:
        """Run it; as `memsim.simt.execute.execute`."""
        from memsim.simt.execute import execute

        return execute(self.module, self.function, launch, args, names, listener, **how)


class SassKernel:
    """A kernel as machine code, what the chip is given."""

    def __init__(self, machine: MachineKernel) -> None:
        self.machine = machine
        self.name = machine.name

    @property
    def parameters(self) -> tuple[program.Parameter, ...]:
        """The kernel's parameters, in order."""
        return self.machine.parameters

    @cached_property
    def origin(self) -> Origin:
        """What was read."""
        from memsim.trace.trace import Origin

        module = self.machine.module
        digest = sha256(self.machine.image.code).hexdigest()
        return Origin("machine code", module.cubin.arch, module.made_by, digest)

    @cached_property
    def key(self) -> str:
        """A name for all that a trace of it depends on: what it does, and which lines it names."""
        lines = [(line.address, line.source) for line in self.machine.module.listings[self.name].lines]
        return sha256(repr((self.origin, self.machine.shared, lines)).encode()).hexdigest()

    @property
    def listing(self) -> tuple[tuple[int, str, str, int], ...]:
        """Its instructions in order: (address, text, file, line)."""
        return tuple(
            (op.address, op.text, op.source.file if op.source else "", op.line)
            for op in self.machine.program.ops
        )

    def execute(
        self, launch: Launch, args: Sequence[Any], names: Sequence[str], listener: Any, **how: Any
    ) -> Any:
        """Run it; as `memsim.simt.execute_program.execute_program`."""
        from memsim.simt.execute_program import execute_program

        return execute_program(self.machine, launch, args, names, listener, **how)


@dataclass(frozen=True)
class Kernel:
    """A kernel of a loaded module, ready to be analyzed or run.

    `name` is the entry's name as the compiler writes it. `code` is what is executed: machine code, or PTX.
    `sources` maps a file that the code's line numbers name to its text.
    """

    name: str
    code: PtxKernel | SassKernel = field(repr=False)
    sources: Mapping[str, str] = field(repr=False, default_factory=dict)

    def __repr__(self) -> str:
        from memsim.ptx.demangle import demangle

        return f"<Kernel {demangle(self.name)}({', '.join(self.argument_names)})>"

    @property
    def parameters(self) -> tuple[program.Parameter, ...]:
        """The kernel's parameters, in order."""
        return self.code.parameters

    @property
    def origin(self) -> Origin:
        """What was read: machine code or PTX, for which chip, and made by whom."""
        return self.code.origin

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
    """A loaded module. `module[name]` takes an entry's name in the code, or its demangled name.

    `codes`: its kernels by name, in the file's order.
    """

    codes: Mapping[str, PtxKernel | SassKernel] = field(repr=False)
    sources: Mapping[str, str] = field(repr=False, default_factory=dict)

    def __repr__(self) -> str:
        return f"<Module with {', '.join(_shown(self)) or 'no kernel'}>"

    @property
    def kernels(self) -> tuple[str, ...]:
        """Entry names as the compiler writes them, in the file's order."""
        return tuple(self.codes)

    def __getitem__(self, name: str) -> Kernel:
        """The kernel of that name.

        Raises:
            MemsimError: there is none, or several.
        """
        from memsim.ptx.demangle import resolve

        if not isinstance(name, str):
            raise MemsimError(f"a kernel is chosen by its name, not by {name!r}", hint=_choice(self))
        try:
            entry = resolve(self.kernels, name)
        except MemsimError as error:
            raise self._without_instance(name) or error from None
        return Kernel(entry, self.codes[entry], self.sources)

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


FORMS = ("sass", "ptx")
SOURCE_SUFFIXES = (".cu", ".cuh", ".cpp", ".cc")
BINARY_SUFFIXES = (
    ".cubin",
    ".fatbin",
    ".o",
    ".obj",
    ".a",
    ".so",
    ".out",
    ".exe",
    ".dll",
    ".pyd",
    ".whl",
    ".zip",
)


def load(
    source: str | Path,
    options: Sequence[str] = (),
    *,
    code: str | None = None,
    compiler: str | None = None,
    arch: str = "sm_90",
    name: str | None = None,
) -> Module:
    """A module from CUDA source, PTX, or a file that holds machine code.

    Args:
        source: a `.cu` file, which is compiled; a `.ptx` file or PTX text, which is assembled; a `.cubin`; a
            fat binary, an object, a library or a program with machine code for `arch` in it.
        options: for the compiler, as `-DBM=64` or `-Iinclude`.
        code: "sass" for machine code, "ptx" for PTX, which is an estimate of what ptxas makes of it. None:
            machine code wherever it can be had; PTX where there is no assembler, or no disassembler.
        compiler: "nvrtc" or "nvcc"; None: NVRTC, and nvcc where a file needs host code.
        arch: the chip to compile for.
        name: what a source file is called; its path if left out.

    Raises:
        MemsimError: no such file, it does not compile, or it holds no kernel for the chip.
    """
    if code not in (None, *FORMS):
        raise MemsimError(f"code is sass or ptx, and not {code!r}")
    if isinstance(options, str):
        raise MemsimError(f"options are a list, not {options!r}", hint=f"write options={options.split()}")
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith(".version")):
        return _from_ptx(source, None, code, arch)
    if not isinstance(source, (str, Path)) or source == "":
        raise MemsimError(
            f"{source!r} cannot be loaded",
            hint="load takes the path of a .cu, .ptx or .cubin file, or the text of PTX",
        )
    path = Path(source)
    if not path.is_file():
        raise MemsimError(f"there is no file {path}")
    if path.suffix in SOURCE_SUFFIXES:
        return _from_source(path, options, code, compiler, arch, name)
    if options:
        raise MemsimError(f"{path} is compiled already: compiler options {list(options)} change nothing")
    if path.suffix == ".ptx":
        return _from_ptx(_read(path), path, code, arch)
    if code == "ptx":
        raise MemsimError(f"{path} holds machine code, and no PTX is read from it")
    return _from_binary(path, arch)


def _from_source(
    path: Path, options: Sequence[str], code: str | None, compiler: str | None, arch: str, name: str | None
) -> Module:
    """A compiled `.cu` file; `name` is what it is called."""
    from memsim.compile import compile_cubin, compile_cuda
    from memsim.ptx.parser import parse
    from memsim.sass.kernel import read_module

    if code != "ptx" and _can_list(code):
        compiled = compile_cubin(path, options, arch, name, compiler)  # type: ignore[arg-type]
        machine = read_module(compiled.code, file=str(path), compiler=compiled.compiler, names=compiled.names)
        return _machine_module(machine, path, name)
    return _ptx_module(parse(compile_cuda(path, options, arch, name), str(path)), path, name)


def _from_ptx(text: str, path: Path | None, code: str | None, arch: str) -> Module:
    """PTX, assembled if there is an assembler."""
    from memsim.ptx.parser import parse

    parsed = parse(text, str(path) if path else "PTX")
    if code != "ptx" and _can_list(code):
        from memsim.compile import assemble_ptx
        from memsim.sass.kernel import read_module

        compiled = assemble_ptx(text, _chip_for(parsed.target, arch), str(path) if path else "PTX")
        if compiled is not None:
            machine = read_module(compiled.code, compiler=compiled.compiler)
            return _machine_module(machine, path, None)
    if code == "sass":
        raise MemsimError(
            "there is no assembler for PTX here",
            hint="pip install 'memsim[ptx]', or install the CUDA toolkit",
        )
    return _ptx_module(parsed, path)


def _chip_for(target: str, arch: str) -> str:
    """The chip to assemble for: that of the rules, or its variant that the PTX asks for."""
    return target if target.startswith(arch) else arch


def _can_list(code: str | None) -> bool:
    """Is there a disassembler?

    Raises:
        MemsimError: there is none, and `code` asks for machine code.
    """
    from memsim.sass.disassemble import version

    try:
        version()
    except MemsimError:
        if code == "sass":
            raise
        return False
    return True


def _from_binary(path: Path, arch: str) -> Module:
    """The machine code in a file: a cubin, a fat binary, an object, a library, a program, a wheel."""
    from memsim.sass.binary import cubins_in
    from memsim.sass.kernel import read_module

    found = cubins_in(path)
    fitting = [(name, content) for name, content, chip in found if chip.startswith(arch)]
    if not fitting:
        chips = ", ".join(sorted({chip for _, _, chip in found}))
        raise MemsimError(f"{path} holds machine code of {chips}, and none of {arch}")
    codes: dict[str, PtxKernel | SassKernel] = {}
    sources: dict[str, str] = {}
    for name, content in fitting:
        module = _machine_module(read_module(content, file=name), path, None)
        codes.update({kernel: code for kernel, code in module.codes.items() if kernel not in codes})
        sources.update(module.sources)
    return Module(codes, sources)


def _machine_module(machine: MachineModule, path: Path | None, name: str | None) -> Module:
    """A module of machine code, with those source files that can still be found."""
    codes = {entry: SassKernel(kernel) for entry, kernel in machine.kernels.items()}
    named = [place for listing in machine.listings.values() for place in _files_of(listing)]
    own = [name or path.as_posix()] if path is not None and path.suffix in SOURCE_SUFFIXES else []
    return Module(codes, _sources([*named, *own], path, name))


def _files_of(listing: Listing) -> list[str]:
    """The files that a kernel's lines are from."""
    return list(dict.fromkeys(line.source.file for line in listing.lines if line.source is not None))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise MemsimError(f"cannot read {path}: {problem}") from None


def _ptx_module(parsed: program.Module, file: Path | None = None, name: str | None = None) -> Module:
    """A module of PTX with those source files that can still be found.

    The PTX of a file with nothing but templates does not name it.
    """
    own = [name or file.as_posix()] if file and file.suffix != ".ptx" else []
    codes = {entry: PtxKernel(parsed, entry) for entry in parsed.entries}
    return Module(codes, _sources([*parsed.files.values(), *own], file, name))


def _sources(names: Sequence[str], file: Path | None, called: str | None = None) -> dict[str, str]:
    """The texts of source files that can still be found.

    Beside `file`, which is `called` so, or as they are named.
    """
    sources = {}
    root = (
        file.parents[len(Path(called).parts) - 1]
        if file and called and not Path(called).is_absolute()
        else None
    )
    for name in dict.fromkeys(names):
        near = [file.parent / name, file.parent / Path(name).name] if file else []
        near = [root / name] if root is not None else near
        found = next((path for path in (*near, Path(name)) if path.is_file()), None)
        if found is not None:
            sources[name] = found.read_text(encoding="utf-8", errors="replace")
    return sources


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
    from memsim.simt.execute import MAX_STEPS
    from memsim.state.memory import SHARED_BASE
    from memsim.trace.record import Recorder
    from memsim.trace.trace import Trace

    _check_kernel(kernel)
    launch = Launch(dim3(grid, "grid"), dim3(block, "block"), shared_bytes)
    chosen = _blocks(launch, blocks)
    recorder = Recorder()
    memory = kernel.code.execute(
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
    listing = kernel.code.listing
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
        unsure=tuple(sorted(recorder.not_sure)),
        writers=recorder.writers.threads,
        origin=kernel.origin,
        listing=listing,
        executed=recorder.executions(len(listing)),
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

    def executed(self, start: int, stop: int, mask: Any) -> None:
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
    from memsim.simt.execute import MAX_STEPS

    _check_kernel(kernel)
    launch = Launch(dim3(grid, "grid"), dim3(block, "block"), shared_bytes)
    kernel.code.execute(
        launch,
        args,
        kernel.argument_names,
        _Deaf(),
        everything=True,
        progress=progress,
        max_steps=max_steps or MAX_STEPS,
    )
