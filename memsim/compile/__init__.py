"""CUDA C++ to machine code and to PTX text, with NVRTC, which has host code set aside; or with `nvcc`.

In: a `.cu` file (or its text) and compiler options, or PTX text. Out: a cubin or PTX text, with the lines of
the source in it. Left out on purpose: what either means, and everything that needs a GPU or a driver.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memsim.compile.assemble import assemble_ptx
    from memsim.compile.nvrtc import release_of as compiler_of
    from memsim.compile.to_cubin import Compiled, compile_cubin
    from memsim.compile.to_ptx import compile_cuda
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

#: Where each is, and its name there: what is not used is not imported, for most runs compile nothing.
_HOMES = {
    "HEADERS_WHEEL": ("toolkit", "HEADERS_WHEEL"),
    "NVRTC_WHEEL": ("toolkit", "NVRTC_WHEEL"),
    "Compiled": ("to_cubin", "Compiled"),
    "assemble_ptx": ("assemble", "assemble_ptx"),
    "compile_cubin": ("to_cubin", "compile_cubin"),
    "compile_cuda": ("to_ptx", "compile_cuda"),
    "compiler_of": ("nvrtc", "release_of"),
    "find_tool": ("toolkit", "find_tool"),
    "tool_release": ("toolkit", "tool_release"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, its_name = _HOMES[name]
    value = getattr(import_module(f"{__name__}.{module}"), its_name)
    globals()[name] = value  # found at once from now on
    return value
