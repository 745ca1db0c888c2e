"""The Python interface: load a module, analyze or run a kernel.

In: CUDA source, PTX, or files with machine code. Out: kernels, traces, analyses, results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.arch import ARCHS, SM_90, Arch, arch_of_code, get_arch, plain_name
from memsim.errors import MemsimError
from memsim.files import file_exists
from memsim.job import Job
from memsim.kernel import Kernel, PtxKernel, SassKernel
from memsim.launch import Launch, dim3

if TYPE_CHECKING:
    from memsim.analysis import Analysis
    from memsim.compile.given import Given
    from memsim.ptx import program
    from memsim.sass.listing import Listing
    from memsim.sass.machine_code import MachineModule
    from memsim.sketch.python_function import PythonFunction
    from memsim.trace.trace import Trace

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Module:
    """A loaded module. `module[name]` takes an entry's name in the code, or its demangled name.

    `codes`: its kernels by name, in the file's order. `instantiate`: makes a module of the same source with
    an instance of one of its templates; None where there is no source to do so. `notes`: of how
    it was compiled. `given`: the compiled file that it is of, with the sources beside it. `named`: what the
    code calls its sources, whether they can be found or not.
    """

    codes: Mapping[str, PtxKernel | SassKernel] = field(repr=False)
    sources: Mapping[str, str] = field(repr=False, default_factory=dict)
    instantiate: Callable[[str], Module] | None = field(repr=False, default=None, compare=False)
    notes: tuple[str, ...] = field(repr=False, default=(), compare=False)
    given: Given | None = field(repr=False, default=None, compare=False)
    named: tuple[str, ...] = field(repr=False, default=(), compare=False)

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
            return self._instance(name, error)
        return Kernel(entry, self.codes[entry], self.sources, self.notes, given=self.given)

    def _instance(self, name: str, error: MemsimError) -> Kernel:
        """The instance of a template that `name` is, made now.

        Raises:
            MemsimError: it is none, or does not compile.
        """
        from memsim.ptx.demangle import plain_name
        from memsim.source import is_template

        of_template = any(is_template(text, plain_name(name)) for text in self.sources.values())
        if not of_template or "<" not in name or self.instantiate is None:
            raise self._without_instance(name) or error from None
        made = self.instantiate(name)
        new = [entry for entry in made.codes if entry not in self.codes]
        if len(new) != 1:
            raise error from None
        return Kernel(new[0], made.codes[new[0]], made.sources, made.notes)

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
        from memsim.source.kernels import kernels

        found = next((kernel for kernel in kernels(self.sources[file]) if kernel.plain == plain), None)
        takes = f": {found.signature}" if found else ""
        return MemsimError(
            f"{plain} is a template with no instance",
            file=file,
            line=found.line if found else None,
            hint=f"name an instance, such as {plain}<float, 8>{takes}",
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
    return f"write module[{names[0]!r}]; it has {', '.join(names)}" if names else "it contains no kernel"


def _check_kernel(kernel: object) -> None:
    """Is it something that can be launched?

    Raises:
        MemsimError: it is a module, a name, or something else.
    """
    if isinstance(kernel, Kernel):
        return
    if isinstance(kernel, Module):
        raise MemsimError("a module is not a kernel: choose a kernel from it", hint=_choice(kernel))
    shown = repr(kernel) if isinstance(kernel, str) else f"a {type(kernel).__name__}"
    raise MemsimError(f"{shown} is not a kernel", hint='memsim.load("file.cu")["name"] gives one')


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
    arch: str | None = None,
    name: str | None = None,
    text: str | None = None,
) -> Module:
    """A module from CUDA source, PTX, or a file that holds machine code.

    Args:
        source: a `.cu` file, which is compiled; a `.ptx` file or PTX text, which is assembled; a `.cubin`; a
            fat binary, an object, a library or a program with machine code for `arch` in it.
        options: for the compiler, as `-DBM=64` or `-Iinclude`.
        code: "sass" for machine code, "ptx" for PTX, which is an estimate of what ptxas makes of it. None:
            machine code wherever it can be had; PTX where there is no assembler, or no disassembler.
        compiler: "nvrtc" or "nvcc"; None: NVRTC, which has host code set aside, and nvcc where it refuses.
        arch: the chip to compile for, sm_90 if left out; of machine code, that of several which is wanted.
        name: what a source file is called; its path if left out.
        text: what a source file is taken to hold, instead of what it holds: a change that is not saved.

    Raises:
        MemsimError: no such file, it does not compile, or it holds no kernel for the chip.
    """
    if code not in (None, *FORMS):
        raise MemsimError(f"code must be 'sass' or 'ptx', not {code!r}")
    if isinstance(options, str):
        raise MemsimError(f"options must be a list, not {options!r}", hint=f"write options={options.split()}")
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith(".version")):
        return _from_ptx(source, None, code, arch or SM_90.name)
    if not isinstance(source, (str, Path)) or source == "":
        raise MemsimError(
            f"{source!r} cannot be loaded",
            hint="load takes the path of a .cu, .ptx or .cubin file, or the text of PTX",
        )
    path = Path(source)
    if not file_exists(path):
        raise MemsimError(f"there is no file {path}")
    if path.suffix in SOURCE_SUFFIXES:
        module = _from_source(path, options, code, compiler, arch or SM_90.name, name, text)
        called = name or path.as_posix()
        return module if text is None else replace(module, sources={**module.sources, called: text})
    if text is not None:
        raise MemsimError(f"{path} is not a source file, so its text cannot be replaced")
    if options:
        raise MemsimError(f"{path} is already compiled; compiler options {list(options)} have no effect")
    if code == "ptx" and path.suffix != ".ptx":
        raise MemsimError(f"{path} holds machine code; its PTX is not read")
    if path.suffix == ".ptx":
        module = _from_ptx(_read(path), path, code, arch or SM_90.name)
    else:
        module = _from_binary(path, arch)
    return replace(module, given=look_beside(path, module.named)[0])


def look_beside(path: Path, named: Sequence[str]) -> tuple[Given, dict[str, str]]:
    """What lies beside a compiled file whose code calls its sources so, and the texts of those."""
    from memsim.compile.given import look_at
    from memsim.ptx.sourcelines import is_of_toolkit

    found = (_found(name, path) for name in named if not is_of_toolkit(name))
    return replace(look_at(path, filter(None, found)), named=tuple(named)), _sources(named, path)


def from_cubin(code: bytes, compiler: str = "", ptx: str = "") -> Module:
    """A module from the bytes of a cubin; who made it, and the PTX that it was made from, if that is known.

    Raises:
        MemsimError: it is no cubin.
    """
    from memsim.sass.machine_code import read_module

    return _machine_module(read_module(code, compiler=compiler, ptx=ptx), None, None)


def from_text(
    text: str, options: Sequence[str] = (), arch: str = SM_90.name, name: str = "kernel.cu"
) -> Module:
    """A module from the text of CUDA source, which `name` is the file of.

    Raises:
        MemsimError: it does not compile.
    """
    from memsim.compile import compile_cubin, compile_cuda
    from memsim.ptx.parser import parse
    from memsim.sass.machine_code import read_module

    text += "\n"
    if not _can_list(None):
        return replace(
            _ptx_module(parse(compile_cuda(text, options, arch, name), name)), sources={name: text}
        )
    compiled = compile_cubin(text, options, arch, name)
    machine = read_module(compiled.code, file=name, compiler=compiled.compiler, names=compiled.names)
    return replace(_machine_module(machine, None, None), sources={name: text, **compiled.headers})


def _from_source(
    path: Path,
    options: Sequence[str],
    code: str | None,
    compiler: str | None,
    arch: str,
    name: str | None,
    text: str | None = None,
    instances: Sequence[str] = (),
) -> Module:
    """A compiled `.cu` file, with these instances of its templates.

    `name` is what it is called, `text` what it is taken to hold.
    """
    from memsim.compile import compile_cuda
    from memsim.compile.kept import compiled_source
    from memsim.ptx.parser import parse
    from memsim.sass.machine_code import read_module

    source: str | Path = path
    if text is not None:
        source, options, name = text, [f"-I{path.parent}", *options], name or path.as_posix()
    if code != "ptx" and _can_list(code):
        compiled = compiled_source(source, options, arch, name, compiler, instances)
        machine = read_module(compiled.code, file=str(path), compiler=compiled.compiler, names=compiled.names)
        made = replace(_machine_module(machine, path, name), notes=compiled.notes)
    else:
        made = _ptx_module(parse(compile_cuda(source, options, arch, name, instances), str(path)), path, name)
    return replace(
        made,
        instantiate=lambda instance: _from_source(
            path, options, code, compiler, arch, name, text, (instance,)
        ),
    )


def _from_ptx(text: str, path: Path | None, code: str | None, arch: str) -> Module:
    """PTX, assembled if there is an assembler."""
    from memsim.ptx.parser import parse

    parsed = parse(text, str(path) if path else "PTX")
    if code != "ptx" and _can_list(code):
        from memsim.compile.kept import assembled
        from memsim.sass.machine_code import read_module

        compiled = assembled(text, _chip_for(parsed.target, arch), str(path) if path else "PTX")
        if compiled is not None:
            machine = read_module(compiled.code, compiler=compiled.compiler)
            return _machine_module(machine, path, None)
    if code == "sass":
        raise MemsimError(
            "no PTX assembler (ptxas) was found",
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


def chip_in(path: Path) -> Arch:
    """The chip whose machine code in a file is taken where nobody says which: sm_90, else the newest known.

    Raises:
        MemsimError: it holds no machine code.
    """
    from memsim.sass.binary import cubins_in

    chips = {plain_name(chip) for _, _, chip in cubins_in(path)}
    known = [name for name in ARCHS if name in chips]
    return get_arch(SM_90.name if SM_90.name in known or not known else known[-1])


def cubins_for(path: Path, arch: str | None) -> list[tuple[str, bytes]]:
    """(name, content) of each cubin in a file that `arch` runs; None for `chip_in`.

    Raises:
        MemsimError: it holds no machine code, or none for that chip.
    """
    from memsim.sass.binary import cubins_in

    found = cubins_in(path)
    wanted = chip_in(path).name if arch is None else plain_name(arch)
    fitting = [(name, content) for name, content, chip in found if plain_name(chip) == wanted]
    if not fitting and wanted in ARCHS:
        runs = get_arch(wanted).runs
        fitting = [(name, content) for name, content, chip in found if runs(chip)]
    if not fitting:
        chips = ", ".join(sorted({chip for _, _, chip in found}))
        raise MemsimError(f"{path} holds machine code for {chips}, but not for {wanted}")
    return fitting


def _from_binary(path: Path, arch: str | None) -> Module:
    """The machine code in a file: a cubin, a fat binary, an object, a library, a program, a wheel."""
    from memsim.sass.machine_code import read_module

    codes: dict[str, PtxKernel | SassKernel] = {}
    sources: dict[str, str] = {}
    named: dict[str, None] = {}
    for name, content in cubins_for(path, arch):
        module = _machine_module(read_module(content, file=name), path, None)
        codes.update({kernel: code for kernel, code in module.codes.items() if kernel not in codes})
        sources.update(module.sources)
        named.update(dict.fromkeys(module.named))
    return Module(codes, sources, named=tuple(named))


def _machine_module(machine: MachineModule, path: Path | None, name: str | None) -> Module:
    """A module of machine code, with those source files that can still be found."""
    codes = {entry: SassKernel(kernel) for entry, kernel in machine.kernels.items()}
    named = [place for listing in machine.listings.values() for place in _files_of(listing)]
    own = [name or path.as_posix()] if path is not None and path.suffix in SOURCE_SUFFIXES else []
    sources = {**_sources([*named, *own], path, name), **machine.own_sources}
    return Module(codes, sources, named=tuple(dict.fromkeys((*named, *sources))))


def _files_of(listing: Listing) -> list[str]:
    """The files that a kernel's lines are from."""
    return list(dict.fromkeys(line.source.file for line in listing.lines if line.source is not None))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise MemsimError(f"cannot read {path}: {problem}") from None


def _ptx_module(parsed: program.PtxModule, file: Path | None = None, name: str | None = None) -> Module:
    """A module of PTX with those source files that can still be found.

    The PTX of a file with nothing but templates does not name it.
    """
    own = [name or file.as_posix()] if file and file.suffix != ".ptx" else []
    codes = {entry: PtxKernel(parsed, entry) for entry in parsed.entries}
    named = tuple(dict.fromkeys((*parsed.files.values(), *own)))
    return Module(codes, _sources(named, file, name), named=named)


def _sources(names: Sequence[str], file: Path | None, called: str | None = None) -> dict[str, str]:
    """The texts of source files that can still be found.

    Beside `file`, which is `called` so, or as they are named.
    """
    found = {name: _found(name, file, called) for name in dict.fromkeys(names)}
    return {
        name: path.read_text(encoding="utf-8", errors="replace")
        for name, path in found.items()
        if path is not None
    }


def _found(name: str, file: Path | None, called: str | None = None) -> Path | None:
    near = [file.parent / name, file.parent / Path(name).name] if file else []
    if file and called and not Path(called).is_absolute():
        near = [file.parents[len(Path(called).parts) - 1] / name]
    return next((path for path in (*near, Path(name)) if file_exists(path)), None)


@dataclass(frozen=True, slots=True)
class KernelFile:
    """A kernel of a file, as a `memsim.job.Source`: `file`, and folders of headers, relative to `folder`.

    name: which kernel; None if the file has one only. options, code, compiler, text: as `load` takes them.
    """

    folder: Path
    file: str
    name: str | None = None
    options: tuple[str, ...] = ()
    code: str | None = None
    compiler: str | None = None
    text: str | None = None

    def load(self, arch: Arch) -> Kernel:
        """The kernel; its file is called what it is called here, wherever `folder` is.

        Raises:
            MemsimError: as `memsim.load`; or the file has no such kernel, or several.
        """
        from memsim.compile.kept import what_is_read
        from memsim.compile.paths import resolved

        path = self.folder / self.file
        if not file_exists(path):
            raise MemsimError("there is no such file", file=self.file)
        options = resolved(self.options, self.folder)
        read = None
        if path.suffix in SOURCE_SUFFIXES and self.text is None:
            read = what_is_read(path, options, self.file)
        how = path, tuple(options), self.code, self.compiler, arch.name, self.file
        key = repr((path.absolute(), read))
        made = _module(*how, self.text) if read is None else _module_once(*how, key)
        return made[self.name or _only_kernel(made, self.file)]


def _module(
    path: Path,
    options: Sequence[str],
    code: str | None,
    compiler: str | None,
    arch: str,
    name: str,
    text: str | None = None,
) -> Module:
    return load(path, options, code=code, compiler=compiler, arch=arch, name=name, text=text)


@lru_cache(maxsize=2)
def _module_once(
    path: Path,
    options: tuple[str, ...],
    code: str | None,
    compiler: str | None,
    arch: str,
    name: str,
    read: str,
) -> Module:
    """The module, for several jobs in a row; `read`: all that decides what it is."""
    return _module(path, options, code, compiler, arch, name)


def _only_kernel(module: Module, file: str) -> str:
    """The one kernel of a file that has one.

    Raises:
        MemsimError: it has none, or several.
    """
    if len(module) == 1:
        return module.kernels[0]
    if not module.kernels:
        raise MemsimError(
            "it contains no kernel",
            file=file,
            hint="a kernel is a __global__ function; a template must be instantiated",
        )
    raise MemsimError(
        f"it contains {len(module)} kernels",
        file=file,
        hint=f"choose one by --kernel, or by kernel in a configuration: {', '.join(_shown(module))}",
    )


def job_of(
    kernel: Kernel | Callable[..., object],
    grid: Any,
    block: Any,
    args: Sequence[Any],
    shared_bytes: int | None = 0,
    cluster: int | Sequence[int] | None = None,
    **more: Any,
) -> Job:
    """The job that the keywords of `trace`, `analyze` and `run` describe.

    Raises:
        MemsimError: what is given for the kernel is none, or such a launch cannot be.
    """
    source: Kernel | PythonFunction
    if callable(kernel):
        from memsim.sketch.python_function import PythonFunction

        source, grid, shared_bytes = PythonFunction(function=kernel), 1 if grid is None else grid, 0
    else:
        _check_kernel(kernel)
        source = kernel
        more = {"arch": arch_of_code(kernel.origin.arch), **more}
        if shared_bytes is None:
            shared_bytes = more["arch"].shared_block_bytes - kernel.code.static_shared
            assumed = (
                f"dynamic shared memory was not given; assuming the maximum of a block, {shared_bytes:,} B"
            )
            more = {**more, "unsure": (assumed,)}
    clustered = None if cluster is None else dim3(cluster, "cluster")
    launch = Launch(dim3(grid, "grid"), dim3(block, "block"), shared_bytes, clustered)
    return Job(source, launch, args, **more)


def trace(
    kernel: Kernel | Callable[..., object],
    grid: int | Sequence[int] | None = None,
    block: int | Sequence[int] | None = None,
    args: Sequence[Any] = (),
    shared_bytes: int | None = 0,
    blocks: int | None = None,
    progress: Progress | None = None,
    *,
    everything: bool = False,
    apart: bool = False,
    cluster: int | Sequence[int] | None = None,
    max_steps: int | None = None,
    allow_out_of_bounds: bool = False,
) -> Trace:
    """The addresses of every shared and global access of a launch, described as for `analyze`.

    `everything`, `apart`: as `trace_job`.

    Raises:
        MemsimError: a launch or arguments that do not fit, or whatever goes wrong in the kernel.
    """
    job = job_of(
        kernel,
        grid,
        block,
        args,
        shared_bytes,
        cluster,
        blocks=blocks,
        max_steps=max_steps,
        allow_out_of_bounds=allow_out_of_bounds,
    )
    return trace_job(job, progress, everything=everything, apart=apart)


def analyze(
    kernel: Kernel | Callable[..., object],
    grid: int | Sequence[int] | None = None,
    block: int | Sequence[int] | None = None,
    args: Sequence[Any] = (),
    shared_bytes: int | None = 0,
    blocks: int | None = None,
    arch: str | Arch | None = None,
    progress: Progress | None = None,
    *,
    cluster: int | Sequence[int] | None = None,
    max_steps: int | None = None,
    allow_out_of_bounds: bool = False,
) -> Analysis:
    """What every access of a launch costs, by source line.

    Args:
        kernel: `load(...)[name]`; or index math in Python, a function of the `Thread` and of `args`
            (docs/layouts.md).
        grid, block: one to three ints, as CUDA's `dim3`. Of a function, `grid` may be left out: one block.
        args: arrays and scalars, in kernel order. An array is one of numpy, torch, CuPy or whoever speaks
            DLPack, or an `ArrayArg` by shape and type. Allocations lie at multiples of 256 bytes, as
            `cudaMalloc` gives them, and a view where it begins in its own; none is changed. None is a null
            pointer, `Pointers` a table of them; `TensorMap` a parameter or part of a struct, `TensorMaps` a
            table of them. A struct is a list of its parts, as `[A, np.int32(3)]` for a
            pointer and an int, a numpy scalar, or bytes. Texts are read as `--arg` of the command line:
            `"f32[1024,1024]"`.
        shared_bytes: dynamic shared memory of a block, in bytes; None if it is not known: then as much as a
            block can have, and the report says so.
        blocks: replay only so many blocks, spread evenly over the grid; None for all.
        arch: whose rules to count by, or its name; left out, the chip that the code was made for.
        cluster: blocks of a cluster, as `grid`, where the launch chooses it; None leaves it to the code.
        max_steps: instructions after which a chunk of blocks counts as endless; None for five million.
        allow_out_of_bounds: count a load outside of every array, whose value is then not known, instead of
            raising an error.

    Raises:
        MemsimError: a launch or arguments that do not fit, or whatever goes wrong in the kernel.
    """
    from memsim.analysis import analyze_trace

    chosen = {} if arch is None else {"arch": get_arch(arch)}
    job = job_of(
        kernel,
        grid,
        block,
        args,
        shared_bytes,
        cluster,
        blocks=blocks,
        max_steps=max_steps,
        allow_out_of_bounds=allow_out_of_bounds,
        **chosen,
    )
    return analyze_trace(trace_job(job, progress), job.arch)


def run(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any] = (),
    shared_bytes: int | None = 0,
    progress: Progress | None = None,
    *,
    cluster: int | Sequence[int] | None = None,
    max_steps: int | None = None,
) -> None:
    """Execute a launch completely; arrays are written in place, as on a GPU. The rest as for `analyze`.

    Raises:
        MemsimError: a launch or arguments that do not fit, a result that depends on an
            instruction that is not executed, or whatever goes wrong in the kernel.
    """
    run_job(job_of(kernel, grid, block, args, shared_bytes, cluster, max_steps=max_steps), progress)


def trace_job(
    job: Job,
    progress: Progress | None = None,
    *,
    everything: bool = False,
    apart: bool = False,
    everywhere: bool = False,
) -> Trace:
    """The addresses of every shared and global access of a job.

    `everything`: execute all instructions instead of those that addresses and branches depend on; the trace
    is the same, and array arguments are written in place. `apart`: shared requests with a multiple of 128
    bytes between them, which cost the same, are rows of their own: another layout may tell them apart.
    `everywhere`: global requests too, of which there may be many.

    Raises:
        MemsimError: whatever is wrong with the kernel, its launch or its arguments, or goes wrong in it.
    """
    from memsim.model.alike import alike
    from memsim.ptx.demangle import short_name
    from memsim.trace.record import Recorder
    from memsim.trace.trace import Trace
    from memsim.trace.trace_source import TraceSource

    chosen = _blocks(job)
    stands_for = None if apart or everywhere else partial(alike, arch=job.arch)
    new_recorder = partial(Recorder, stands_for, apart=apart, everywhere=everywhere)
    if isinstance(job.kernel, TraceSource):
        return job.kernel.trace(job.launch, job.args, chosen, progress, new_recorder)
    kernel, launch, recorder = job.loaded, job.launch, new_recorder()
    memory = _execute(job, recorder, progress, everything=everything, blocks=chosen)
    sites, columns = recorder.columns()
    listing = kernel.code.listing
    arrays = [
        (short_name(buffer.name), space, buffer.start - base, buffer.end - buffer.start)
        for space, base in (("shared", memory.layouts["shared"].base), ("global", 0), ("local", 0))
        for buffer in memory.layouts[space].buffers
    ]
    return Trace(
        kernel=kernel.title,
        launch=launch,
        blocks_replayed=launch.blocks if chosen is None else len(chosen),
        sites=tuple(sites),
        arrays=tuple(arrays),
        sources={site.file: kernel.sources[site.file] for site in sites if site.file in kernel.sources},
        notes=tuple(recorder.notes),
        unsure=(*job.unsure, *sorted(recorder.not_sure)),
        writers=recorder.writers.threads,
        origin=kernel.origin,
        listing=listing,
        executed=recorder.executions.of(len(listing)),
        apart=recorder.is_apart,
        layouts={},
        resources=kernel.code.resources,
        blocks_alike=recorder.executions.blocks_alike,
        footprint=recorder.marks.footprint,
        **columns,
    )


def run_job(job: Job, progress: Progress | None = None) -> None:
    """Executes all of a job; array arguments are written in place.

    Raises:
        MemsimError: as `run`.
    """
    _execute(job, _Deaf(), progress, everything=True)


def _execute(job: Job, listener: Any, progress: Progress | None, **how: Any) -> Any:
    from memsim.arrays import as_arguments
    from memsim.simt.execute_program import MAX_STEPS

    kernel, steps = job.loaded, job.max_steps or MAX_STEPS
    return kernel.code.execute(
        job.launch,
        as_arguments(job.values),
        kernel.argument_names,
        listener,
        arch=job.arch,
        progress=progress,
        max_steps=steps,
        allow_out_of_bounds=job.allow_out_of_bounds,
        **how,
    )


def _blocks(job: Job) -> np.ndarray | None:
    """Linear numbers of the blocks to replay, the first and last of the grid included; None for all."""
    blocks = job.launch.blocks
    everything = job.blocks is None or job.blocks >= blocks
    if everything and job.part is None:
        return None
    wanted = blocks if everything or job.blocks is None else job.blocks
    chosen = np.unique(np.linspace(0, blocks - 1, wanted).round().astype(np.int64))
    if job.part is None:
        return chosen
    number, parts = job.part
    return np.array_split(chosen, parts)[number]


class _Deaf:
    """A listener for those who want results only."""

    def start_chunk(self, machine: Any) -> None:
        """Nothing to do."""

    def access(self, *event: Any) -> None:
        """Nothing to do."""

    def stretches(self, *event: Any) -> None:
        """Nothing to do."""

    def unknown(self, *event: Any) -> None:
        """Nothing to do."""

    def aside(self, *event: Any) -> None:
        """Nothing to do."""

    def unsure(self, what: str) -> None:
        """Nothing to do."""

    def executed(self, start: int, stop: int, mask: Any) -> None:
        """Nothing to do."""
