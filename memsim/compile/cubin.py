"""CUDA C++ to a cubin: the machine code of one chip.

In: a `.cu` file (or its text) and compiler options. Out: the cubin's bytes, and what its files are called:
a cubin's line tables say where files truly were, so its bytes differ from folder to folder, and code,
constants and sizes do not. Left out on purpose: what the code means.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from memsim.compile.failure import compile_error, needs_host
from memsim.compile.names import Names, rename
from memsim.compile.nvcc import nvcc_cubin
from memsim.compile.nvrtc import run_nvrtc
from memsim.compile.ptx import compiler_of
from memsim.compile.source import default_standard, included_files, read_source
from memsim.compile.toolkit import tool_release
from memsim.errors import MemsimError

_CHIP = re.compile(r"sm_\d+[af]?")


@dataclass(frozen=True, slots=True)
class Compiled:
    """Machine code and where it comes from.

    Attributes:
        code: the cubin.
        compiler: `NVRTC 12.0.140`, `nvcc 13.0.88`, `ptxas 13.0.88`, `nvJitLink 12.9.86`.
        arch: as asked for, `sm_90a`.
        log: the compiler's warnings.
        names: what the files in the line tables are called.
        headers: texts of the files that the source includes, by name, compiled in or not.
    """

    code: bytes = field(repr=False)
    compiler: str
    arch: str
    log: str = ""
    names: Names = field(default_factory=Names)
    headers: dict[str, str] = field(default_factory=dict, repr=False)


def compile_cubin(
    source: str | Path,
    options: Sequence[str] = (),
    arch: str = "sm_90",
    name: str | None = None,
    compiler: Literal["nvrtc", "nvcc"] | None = None,
) -> Compiled:
    """The machine code of a `.cu` file or of CUDA C++ text.

    Args:
        source: a path, or the text itself (a string with a line break in it).
        options: for the compiler, as `-DBM=64` or `-Iinclude`. `-lineinfo` is always added, `-std=c++17`
            unless another standard is given.
        arch: the chip, `sm_90` or `sm_90a`.
        name: what errors and `Compiled.names` call the file; the path as given if left out, `kernel.cu` for
            text. Headers are named as if from where `name` is relative to.
        compiler: None for NVRTC, and nvcc where that fails for want of host code.

    Raises:
        MemsimError: no such file; no such compiler; an unknown option; code that does not compile, with the
            place of the first error and the compiler's log.
    """
    if not _CHIP.fullmatch(arch):
        raise MemsimError(f"there is machine code for a chip such as sm_90, and not for {arch!r}")
    path, text = read_source(source)
    name = name or (Path(source).as_posix() if path else "kernel.cu")
    folder = path.parent if path else Path.cwd()
    options = ["-lineinfo", *default_standard(options), f"-I{folder}", *options]
    if compiler == "nvcc" and not shutil.which("nvcc"):
        raise MemsimError("nvcc is not on PATH", hint="install the CUDA toolkit, or compile with NVRTC")

    log = ""
    if compiler != "nvcc":
        true_name = (folder / Path(name).name).as_posix()
        program = run_nvrtc(text, true_name, options, arch)
        log = rename(program.log, true_name, name)
        if program.cubin is not None and program.ptx is not None:
            release = compiler_of(program.ptx)
            names = Names(((true_name, name),))
            headers = _headers(text, folder, options, names)
            made_by = f"NVRTC {release}" if release else "NVRTC"
            return Compiled(program.cubin, made_by, arch, log, names, headers)
    if compiler == "nvcc" or (compiler is None and needs_host(text, log) and shutil.which("nvcc")):
        cubin, log, names = nvcc_cubin(text, path, folder, name, [f"-arch={arch}", *options])
        if cubin is not None:
            made_by = f"nvcc {tool_release(Path(shutil.which('nvcc') or 'nvcc'))}".strip()
            return Compiled(cubin, made_by, arch, log, names, _headers(text, folder, options, names))
    raise compile_error(text, log, name)


def _headers(text: str, folder: Path, options: Sequence[str], names: Names) -> dict[str, str]:
    files = included_files(text, folder, options)
    return {names.name_of(path.as_posix()): content for path, content in files.items()}
