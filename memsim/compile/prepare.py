"""What goes into a compiler and what comes out: the source with its options, and a cubin with the names
that people know its files by.

The options are defaults, those of `compile_commands.json`, and the user's. Where nothing is trusted, only
options that are known to change nothing but the code are taken, and sources whose every `#include` is a file
of the project or a library's. Compilers know true paths, people know the names that they passed: a cubin has
the compiler's in its line tables, `Names` maps them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePath

from memsim.boundary import confinement
from memsim.compile.included_files import literal_includes, read_source
from memsim.compile.options import INCLUDE, SHORT, include_folders, of_build, split_options
from memsim.errors import MemsimError
from memsim.files import read_bytes

BUILTIN_HEADER = "__nv_nvrtc_builtin_header.h"


@dataclass(frozen=True, slots=True)
class Names:
    """Pairs of a file's true absolute path and its display name; neighbouring files are named
    relative to it.
    """

    pairs: tuple[tuple[str, str], ...] = ()

    def name_of(self, path: str) -> str:
        """The display name of a file in a cubin's line tables."""
        return _name_of(self.pairs, path)

    def renamed(self, log: str) -> str:
        """A compiler's log with display names."""
        for true_name, name in self.pairs:
            log = rename(log, true_name, name)
        return log


@lru_cache(maxsize=1024)  # a listing has a name for each of its lines
def _name_of(pairs: tuple[tuple[str, str], ...], path: str) -> str:
    path = path.replace("\\", "/")
    if path.endswith("/" + BUILTIN_HEADER):  # NVRTC places its built-in header in the current folder
        return BUILTIN_HEADER
    for true_name, name in pairs:
        path = rename(_unescaped(path, true_name), true_name, name)
    return path


def _unescaped(path: str, true_name: str) -> str:
    """`path`, if it is that of `true_name` or lies in its folder, with the characters that it has.

    NVRTC writes a byte that is not ASCII as `\\303`, and takes that backslash for a separator.
    """
    for begin in (true_name, true_name.rpartition("/")[0] + "/"):
        written = "".join(chr(b) if 32 <= b < 127 else f"/{b:03o}" for b in os.fsencode(begin))
        if path.startswith(written):
            return begin + path[len(written) :]
    return path


def rename(text: str, true_name: str, name: str) -> str:
    """`text` with `true_name`, and its folders where a line starts with them, replaced by `name`."""
    true_folder, folder = Path(true_name).parent, Path(name).parent
    while folder.name not in ("", "..") and folder.name == true_folder.name:
        true_folder, folder = true_folder.parent, folder.parent  # also for headers beside the file's folder
    here = true_folder.as_posix().rstrip("/") + "/"
    there = folder.as_posix().rstrip("/") + "/"
    there = "" if there == "./" else there
    lines = text.replace(true_name, name).splitlines(keepends=True)
    return "".join(there + line[len(here) :] if line.startswith(here) else line for line in lines)


# An allow-list: nvcc has options that name programs (-ccbin), files of options, and files to write.
_HARMLESS = re.compile(
    r"-[DU][A-Za-z_]\w*(?:\([\w, .]*\))?(?:=[^\x00-\x1f$`\\]*)?|-O[0-3]|-G|-w|-lineinfo|--?std=[\w+]+"
    r"|--?(?:ftz|fmad|prec-div|prec-sqrt|restrict|use_fast_math|extra-device-vectorization)(?:=(?:true|false))?"
    r"|--?maxrregcount=\d+|--?diag-suppress=[\d,]+|(?:-Xptxas|--?ptxas-options)=(?:-v|-O[0-3]|-d[ls]cm=\w+)"
    r"|--?(?:expt-)?(?:relaxed-constexpr|extended-lambda)|--?generate-line-info|--?device-debug"
    r"|--?default-device|--device-as-default-execution-space"
)


def is_harmless(option: str) -> bool:
    """Whether an option may be given to a compiler, as far as what it is given is trusted."""
    boundary = confinement()
    if boundary is None or _HARMLESS.fullmatch(option):
        return True
    name, path = next(split_options([option]))
    return name in INCLUDE and path is not None and boundary.holds_folder(Path(path))


def check_options(options: Sequence[str]) -> None:
    """Raise an error if one of them might run a program, read or write a file, or is not known."""
    words = iter(options)
    for word in words:
        if word in (*INCLUDE, "-D", "-U"):
            word += ("" if word in (SHORT, "-D", "-U") else "=") + next(words, "")
        if not is_harmless(word):
            raise MemsimError(
                f"the option {word!r} is not allowed with --untrusted",
                hint="macros, folders of the project and options of code generation are: docs/security.md",
            )


def check_includes(text: str, folder: Path, options: Sequence[str], name: str) -> None:
    """Raise an error if a source in a folder may include a file that is not of the project.

    Wherever a compiler may find it is looked at: by which of its rules it chooses makes no difference.
    """
    boundary = confinement()
    assert boundary is not None
    folders = [folder, *include_folders(options)]
    waiting, seen = [(text, folder, name)], set[Path]()
    while waiting:
        text, here, name = waiting.pop()
        names = literal_includes(text)
        if names is None:
            raise MemsimError(
                "an #include does not say which file",
                file=name,
                hint='with --untrusted, write #include "file" or <file> in a line; macros are not followed',
            )
        for header in names:
            places = (place / header for place in (here, *folders))
            found = [path for path in places if os.path.lexists(path) and not path.is_dir()]
            leaves = PurePath(header).is_absolute() or ".." in PurePath(header).parts
            if not all(map(boundary.holds, found)) or (leaves and not found):
                raise MemsimError(
                    f'it includes "{header}", which is not a file of the project',
                    file=name,
                    hint="with --untrusted, a source includes files of the project and libraries only",
                )
            for path in found:
                real = path.resolve()
                if real not in seen:
                    seen.add(real)
                    waiting.append((read_bytes(real).decode("utf-8", "replace"), path.parent, header))


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
            `ptxas 13.0.88`.
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
