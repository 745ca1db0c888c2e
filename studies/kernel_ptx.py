"""The PTX of the catalogue's kernels, which GPUs of any architecture run.

`studies/ptx/` has what NVRTC 12.0 makes of the sources that ship. memsim itself reads machine code only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from memsim.compile.compilers import run_nvrtc
from memsim.compile.failure import compile_error
from memsim.compile.options import for_nvrtc
from memsim.compile.prepare import Names, prepare
from memsim.compile.toolkit import cccl_folders
from memsim.data import data_folder
from memsim.files import read_text
from memsim.kernels import Spec
from memsim.kernels.shipped import digest

_FILE = re.compile(r'^(\s*\.file\s+\d+\s+")([^"]*)(")', re.M)


def ptx_path(spec: Spec) -> Path:
    """The file of a kernel's PTX: here, or beside a source that is not the catalogue's."""
    own = spec.source.parent == data_folder("kernels")
    return (Path(__file__).parent if own else spec.source.parent) / "ptx" / f"{spec.name}.ptx"


def ptx_of(spec: Spec) -> str:
    """The text of a kernel's PTX; recompiled if the source has changed since.

    Raises:
        MemsimError: the source has changed, and there is no compiler.
    """
    shipped = spec.shipped()
    if shipped is not None:
        text = read_text(ptx_path(spec))
        if shipped.made.ptx == digest(text):
            return text
    return compile_ptx(spec)


def compile_ptx(spec: Spec) -> str:
    """The PTX compiled from the source; the same NVRTC produces the same text.

    Raises:
        MemsimError: NVRTC is not installed, or the source does not compile.
    """
    return compile_cuda(spec.source, spec.options, spec.file)


def compile_cuda(source: str | Path, options: Sequence[str] = (), name: str | None = None) -> str:
    """The PTX that NVRTC makes for compute_90 of a file, or of a text. It contains no path but `name`.

    Raises:
        MemsimError: NVRTC is not installed, or the source does not compile.
    """
    read, options, _ = prepare(source, options, name)
    kept, _ = for_nvrtc(options)
    folders = [f"-I{folder}" for folder in cccl_folders()[:1]]  # for cooperative_groups.h since CUDA 12.9
    made = run_nvrtc(read.text, read.true_name, ["-arch=compute_90", *kept, *folders])
    if made.ptx is None:
        raise compile_error(read.text, made.log, read.name)
    names = Names(((read.true_name, read.name),))
    return _FILE.sub(lambda found: found[1] + names.name_of(found[2]) + found[3], made.ptx)
