"""CUDA C++ to machine code and to PTX text, with NVRTC, which has host code set aside; or with `nvcc`.

In: a `.cu` file (or its text) and compiler options, or PTX text. Out: a cubin or PTX text, with the lines of
the source in it. Left out on purpose: what either means, and everything that needs a GPU or a driver.
"""

from __future__ import annotations

from memsim.compile.assemble import assemble_ptx
from memsim.compile.cubin import Compiled, compile_cubin
from memsim.compile.nvrtc import release_of as compiler_of
from memsim.compile.ptx import compile_cuda
from memsim.compile.toolkit import HEADERS_WHEEL, NVRTC_WHEEL, find_tool, tool_release

__all__ = [
    "HEADERS_WHEEL",
    "NVRTC_WHEEL",
    "Compiled",
    "assemble_ptx",
    "compile_cubin",
    "compile_cuda",
    "compiler_of",
    "find_tool",
    "tool_release",
]
