"""Compiles CUDA C++ to a cubin, the machine code of one chip, or to PTX; both have line information.

A cubin's line tables contain paths: those of headers as they are, so that its bytes depend on the folder if a
header of the user's has code; that of the source itself in a folder of no meaning. Code, constants and sizes
do not depend on the folder.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from memsim.compile.build import build
from memsim.compile.file_names import rename_files
from memsim.compile.included_files import included_files
from memsim.compile.prepare import Compiled, prepare
from memsim.errors import MemsimError

_CHIP = re.compile(r"sm_\d+[af]?")


def compile_cubin(
    source: str | Path,
    options: Sequence[str] = (),
    arch: str = "sm_90",
    name: str | None = None,
    compiler: Literal["nvrtc", "nvcc"] | None = None,
    instances: Sequence[str] = (),
) -> Compiled:
    """The machine code of a `.cu` file or of CUDA C++ text.

    Args:
        source: a path, or the text itself (a string with a line break).
        options: for the compiler, such as `-DBM=64` or `-Iinclude`. `-lineinfo` is always added, `-std=c++17`
            unless another standard is given.
        arch: the chip, `sm_90` or `sm_90a`.
        name: the file's name in errors and `Compiled.names`; default: the path as given, `kernel.cu` for
            text. Headers are named relative to it.
        compiler: None for NVRTC, then NVRTC with host code removed, then nvcc: the first that accepts it.
        instances: of the source's kernel templates, `transpose<float, 8>`; default: those that it launches.

    Raises:
        MemsimError: no such file; no such compiler; an unknown option; code that does not compile, with the
            place of the first error and the compiler's log.
    """
    if not _CHIP.fullmatch(arch):
        raise MemsimError(f"machine code is for a chip such as sm_90, not for {arch!r}")
    read, options, notes = prepare(source, options, name)
    built = build(read, options, arch, machine_code=True, compiler=compiler, instances=instances)
    files = included_files(read.text, read.folder, options)
    headers = {built.names.name_of(path.as_posix()): content for path, content in files.items()}
    return replace(built, headers=headers, notes=(*notes, *built.notes))


def compile_cuda(
    source: str | Path,
    options: Sequence[str] = (),
    arch: str = "sm_90",
    name: str | None = None,
    instances: Sequence[str] = (),
) -> str:
    """PTX text of a `.cu` file or of CUDA C++ text.

    Arguments and errors are those of `compile_cubin`; `sm_90` makes PTX for `compute_90`. The PTX contains no
    path but `name`, so a compiler generates the same PTX on every machine.
    """
    read, options, _ = prepare(source, options, name)
    built = build(read, options, arch, machine_code=False, instances=instances)
    return rename_files(built.code.decode(), built.names)
