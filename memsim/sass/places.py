"""Which source line an instruction counts for, where the line table is not what people mean.

In: the chain of frames that an instruction was inlined through, innermost first; PTX text with its `.loc`s.
Out: the frame of the user's own; the true lines of inline assembly. Left out on purpose: what files hold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

#: Folders of packages whose functions are inlined into kernels that are written in Python.
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
    "tilelang/src",
    "tl_templates",
)

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")

Frame = tuple[str, int]


def own_frames(chain: Sequence[Frame]) -> Sequence[Frame]:
    """The chain from the innermost frame on that is of no library; all of it if every frame is of one."""
    for start, (file, _) in enumerate(chain):
        if not in_library(file):
            return chain[start:]
    return chain


def in_library(file: str) -> bool:
    """Is it a source file of a package, and not the user's?"""
    parts = PurePath(file.replace("\\", "/")).parent.as_posix() + "/"
    return any(f"/{library}/" in parts for library in LIBRARIES)


def assembly_places(ptx: str) -> Mapping[int, Frame]:
    """PTX line -> (file, line) of the source, for inline assembly that its `.loc`s place wrongly.

    LLVM counts on by one for each line of an inline assembly text, as if the text stood in the source so.
    What is true is the first `.loc` in it.
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
