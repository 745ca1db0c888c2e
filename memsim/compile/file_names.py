"""Display names of files: the compiler knows true paths, people know the names that they passed.

A cubin keeps the compiler's paths in its line tables; `Names` maps them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

BUILTIN_HEADER = "__nv_nvrtc_builtin_header.h"


@dataclass(frozen=True, slots=True)
class Names:
    """Pairs of a file's true absolute path and its display name; neighbouring files are named
    relative to it.
    """

    pairs: tuple[tuple[str, str], ...] = ()

    def name_of(self, path: str) -> str:
        """The display name of a file in a cubin's line tables."""
        path = path.replace("\\", "/")
        if path.endswith("/" + BUILTIN_HEADER):  # NVRTC places its built-in header in the current folder
            return BUILTIN_HEADER
        for true_name, name in self.pairs:
            path = rename(_unescaped(path, true_name), true_name, name)
        return path

    def renamed(self, log: str) -> str:
        """A compiler's log with display names."""
        for true_name, name in self.pairs:
            log = rename(log, true_name, name)
        return log


def _unescaped(path: str, true_name: str) -> str:
    """`path`, if it is that of `true_name` or lies in its folder, with the characters that it has.

    NVRTC writes a byte that is not ASCII as `\\303`, and takes that backslash for a separator.
    """
    for begin in (true_name, true_name.rpartition("/")[0] + "/"):
        written = "".join(chr(b) if 32 <= b < 127 else f"/{b:03o}" for b in os.fsencode(begin))
        if path.startswith(written):
            return begin + path[len(written) :]
    return path


def rename(text: str, true_name: str, name: str) -> str:
    """`text` with `true_name`, and its folders where a line starts with them, replaced by `name`."""
    true_folder, folder = Path(true_name).parent, Path(name).parent
    while folder.name not in ("", "..") and folder.name == true_folder.name:
        true_folder, folder = true_folder.parent, folder.parent  # also for headers beside the file's folder
    here = true_folder.as_posix().rstrip("/") + "/"
    there = folder.as_posix().rstrip("/") + "/"
    there = "" if there == "./" else there
    lines = text.replace(true_name, name).splitlines(keepends=True)
    return "".join(there + line[len(here) :] if line.startswith(here) else line for line in lines)
