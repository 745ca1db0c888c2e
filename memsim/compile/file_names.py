"""What a file is called: the compiler knows where it truly is, people know it by the name they gave.

In: texts and paths with true places in them. Out: the same with given names. Left out on purpose: bytes of
a cubin, whose line tables keep the true places; `Names` says what those are called.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

BUILTIN_HEADER = "__nv_nvrtc_builtin_header.h"
_FILE = re.compile(r'^(\s*\.file\s+\d+\s+")([^"]*)(")', re.M)


@dataclass(frozen=True, slots=True)
class Names:
    """Pairs of a file's true absolute path and its name; files around it are named as if from there."""

    pairs: tuple[tuple[str, str], ...] = ()

    def name_of(self, path: str) -> str:
        """What a file in a cubin's line tables is called."""
        path = path.replace("\\", "/")
        if path.endswith("/" + BUILTIN_HEADER):  # NVRTC puts its own header into the current folder
            return BUILTIN_HEADER
        for true_name, name in self.pairs:
            path = rename(path, true_name, name)
        return path


def rename(text: str, true_name: str, name: str) -> str:
    """`text` with `true_name`, and the folders around it where a line starts so, called as by `name`."""
    true_folder, folder = Path(true_name).parent, Path(name).parent
    while folder.name not in ("", "..") and folder.name == true_folder.name:
        true_folder, folder = true_folder.parent, folder.parent  # headers beside the file's folder, too
    here = true_folder.as_posix().rstrip("/") + "/"
    there = folder.as_posix().rstrip("/") + "/"
    there = "" if there == "./" else there
    lines = text.replace(true_name, name).splitlines(keepends=True)
    return "".join(there + line[len(here) :] if line.startswith(here) else line for line in lines)


def rename_files(ptx: str, true_name: str, name: str) -> str:
    """PTX text whose `.file` lines say names."""
    names = Names(((true_name, name),))
    return _FILE.sub(lambda found: found[1] + names.name_of(found[2]) + found[3], ptx)
