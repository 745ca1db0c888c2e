"""Compiles CUDA C++ to machine code or PTX with NVRTC, after removing host code if necessary, or with `nvcc`;
assembles PTX.

Everything here works without a GPU and a driver. The results have line information.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memsim.compile.assemble import assemble_ptx
    from memsim.compile.cuda_source import Compiled, compile_cubin, compile_cuda
    from memsim.compile.nvrtc import release_of as compiler_of
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

#: (module, name there) of each export. Loaded on first use: most runs compile nothing.
_HOMES = {
    "HEADERS_WHEEL": ("toolkit", "HEADERS_WHEEL"),
    "NVRTC_WHEEL": ("toolkit", "NVRTC_WHEEL"),
    "Compiled": ("cuda_source", "Compiled"),
    "assemble_ptx": ("assemble", "assemble_ptx"),
    "compile_cubin": ("cuda_source", "compile_cubin"),
    "compile_cuda": ("cuda_source", "compile_cuda"),
    "compiler_of": ("nvrtc", "release_of"),
    "find_tool": ("toolkit", "find_tool"),
    "tool_release": ("toolkit", "tool_release"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, its_name = _HOMES[name]
    value = getattr(import_module(f"{__name__}.{module}"), its_name)
    globals()[name] = value  # cached for the next access
    return value
