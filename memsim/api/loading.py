"""Loading a module: CUDA source, PTX, or a file with machine code in it, and its sources; and what is loaded:
kernels by name, and instances of templates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from memsim.arch import SM_90
from memsim.boundary import Boundary
from memsim.errors import MemsimError
from memsim.files import file_exists, read_text
from memsim.kernel import Kernel

if TYPE_CHECKING:
    from memsim.compile.included_files import Given
    from memsim.sass.machine_code import MachineKernel, MachineModule


@dataclass(frozen=True)
class Module:
    """A loaded module. `module[name]` takes an entry's name in the code, or its demangled name.

    `machines`: its kernels by name, in the file's order. `instantiate`: makes a module of the same source
    with an instance of one of its templates; None where there is no source to do so. `notes`: of how it was
    compiled. `given`: the compiled file that it is of, with the sources beside it. `named`: what the code
    calls its sources, whether they can be found or not. `sources_of`: finds those of one kernel; None where
    `sources` has all.
    """

    machines: Mapping[str, MachineKernel] = field(repr=False)
    sources: Mapping[str, str] = field(repr=False, default_factory=dict)
    instantiate: Callable[[str], Module] | None = field(repr=False, default=None, compare=False)
    notes: tuple[str, ...] = field(repr=False, default=(), compare=False)
    given: Given | None = field(repr=False, default=None, compare=False)
    named: tuple[str, ...] = field(repr=False, default=(), compare=False)
    sources_of: Callable[[MachineKernel], dict[str, str]] | None = field(
        repr=False, default=None, compare=False
    )

    def __repr__(self) -> str:
        return f"<Module with {', '.join(shown_names(self)) or 'no kernel'}>"

    @property
    def kernels(self) -> tuple[str, ...]:
        """Entry names as the compiler writes them, in the file's order."""
        return tuple(self.machines)

    def __getitem__(self, name: str) -> Kernel:
        """The kernel of that name.

        Raises:
            MemsimError: there is none, or several.
        """
        from memsim.names.demangle import resolve

        if not isinstance(name, str):
            raise MemsimError(f"a kernel is chosen by its name, not by {name!r}", hint=choice_of(self))
        try:
            entry = resolve(self.kernels, name)
        except MemsimError as error:
            return self._instance(name, error)
        machine = self.machines[entry]
        sources = self.sources if self.sources_of is None else self.sources_of(machine)
        return Kernel(entry, machine, {**sources, **machine.own_source}, self.notes, given=self.given)

    def _instance(self, name: str, error: MemsimError) -> Kernel:
        """The instance of a template that `name` is, made now."""
        from memsim.names.demangle import demangle, plain_name

        plain = plain_name(name)
        template = self.only_templates(plain)
        if template is not None and "<" in name and self.instantiate is not None:
            made = self.instantiate(name)
            # Other kernels may be new, too: names in an anonymous namespace hold a digest of the code.
            new = [
                entry
                for entry in made.machines.keys() - self.machines
                if plain_name(demangle(entry)) == plain
            ]
            if len(new) == 1:
                return made[new[0]]
        elif template is not None and plain not in map(plain_name, shown_names(self)):
            raise template from None
        raise error from None

    def only_templates(self, plain: str | None = None) -> MemsimError | None:
        """The error for a template without an instance, the first of this name; None if there is none."""
        from memsim.source.kernels import kernels

        for file, text in self.sources.items():
            for kernel in kernels(text):
                if kernel.template and plain in (None, kernel.plain):
                    return MemsimError(
                        f"{kernel.plain} is a template with no instance",
                        file=file,
                        line=kernel.line,
                        hint=f"name an instance, such as --kernel '{kernel.example}': {kernel.signature}",
                    )
        return None

    def __iter__(self) -> Iterator[str]:
        return iter(self.kernels)

    def __len__(self) -> int:
        return len(self.kernels)


def shown_names(module: Module) -> list[str]:
    """Its kernels by the names that people write."""
    from memsim.names.demangle import demangle

    return [demangle(name) for name in module.kernels]


def choice_of(module: Module) -> str:
    """How to choose a kernel of the module."""
    names = shown_names(module)
    return f"write module[{names[0]!r}]; it has {', '.join(names)}" if names else "it contains no kernel"


SOURCE_SUFFIXES = (".cu", ".cuh", ".cpp", ".cc")
BINARY_SUFFIXES = tuple(".cubin .fatbin .o .obj .a .so .out .exe .dll .pyd .whl .zip".split())


@runtime_checkable
class ObjectCode(Protocol):
    """A compiled module of `cuda.core`: what kind of code it is, and the code or the path of its file."""

    @property
    def code_type(self) -> str: ...

    @property
    def code(self) -> bytes | str: ...


def load(
    source: str | Path | ObjectCode,
    options: Sequence[str] = (),
    *,
    compiler: str | None = None,
    arch: str | None = None,
    name: str | None = None,
    text: str | None = None,
    instances: Sequence[str] = (),
) -> Module:
    """A module from CUDA source, PTX, or a file that holds machine code.

    Args:
        source: a `.cu` file, which is compiled; a `.ptx` file, which is assembled; the text of either; a
            `.cubin`; a fat binary, an object, a library or a program with machine code for `arch` in it; a
            cubin or PTX as an `ObjectCode` of cuda.core.
        options: for the compiler, as `-DBM=64` or `-Iinclude`.
        compiler: "nvrtc" or "nvcc"; None: NVRTC, which has host code set aside, and nvcc where it refuses.
        arch: the chip to compile for, sm_90 if left out; of machine code, that of several which is wanted.
        name: what a source file is called; its path if left out.
        text: what a source file is taken to hold, instead of what it holds: a change that is not saved.
        instances: of a source file's templates, instead of those that it launches.

    Raises:
        MemsimError: no such file, it does not compile, or it holds no kernel for the chip.
    """
    if isinstance(options, str):
        hint = f"write options={options.split()}; a kernel is chosen by load(...)[{options!r}]"
        raise MemsimError(f"options must be a list, not {options!r}", hint=hint)
    if isinstance(source, ObjectCode):
        code, kind = source.code, source.code_type
        if isinstance(code, str):
            return load(code, arch=arch)
        if kind == "cubin":
            return from_cubin(code)
        if kind == "ptx":
            return _from_ptx(code.decode(), None, arch or SM_90.name)
        raise MemsimError(f"an ObjectCode with {kind} cannot be loaded", hint="compile it to cubin or to ptx")
    if isinstance(source, str) and "__global__" in source:
        return from_text(source, options, arch or SM_90.name, name or "kernel.cu", compiler)
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith(".version")):
        return _from_ptx(source, None, arch or SM_90.name)
    if not isinstance(source, (str, Path)) or source == "":
        raise MemsimError(
            f"{source!r} cannot be loaded",
            hint="load takes the path of a .cu, .ptx or .cubin file, or the text of CUDA source or PTX",
        )
    path = Path(source)
    if not file_exists(path):
        raise MemsimError(f"there is no file {path}")
    if path.suffix in SOURCE_SUFFIXES:
        return _from_source(path, options, compiler, arch or SM_90.name, name, text, instances)
    if text is not None:
        raise MemsimError(f"{path} is not a source file, so its text cannot be replaced")
    if options:
        raise MemsimError(f"{path} is already compiled; compiler options {list(options)} have no effect")
    if path.suffix == ".ptx":
        module = _from_ptx(read_text(path), path, arch or SM_90.name)
    else:
        module = _from_binary(path, arch)
    return replace(module, given=look_beside(path, module.named)[0])


def look_beside(path: Path, named: Sequence[str]) -> tuple[Given, dict[str, str]]:
    """What lies beside a compiled file whose code calls its sources so, and the texts of those."""
    from memsim.compile.included_files import look_at
    from memsim.compile.shown_sources import in_library

    texts = texts_beside(path)
    found = (texts.find(name) for name in named if not in_library(name))
    return replace(look_at(path, filter(None, found)), named=tuple(named)), texts.of(named)


def from_cubin(
    content: bytes,
    compiler: str = "",
    ptx: str = "",
    texts: SourceTexts | None = None,
    listing: str | None = None,
) -> Module:
    """A module from the bytes of a cubin; who made it, and the PTX that it was made from, if that is known.

    texts: where its sources are looked up; the project around the working folder if left out. listing: its
    disassembly; made if left out.

    Raises:
        MemsimError: it is not a cubin.
    """
    from memsim.sass.machine_code import read_module

    machine = read_module(content, listing, compiler=compiler, ptx=ptx)
    return Module(machine.kernels, sources_of=partial(_sources_of, texts or texts_beside(None)))


def from_text(
    text: str,
    options: Sequence[str] = (),
    arch: str = SM_90.name,
    name: str = "kernel.cu",
    compiler: str | None = None,
) -> Module:
    """A module from the text of CUDA source, which `name` is the file of.

    Raises:
        MemsimError: it does not compile.
    """
    return _from_source(Path(name), options, compiler, arch, name, text)


def _from_source(
    path: Path,
    options: Sequence[str],
    compiler: str | None,
    arch: str,
    name: str | None,
    text: str | None = None,
    instances: Sequence[str] = (),
) -> Module:
    """A compiled `.cu` file, with these instances of its templates.

    `name` is what it is called, `text` what it is taken to hold.
    """
    from memsim.compile.compile_cache import compiled_source
    from memsim.sass.machine_code import read_module

    source: str | Path = path
    if text is not None:  # a line break tells a text from a path
        source, options, name = f"{text}\n", [f"-I{path.parent}", *options], name or path.as_posix()
    texts = texts_beside(path, name, options)
    compiled = compiled_source(source, options, arch, name, compiler, instances)
    names = compiled.names
    if text is not None:  # compiled elsewhere: headers beside the file are named as with the file
        names = replace(names, pairs=(*names.pairs, (path.absolute().as_posix(), name or path.as_posix())))
    machine = read_module(compiled.cubin, file=str(path), compiler=compiled.compiler, names=names)
    made = _machine_module(machine, texts)
    # The code does not name a header that has templates only, or none that it launches.
    templates = {
        header: said
        for header, said in compiled.headers.items()
        if "__global__" in said and texts.find(header) is not None
    }
    sources = {**made.sources, **templates}
    return replace(
        made,
        sources=sources if text is None else {**sources, name or "": text},
        notes=compiled.notes,
        instantiate=lambda instance: _from_source(path, options, compiler, arch, name, text, (instance,)),
    )


def _from_ptx(text: str, path: Path | None, arch: str) -> Module:
    """What an assembler makes of PTX."""
    from memsim.compile.assemble import target_of
    from memsim.compile.compile_cache import assemble_cached
    from memsim.sass.machine_code import read_module

    # The chip of the rules, or its variant that the PTX asks for.
    target = target_of(text) or arch
    compiled = assemble_cached(text, target if target.startswith(arch) else arch, str(path or "PTX"))
    machine = read_module(compiled.cubin, compiler=compiled.compiler)
    return _machine_module(machine, texts_beside(path))


def _from_binary(path: Path, arch: str | None) -> Module:
    """The machine code in a file: a cubin, a fat binary, an object, a library, a program, a wheel."""
    from memsim.api.machine_code_file import code_in

    code = code_in(path, arch)
    notes: tuple[str, ...] = ()
    if code.is_relocatable:
        notes = (f"{path.name} is to be linked (nvcc -dc): addresses that the linker fills in are unknown",)
    if code.is_library:  # each kernel is disassembled when it is asked for
        return Module(code, {}, notes=notes, sources_of=partial(_sources_of, texts_beside(path)))
    made = [_machine_module(module, texts_beside(path)) for module in code.modules]
    sources = {file: text for one in made for file, text in one.sources.items()}
    named = dict.fromkeys(name for one in made for name in one.named)
    return Module(dict(code), sources, notes=notes, named=tuple(named))


def _sources_of(texts: SourceTexts, machine: MachineKernel) -> dict[str, str]:
    """Those source files of a kernel that can still be found."""
    listing = machine.module.listing_of(machine.name)
    lines = () if listing is None else listing.lines
    return texts.of(dict.fromkeys(line.source.file for line in lines if line.source is not None))


def _machine_module(machine: MachineModule, texts: SourceTexts) -> Module:
    """A module of machine code, with those source files that can still be found."""
    lines = (line for listing in machine.listings.values() for line in listing.lines)
    files = [line.source.file for line in lines if line.source is not None]
    # Its own source is among them: the code of a file with nothing but templates does not name it.
    path = texts.file
    source = [texts.called or path.as_posix()] if path is not None and path.suffix in SOURCE_SUFFIXES else []
    named = tuple(dict.fromkeys((*files, *source)))
    return Module(machine.kernels, texts.of(named), named=named)


@dataclass(frozen=True, slots=True)
class SourceTexts:
    """Looks source files up by the names that code has for them.

    folders: where they may lie. file: what was loaded, beside which they are looked for first; None for a
    text. called: its display name, if it has one.
    """

    folders: Boundary
    file: Path | None = None
    called: str | None = None

    def of(self, names: Iterable[str]) -> dict[str, str]:
        """The texts of those that can be found and may be shown."""
        from memsim.compile.shown_sources import shown_text

        found = {name: self.find(name) for name in names}
        texts = {name: shown_text(path, self.folders) for name, path in found.items() if path is not None}
        return {name: text for name, text in texts.items() if text is not None}

    def find(self, name: str) -> Path | None:
        """The file that code names so; None if there is none that may be shown."""
        from memsim.compile.shown_sources import may_be_shown

        near = [self.file.parent / name, self.file.parent / Path(name).name] if self.file else []
        if self.file and self.called and not Path(self.called).is_absolute():
            near = [self.file.parents[len(Path(self.called).parts) - 1] / name]
        candidates = (path for path in (*near, Path(name)) if file_exists(path))
        return next((path for path in candidates if may_be_shown(path, self.folders)), None)


def texts_beside(file: Path | None, called: str | None = None, options: Sequence[str] = ()) -> SourceTexts:
    """The sources of a target: `file`, which is `called` so, compiled with `options`."""
    from memsim.compile.shown_sources import source_folders

    return SourceTexts(source_folders(file, options), file, called)
