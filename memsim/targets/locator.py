"""Where a file of a target is, as others call it: relative to the repository, or to the working folder.

In: targets. Out: paths with slashes, absolute only where a file is somewhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from memsim.job import Job


def repository_root(folder: Path) -> Path:
    """The nearest folder, this one or above, that git has its own things in; the folder itself if none is."""
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
