"""Which files may be opened because another file names them.

A line table, a `#line` or a `launch.json` can name any file of the machine, and the texts of sources are in
reports, which go into pull requests. So what is named is opened only in folders that belong to the target,
after links are resolved.
"""

from __future__ import annotations

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
PACKAGE = Path(__file__).resolve().parent


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
    """The nearest enclosing folder of a git repository or with a `memsim.toml`; None if there is none."""
    here = folder.absolute()
    return next(
        (above for above in (here, *here.parents) for name in PROJECT_FILES if (above / name).exists()), None
    )


def _is_below(real: Path, folder: Path) -> bool:
    return real.is_relative_to(folder) and not any(
        part.startswith(".") for part in real.relative_to(folder).parts
    )


# --- where nothing is trusted

_confinement: ContextVar[Boundary | None] = ContextVar("confinement", default=None)


@contextmanager
def confined_to(boundary: Boundary | None) -> Iterator[None]:
    """Inside, nothing is trusted: only files of the boundary are read, and of memsim itself. None: of all."""
    own = boundary_of(PACKAGE, PACKAGE.parent / "kernels", PACKAGE.parent / "traces").folders
    token = _confinement.set(boundary and replace(boundary, folders=(*boundary.folders, *own)))
    try:
        yield
    finally:
        _confinement.reset(token)


def confinement() -> Boundary | None:
    """What may be read where nothing is trusted; None: the files are the user's own."""
    return _confinement.get()


def allow(*folders: Path) -> None:
    """Read these folders, too, which the user names and no file; until the confinement ends."""
    boundary = confinement()
    if boundary is not None:
        more = boundary_of(*folders).folders
        _confinement.set(replace(boundary, folders=(*boundary.folders, *more)))


def check_inside(path: Path, name: str | None = None) -> None:
    """Raise an error if nothing is trusted and a file lies elsewhere; `name` is its name in the error."""
    boundary = confinement()
    if boundary is not None and path.exists() and not boundary.holds(path):
        raise MemsimError(
            "it is no file of the project, and --untrusted reads no other",
            file=name or str(path),
            hint=f"the project is in {boundary.folders[0]}" if boundary.folders else None,
        )
