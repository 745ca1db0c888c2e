"""The project that a verb is about, and where its traces are kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memsim.errors import MemsimError
from memsim.store import cache_folder

if TYPE_CHECKING:
    from memsim.targets.project import Project


def open_project(config: Path | None) -> Project:
    """The project that `--config` names, or the one that holds here."""
    from memsim.targets.project import find_project, read_project

    return read_project(config or find_project(Path.cwd()))


def path_here() -> Path | None:
    """The configuration of the project that holds here, if there is one."""
    from memsim.targets.project import find_project

    try:
        return find_project(Path.cwd())
    except MemsimError:
        return None


def open_cache(no_cache: bool) -> Path | None:
    """Where traces are kept, if anywhere."""
    return None if no_cache else cache_folder()
