"""What goes into a compiler and what comes out: the source with its options, and a cubin.

The options are defaults, those of `compile_commands.json`, and the user's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memsim.boundary import confinement
from memsim.compile.file_names import Names
from memsim.compile.included_files import read_source
from memsim.compile.options import of_build
from memsim.compile.untrusted_input import check_includes, check_options, is_harmless


@dataclass(frozen=True, slots=True)
class CompilerInput:
    """A source file or text.

    Attributes:
        text: what is compiled.
        path: its file; None for text.
        folder: where its includes are looked up.
        name: its display name.
    """

    text: str
    path: Path | None
    folder: Path
    name: str

    @property
    def true_name(self) -> str:
        """Its absolute path, as compilers report it."""
        return (self.folder / Path(self.name).name).as_posix()

    @property
    def neutral_name(self) -> str:
        """The path under which NVRTC makes machine code, in a folder that does not exist.

        Line tables contain it, so a cubin is the same wherever its source lies, unless headers beside it have
        code. They are found in `folder`, which is the first of the include folders.
        """
        return Path(self.folder.anchor, "memsim-source", Path(self.name).name).as_posix()


@dataclass(frozen=True, slots=True)
class Compiled:
    """A cubin, and how it was made.

    Attributes:
        cubin: its bytes.
        compiler: `NVRTC 12.0.140`, `NVRTC 12.0.140, host code set aside`, `nvcc 13.0.88`,
            `ptxas 13.0.88`, `nvJitLink 12.9.86`.
        arch: as requested, `sm_90a`.
        log: the compiler's warnings.
        names: display names of the files in the line tables.
        headers: texts of the files that the source includes, by name, compiled in or not.
        notes: for the report.
    """

    cubin: bytes = field(repr=False)
    compiler: str
    arch: str
    log: str = ""
    names: Names = field(default_factory=Names)
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()


def prepare(
    source: str | Path, options: Sequence[str], name: str | None
) -> tuple[CompilerInput, list[str], tuple[str, ...]]:
    """(the source; its options: -lineinfo, those of `compile_commands.json`, the user's; notes).

    Raises:
        MemsimError: no such file, not a text file, or one that asks for more than is trusted.
    """
    path, text = read_source(source)
    name = name or (Path(source).as_posix() if path else "kernel.cu")
    folder = path.parent if path else Path.cwd()
    told, commands = of_build(path) if path else ([], None)
    told = list(filter(is_harmless, told))
    notes = (f"options of {commands}: {' '.join(told)}",) if commands is not None and told else ()
    given = [*told, *options]
    if confinement() is not None:
        check_options(given)
        check_includes(text, folder, given, name)
    has_standard = any(option.lstrip("-").startswith("std=") for option in given)
    standard = () if has_standard else ("-std=c++17",)
    return CompilerInput(text, path, folder, name), ["-lineinfo", *standard, f"-I{folder}", *given], notes
