"""CUDA C++ to PTX text.

In: a `.cu` file (or its text) and compiler options. Out: PTX text with the lines of the source in it.
Left out on purpose: what PTX means.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from memsim.compile.failure import compile_error, needs_host
from memsim.compile.names import rename, rename_files
from memsim.compile.nvcc import nvcc_ptx
from memsim.compile.nvrtc import run_nvrtc
from memsim.compile.source import default_standard, read_source

_COMPILER = re.compile(r"^// Cuda compilation tools, release \S+, V(\S+)$", re.M)


def compile_cuda(
    source: str | Path,
    options: Sequence[str] = (),
    arch: str = "sm_90",
    name: str | None = None,
) -> str:
    """PTX text of a `.cu` file or of CUDA C++ text.

    Args:
        source: a path, or the text itself (a string with a line break in it).
        options: for the compiler, as `-DBM=64` or `-Iinclude`. `-lineinfo` is always added, `-std=c++17`
            unless another standard is given.
        arch: `sm_90` makes PTX for `compute_90`.
        name: what the PTX and the errors call the file; the path as given if left out, `kernel.cu` for
            text. Headers are named as if from where `name` is relative to. The PTX says nothing else about
            where the file was, so one compiler writes the same PTX on every machine.

    Raises:
        MemsimError: no such file; NVRTC absent; an unknown option; code that does not compile, with the
            place of the first error and the compiler's log.
    """
    path, text = read_source(source)
    name = name or (Path(source).as_posix() if path else "kernel.cu")
    folder = path.parent if path else Path.cwd()
    target = f"-arch={arch.replace('sm_', 'compute_')}"
    options = [target, "-lineinfo", *default_standard(options), f"-I{folder}", *options]

    true_name = (folder / Path(name).name).as_posix()
    program = run_nvrtc(text, true_name, options)
    if program.ptx is not None:
        return rename_files(program.ptx, true_name, name)
    log = rename(program.log, true_name, name)
    if needs_host(text, log) and shutil.which("nvcc"):
        ptx, log = nvcc_ptx(text, folder, name, options)
        if ptx is not None:
            return ptx
    raise compile_error(text, log, name)


def compiler_of(ptx: str) -> str | None:
    """The release of the compiler that wrote `ptx` (`12.0.140`), from its header; None if it does not say."""
    found = _COMPILER.search(ptx)
    return found[1] if found else None
