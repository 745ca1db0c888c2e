"""Which source files are a library's and not the user's.

Code that was inlined from a library (`y[i] = x` of `__half2` is a function of `cuda_fp16.hpp`) is attributed
to the user's line that called it: users look for the fault in their own files, and cannot change others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import PurePath

#: Folders of packages whose functions are inlined into kernels written in Python.
_PACKAGES = (
    "triton/language",
    "triton/experimental/gluon/language",
    "numba/cuda",
    "numba/core",
    "numba/cpython",
    "numba/np",
    "warp/native",
    "cupy/_core/include",
    "cutlass/cute",
    "cutlass/base_dsl",
    "memsim/captured",
    "tilelang/3rdparty",
    "tilelang/src",
    "tl_templates",
)

# Where headers of CUDA and of the system are: pip's packages, toolkits on Linux and Windows, NVRTC's own.
_TOOLKIT = re.compile(
    r"/(nvidia/(cuda_\w+|cu\d+)|targets/[\w-]+|cuda([-/][\d.]+)?|CUDA/v[\d.]+)/include/"
    r"|^/usr/include/|(^|/)__nv_nvrtc_builtin_header\.h$"
)

Frame = tuple[str, int]


def own_frames(chain: Sequence[Frame]) -> Sequence[Frame]:
    """The chain of frames from the innermost one outside of libraries; all of it if every frame is in one."""
    for start, (file, _) in enumerate(chain):
        if not in_library(file):
            return chain[start:]
    return chain


@lru_cache(maxsize=1024)  # a listing names few files, each often
def in_library(file: str) -> bool:
    """Is it a header of CUDA, or a source file of a package, rather than the user's?"""
    path = file.replace("\\", "/")
    folder = PurePath(path).parent.as_posix() + "/"
    return _TOOLKIT.search(path) is not None or any(f"/{package}/" in folder for package in _PACKAGES)
