"""The source line that an instruction is attributed to, where the line table is not what users expect.

Code inlined from libraries is attributed to the user's frame; lines of inline assembly are corrected by the
PTX's `.loc`s.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import PurePath

#: Folders of packages whose functions are inlined into kernels written in Python.
LIBRARIES = (
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

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")

Frame = tuple[str, int]


def own_frames(chain: Sequence[Frame]) -> Sequence[Frame]:
    """The chain of frames from the innermost one outside of libraries; all of it if every frame is in one."""
    for start, (file, _) in enumerate(chain):
        if not in_library(file):
            return chain[start:]
    return chain


@lru_cache(maxsize=1024)  # a listing names few files, each often
def in_library(file: str) -> bool:
    """Is it a source file of a package rather than the user's?"""
    parts = PurePath(file.replace("\\", "/")).parent.as_posix() + "/"
    return any(f"/{library}/" in parts for library in LIBRARIES)


def assembly_places(ptx: str) -> Mapping[int, Frame]:
    """PTX line -> (file, line) of the source, for inline assembly whose `.loc`s are wrong.

    LLVM increments the line for each line of the assembly text, as if the text stood in the source like that.
    Only the first `.loc` in it is right.
    """
    files: dict[str, str] = {}
    found: dict[int, tuple[str, int]] = {}
    first: tuple[str, int] | None = None
    inside = wrong = False
    for number, line in enumerate(ptx.splitlines(), 1):
        if match := _FILE.match(line):
            files[match[1]] = match[2]
        elif line.endswith("// begin inline asm"):
            inside, first, wrong = True, None, False
        elif line.endswith("// end inline asm"):
            inside = False
        elif inside and (match := _LOC.match(line)):
            place = match[1], int(match[2])
            first = first or place
            wrong = place != first
        elif inside and wrong and first is not None:
            found[number] = first
    return {number: (files[file], line) for number, (file, line) in found.items() if file in files}
