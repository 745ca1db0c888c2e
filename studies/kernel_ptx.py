"""The PTX of the catalogue's kernels, which GPUs of any architecture run.

`studies/ptx/` has what NVRTC 12.0 makes of the sources that ship. memsim itself reads machine code only.
"""

from __future__ import annotations

from pathlib import Path

from memsim.compile.cuda_source import compile_cuda
from memsim.data import data_folder
from memsim.files import read_text
from memsim.kernels import Spec
from memsim.kernels.shipped import digest


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
    return compile_cuda(spec.source, spec.options, name=spec.file)
