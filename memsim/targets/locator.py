"""Paths of a target's files for reports: relative to the repository or to the working folder, with slashes,
absolute only for files elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from memsim.job import Job


def repository_root(folder: Path) -> Path:
    """The nearest enclosing folder of a git repository; else the folder itself."""
    return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)


def locator(targets: Sequence[Job], root: Path) -> Callable[[str, str], str]:
    """A function of a target's name and a file that its accesses name ("": the target's own)."""
    by_name = {target.name: target for target in targets}

    def locate(kernel: str, file: str) -> str:
        source = by_name[kernel].kernel if kernel in by_name else None
        path = (Path(file) if source is None else source.folder / (file or source.file)).absolute()
        try:
            return path.resolve().relative_to(root.resolve()).as_posix()
        except ValueError:
            return path.as_posix()

    return locate
