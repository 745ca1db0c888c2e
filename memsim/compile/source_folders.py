"""Which source files of a target are shown: in reports, in errors of compilers, beside a saved launch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from memsim.boundary import Boundary, boundary_of, project_of, regular_file
from memsim.compile.options import of_build
from memsim.compile.paths import include_folders
from memsim.errors import MemsimError
from memsim.files import read_bytes
from memsim.source.library_files import in_library


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
