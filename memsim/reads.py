"""Records which files a result depends on: everything read while recording.

`memsim.files` records what it reads and looks up, and `memsim.compile.compile_cache` the tools, by size and
time. `Reads.hold` checks later whether all of it is unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path

CONTENT, PRESENCE, STAMP, LISTING = "content", "presence", "stamp", "listing"
ABSENT = "absent"


class Reads:
    """Observed files: (kind, path) -> state. is_steady: nothing changed while recording."""

    def __init__(self, seen: dict[tuple[str, str], str] | None = None) -> None:
        self.seen = seen or {}
        self.is_steady = True

    def note(self, kind: str, path: Path, found: str) -> None:
        """Record a state."""
        if self.seen.setdefault((kind, str(path.absolute())), found) != found:
            self.is_steady = False

    @property
    def hold(self) -> bool:
        """Whether everything is still as recorded."""
        return self.is_steady and all(LOOK[kind](path) == found for (kind, path), found in self.seen.items())


def digest(content: bytes | memoryview) -> str:
    """A digest of a file's content."""
    return sha256(content).hexdigest()


def _content(path: str) -> str:
    try:
        return digest(Path(path).read_bytes()) if os.path.isfile(path) else ABSENT  # noqa: PTH113
    except OSError:
        return ABSENT


def stamp(path: str | Path) -> str:
    """A file's size and time, for tools that are too large to be hashed each time."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return ABSENT
    return f"{status.st_size} {status.st_mtime_ns}"


def matching_names(pattern: str | Path) -> list[str]:
    """The names in a folder that match the last part of `folder/*.cu`, and those of its folders (`name/`).

    No links are followed; none in a folder that cannot be read.
    """
    folder, name = os.path.split(pattern)
    try:
        with os.scandir(folder) as entries:
            found = [entry.name + "/" * entry.is_dir(follow_symlinks=False) for entry in entries]
    except OSError:
        return []
    return sorted(one for one in found if one.endswith("/") or fnmatchcase(one, name))


def _listing(pattern: str) -> str:
    return digest("\0".join(matching_names(pattern)).encode("utf-8", "surrogateescape"))


LOOK: dict[str, Callable[[str], str]] = {
    CONTENT: _content,
    PRESENCE: lambda path: str(os.path.isfile(path)),  # noqa: PTH113
    STAMP: stamp,
    LISTING: _listing,
}
_watched: ContextVar[Reads | None] = ContextVar("reads", default=None)


@contextmanager
def watch_reads() -> Iterator[Reads]:
    """Records what this process reads meanwhile."""
    reads = Reads()
    token = _watched.set(reads)
    try:
        yield reads
    finally:
        _watched.reset(token)


def _note(kind: str, path: Path, look: Callable[[], str]) -> None:
    """Record a state of a file, if somebody watches."""
    reads = _watched.get()
    if reads is not None:
        reads.note(kind, path, look())


def note_content(path: Path, content: bytes | None) -> None:
    """Record a file's content; None: there is no such file."""
    _note(CONTENT, path, lambda: ABSENT if content is None else digest(content))


def note_presence(path: Path, is_there: bool) -> None:
    """Record whether a file exists."""
    _note(PRESENCE, path, lambda: str(is_there))


def note_stamp(path: Path) -> None:
    """Record a file by size and time."""
    _note(STAMP, path, lambda: stamp(path))


def note_matching_names(pattern: Path) -> list[str]:
    """As `matching_names`, recorded."""
    _note(LISTING, pattern, lambda: _listing(str(pattern)))
    return matching_names(pattern)
