"""Which files a result came from: all that is read while somebody watches, as it was.

`memsim.files` notes what it reads and looks for, and `memsim.compile.kept` the tools that it knows by size
and time. `Reads.hold` says later whether all of that is still so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path

CONTENT, PRESENCE, STAMP = "content", "presence", "stamp"
ABSENT = "absent"


class Reads:
    """What was seen of files: (kind, path) -> how it was. is_steady: nothing changed while it was watched."""

    def __init__(self, seen: dict[tuple[str, str], str] | None = None) -> None:
        self.seen = seen or {}
        self.is_steady = True

    def note(self, kind: str, path: Path, found: str) -> None:
        """It was so."""
        if self.seen.setdefault((kind, str(path.absolute())), found) != found:
            self.is_steady = False

    @property
    def hold(self) -> bool:
        """Whether everything is as it was seen."""
        return self.is_steady and all(LOOK[kind](path) == found for (kind, path), found in self.seen.items())


def digest(content: bytes) -> str:
    """How a file's content is told."""
    return sha256(content).hexdigest()


def _content(path: str) -> str:
    try:
        return digest(Path(path).read_bytes()) if os.path.isfile(path) else ABSENT  # noqa: PTH113
    except OSError:
        return ABSENT


def _presence(path: str) -> str:
    return str(os.path.isfile(path))  # noqa: PTH113


def stamp(path: str | Path) -> str:
    """A file by its size and time: of a tool, too large to be read each time."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return ABSENT
    return f"{status.st_size} {status.st_mtime_ns}"


LOOK = {CONTENT: _content, PRESENCE: _presence, STAMP: stamp}
_watched: ContextVar[Reads | None] = ContextVar("reads", default=None)


@contextmanager
def watching() -> Iterator[Reads]:
    """Notes what this process reads meanwhile."""
    reads = Reads()
    token = _watched.set(reads)
    try:
        yield reads
    finally:
        _watched.reset(token)


def note_content(path: Path, content: bytes | None) -> None:
    """This is in the file; None: there is no such file."""
    reads = _watched.get()
    if reads is not None:
        reads.note(CONTENT, path, ABSENT if content is None else digest(content))


def note_presence(path: Path, is_there: bool) -> None:
    """There is such a file, or there is none."""
    reads = _watched.get()
    if reads is not None:
        reads.note(PRESENCE, path, str(is_there))


def note_stamp(path: Path) -> None:
    """The file counts by its size and time."""
    reads = _watched.get()
    if reads is not None:
        reads.note(STAMP, path, stamp(path))
