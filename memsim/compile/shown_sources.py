"""Which source files of a target are shown: in reports, in errors of compilers, beside a saved launch.

Compilers print lines and names of all that a source includes: of their logs a part is shown. Code that was
inlined from a library (`y[i] = x` of `__half2` is a function of `cuda_fp16.hpp`) is attributed to the user's
line that called it: users look for the fault in their own files, and cannot change others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePath

from memsim.boundary import Boundary, boundary_of, project_of, regular_file
from memsim.compile.included_files import included_files, literal_includes
from memsim.compile.options import include_folders, of_build
from memsim.compile.prepare import CompilerInput
from memsim.errors import MemsimError
from memsim.files import read_bytes

#: Folders of packages whose functions are inlined into kernels written in Python.
_PACKAGES = tuple(
    (
        "triton/language triton/experimental/gluon/language numba/cuda numba/core numba/cpython numba/np "
        "warp/native cupy/_core/include cutlass/cute cutlass/base_dsl memsim/captured tilelang/3rdparty "
        "tilelang/src tl_templates"
    ).split()
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


def source_folders(path: Path | None, options: Sequence[str] = ()) -> Boundary:
    """Where the sources of a target may lie: in its folder, in its repository, or in a folder given by `-I`.

    Also in the repository that the command was given in: what was compiled may lie elsewhere.

    path: the target's file; None for a text. options: for the compiler.
    """
    folder = Path() if path is None else path.parent
    told = [] if path is None else of_build(path.absolute())[0]
    projects = (project_of(folder), project_of(Path()))
    found = boundary_of(folder, *filter(None, projects), *include_folders([*told, *options]))
    own = None if path is None else regular_file(path)
    # A build system may link to the source; a link to what is no source shows nothing of it.
    is_source = path is not None and own is not None and own.suffix == path.suffix != ""
    return replace(found, files=(own,)) if own is not None and is_source else found


def may_be_shown(path: Path, folders: Boundary) -> bool:
    """Whether a file that a source or its code names lies in these folders, or is a library's header."""
    if folders.holds(path):
        return True
    real = regular_file(path)
    return real is not None and in_library(real.as_posix())


def shown_text(path: Path, folders: Boundary) -> str | None:
    """The text of a source file that may be shown; None for any other, and one that cannot be read."""
    if may_be_shown(path, folders):
        with suppress(OSError, MemsimError):
            return read_bytes(path).decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return None


# The first line about a place: `k.cu(12): error: text` of NVRTC and nvcc, `k.cu:12:5: error: text` of gcc.
_PLACE = re.compile(r"(?P<file>.+?)(?:\(\d+\)|:\d+(?::\d+)?): (?:[a-z]+ )*(?:error|warning|note|remark)\b")
_QUOTED = re.compile("([\"'\u2018]).*?[\"'\u2019]")  # gcc's quotes depend on the language of the system
_BYTE = re.compile(rb"\\(\d{3})")  # as NVRTC writes one that is not ASCII
LEFT_OUT = "(the line is in a file outside of the project; -I allows its folder)"


def shown_source(source: CompilerInput, options: Sequence[str]) -> str:
    """The text of a source as far as its lines may be shown: "" for a link to what is no source."""
    return source.text if _is_shown(source, source_folders(source.path, options)) else ""


def _is_shown(source: CompilerInput, folders: Boundary) -> bool:
    return source.path is None or may_be_shown(source.path, folders)


def shown_log(log: str, source: CompilerInput, options: Sequence[str], own: Sequence[str]) -> str:
    """The log for a source, without lines and names of files that are not to be shown.

    own: what the log calls the source. All of it if no such file is included; else of those files the places
    are left, and of what is quoted, the words that the other files have, too.
    """
    folders = source_folders(source.path, options)
    read = included_files(source.text, source.folder, options)
    shown = [text for path, text in read.items() if may_be_shown(path, folders)]
    shows_own = _is_shown(source, folders)
    texts = (source.text, *read.values())
    if shows_own and len(shown) == len(read) and all(literal_includes(text) is not None for text in texts):
        return log

    def shows(file: str) -> bool:
        if file in own:
            return shows_own
        name = _BYTE.sub(lambda found: bytes([int(found[1], 8) & 255]), os.fsencode(file))
        path = source.folder / os.fsdecode(name)
        return regular_file(path) is None or may_be_shown(path, folders)

    known = {*_words("\n".join([source.text if shows_own else "", *shown]))}
    return "\n".join(_lines(log, shows, known))


def _lines(log: str, shows: Callable[[str], bool], known: set[str]) -> Iterator[str]:
    is_shown = True
    for line in log.splitlines():
        place = _PLACE.match(line)
        if place is not None:
            is_shown = shows(place["file"])
            yield place[0] + _QUOTED.sub(lambda found: _known(found, known), line[place.end() :])
            if not is_shown:
                yield f"  {LEFT_OUT}"
        elif is_shown or not line.startswith(" "):
            yield line


def _known(quoted: re.Match[str], known: set[str]) -> str:
    return quoted[0] if known.issuperset(_words(quoted[0])) else f"{quoted[1]}...{quoted[0][-1]}"


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)
