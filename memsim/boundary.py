"""Which files may be opened because another file names them.

A line table, a `#line` or a `launch.json` can name any file of the machine, and the texts of sources are in
reports, which go into pull requests. So what is named is opened only in folders that belong to the target,
after links are resolved.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path

from memsim.errors import MemsimError

#: Folders of Linux whose files are no files: `/proc/self/environ` is regular by its mode.
SPECIAL = tuple(map(Path, ("/proc", "/sys", "/dev")))
PROJECT_FILES = (".git", "memsim.toml")
_PACKAGE = Path(__file__).resolve().parent
_OWN = (_PACKAGE, _PACKAGE.parent / "kernels", _PACKAGE.parent / "traces")  # see memsim/data.py


@dataclass(frozen=True, slots=True)
class Boundary:
    """Folders, without links, whose files may be opened, and single `files` beside them.

    Hidden files and folders in them may not: `.git/config` holds the token of a CI job, and `.env` passwords.
    everywhere: any regular file may.
    """

    folders: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    everywhere: bool = False

    def holds(self, path: Path) -> bool:
        """Whether a path leads to a regular file inside; False for one that leads nowhere."""
        real = regular_file(path)
        if real is None or self.everywhere or real in self.files:
            return real is not None
        return any(_is_below(real, folder) for folder in self.folders)

    def holds_folder(self, path: Path) -> bool:
        """Whether a path leads to one of the folders, or to one in them that is not hidden."""
        return self.everywhere or any(_is_below(path.resolve(), folder) for folder in self.folders)


def boundary_of(*folders: Path) -> Boundary:
    """The boundary around these folders; the root of a file system, which has everything, is left out."""
    real = (folder.resolve() for folder in folders)
    return Boundary(tuple(dict.fromkeys(folder for folder in real if folder.parent != folder)))


def regular_file(path: Path) -> Path | None:
    """The file that a path leads to, by links or not; None if there is none, or it is no regular file."""
    try:
        real = path.resolve(strict=True)
        is_regular = stat.S_ISREG(real.stat().st_mode)
    except (OSError, ValueError, RuntimeError):  # no such file; a NUL in its name; links in a circle
        return None
    return real if is_regular and not any(map(real.is_relative_to, SPECIAL)) else None


def project_of(folder: Path) -> Path | None:
    """The enclosing git repository, else the nearest folder with a `memsim.toml`; None without either."""
    here = folder.absolute()
    folders = (above for name in PROJECT_FILES for above in (here, *here.parents) if (above / name).exists())
    return next(folders, None)


def _is_below(real: Path, folder: Path) -> bool:
    return real.is_relative_to(folder) and not any(
        part.startswith(".") for part in real.relative_to(folder).parts
    )


# --- where nothing is trusted: `--untrusted`

_confinement: ContextVar[Boundary | None] = ContextVar("confinement", default=None)


def confine(boundary: Boundary | None) -> None:
    """From now on trust nothing: read only files of the boundary, and memsim's own. None: read all."""
    _confinement.set(boundary and replace(boundary, folders=(*boundary.folders, *_OWN)))


@contextmanager
def confined_to(boundary: Boundary) -> Iterator[None]:
    """Inside, nothing is trusted but what is in the boundary."""
    token = _confinement.set(None)
    confine(boundary)
    try:
        yield
    finally:
        _confinement.reset(token)


def confinement() -> Boundary | None:
    """What may be read where nothing is trusted; None: everything."""
    return _confinement.get()


def allow(*folders: Path) -> None:
    """Trust these folders, too, because the user names them, and not a file."""
    boundary = confinement()
    if boundary is not None:
        more = boundary_of(*folders).folders
        _confinement.set(replace(boundary, folders=(*boundary.folders, *more)))


def check_inside(path: Path, name: str | None = None) -> None:
    """Raise an error where nothing is trusted and a path leads elsewhere; `name`: of it, in the error.

    A path that leads nowhere is for the one who opens it to tell.
    """
    boundary = confinement()
    if boundary is not None and os.path.lexists(path) and not boundary.holds(path):
        raise MemsimError(
            "it is not a file of the project, and no other is read with --untrusted",
            file=name or str(path),
            hint=f"files of the project are regular, not hidden, and in {boundary.folders[0]}",
        )
