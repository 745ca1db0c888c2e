"""What a compiler is given where nothing is trusted: options that are known to change nothing but the code,
and a source whose every `#include` is a file of the project or a library's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePath

from memsim.boundary import confinement
from memsim.compile.included_files import literal_includes
from memsim.compile.options import INCLUDE, SHORT, include_folders, split
from memsim.errors import MemsimError
from memsim.files import read_bytes

# An allow-list: nvcc has options that name programs (-ccbin), files of options, and files to write.
_HARMLESS = re.compile(
    r"-[DU][A-Za-z_]\w*(?:\([\w, .]*\))?(?:=[^\x00-\x1f$`\\]*)?|-O[0-3]|-G|-w|-lineinfo|--?std=[\w+]+"
    r"|--?(?:ftz|fmad|prec-div|prec-sqrt|restrict|use_fast_math|extra-device-vectorization)(?:=(?:true|false))?"
    r"|--?maxrregcount=\d+|--?diag-suppress=[\d,]+|(?:-Xptxas|--?ptxas-options)=(?:-v|-O[0-3]|-d[ls]cm=\w+)"
    r"|--?(?:expt-)?(?:relaxed-constexpr|extended-lambda)|--?generate-line-info|--?device-debug"
    r"|--?default-device|--device-as-default-execution-space"
)


def is_harmless(option: str) -> bool:
    """Whether an option may be given to a compiler, as far as what it is given is trusted."""
    boundary = confinement()
    if boundary is None or _HARMLESS.fullmatch(option):
        return True
    name, path = next(split([option]))
    return name in INCLUDE and path is not None and boundary.holds_folder(Path(path))


def check_options(options: Sequence[str]) -> None:
    """Raise an error if one of them might run a program, read or write a file, or is not known."""
    words = iter(options)
    for word in words:
        if word in (*INCLUDE, "-D", "-U"):
            word += ("" if word in (SHORT, "-D", "-U") else "=") + next(words, "")
        if not is_harmless(word):
            raise MemsimError(
                f"the option {word!r} is not allowed with --untrusted",
                hint="macros, folders of the project and options of code generation are: docs/security.md",
            )


def check_includes(text: str, folder: Path, options: Sequence[str], name: str) -> None:
    """Raise an error if a source in a folder may include a file that is not of the project.

    Wherever a compiler may find it is looked at: by which of its rules it chooses makes no difference.
    """
    boundary = confinement()
    assert boundary is not None
    folders = [folder, *include_folders(options)]
    waiting, seen = [(text, folder, name)], set[Path]()
    while waiting:
        text, here, name = waiting.pop()
        names = literal_includes(text)
        if names is None:
            raise MemsimError(
                "an #include does not say which file",
                file=name,
                hint='with --untrusted, write #include "file" or <file> in a line; macros are not followed',
            )
        for header in names:
            places = (place / header for place in (here, *folders))
            found = [path for path in places if os.path.lexists(path) and not path.is_dir()]
            leaves = PurePath(header).is_absolute() or ".." in PurePath(header).parts
            if not all(map(boundary.holds, found)) or (leaves and not found):
                raise MemsimError(
                    f'it includes "{header}", which is not a file of the project',
                    file=name,
                    hint="with --untrusted, a source includes files of the project and libraries only",
                )
            for path in found:
                real = path.resolve()
                if real not in seen:
                    seen.add(real)
                    waiting.append((read_bytes(real).decode("utf-8", "replace"), path.parent, header))
