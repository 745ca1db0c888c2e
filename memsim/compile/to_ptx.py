"""Compiles CUDA C++ to PTX text with line information."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memsim.compile.build import build
from memsim.compile.file_names import rename_files
from memsim.compile.prepare import prepare


def compile_cuda(
    source: str | Path,
    options: Sequence[str] = (),
    arch: str = "sm_90",
    name: str | None = None,
    instances: Sequence[str] = (),
) -> str:
    """PTX text of a `.cu` file or of CUDA C++ text.

    Args:
        source: a path, or the text itself (a string with a line break).
        options: for the compiler, such as `-DBM=64` or `-Iinclude`. `-lineinfo` is always added, `-std=c++17`
            unless another standard is given.
        arch: `sm_90` makes PTX for `compute_90`.
        name: the file's name in the PTX and in errors; default: the path as given, `kernel.cu` for
            text. Headers are named relative to it. The PTX contains no other path, so a compiler
            generates the same PTX on every machine.
        instances: of the source's kernel templates, as in `compile_cubin`.

    Raises:
        MemsimError: no such file; NVRTC is not installed; an unknown option; code that does not compile, with
            the place of the first error and the compiler's log.
    """
    read, options, _ = prepare(source, options, name)
    built = build(read, options, arch, machine_code=False, instances=instances)
    assert built.ptx is not None
    return rename_files(built.ptx, read.true_name, read.name)
