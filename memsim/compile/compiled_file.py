"""A compiled file passed by the user, and the sources beside it, which may have changed since.

Digests of all of them are kept in baselines, because a compiled file does not tell what its source was.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from memsim.compile.included_files import included_files
from memsim.files import file_exists, read_bytes
from memsim.reads import note_stamp

SOURCES = (".cu", ".cuh", ".cpp", ".cc")
DIGITS = 16  # of a digest: enough to see that a file has changed


@dataclass(frozen=True, slots=True)
class Given:
    """files: digests by name, relative to its folder, its own first. newer: sources modified after it.

    named: the source names in the code, whether they exist or not.
    """

    files: tuple[tuple[str, str], ...]
    newer: tuple[str, ...]
    named: tuple[str, ...] = ()


def look_at(compiled: Path, named: Iterable[Path]) -> Given:
    """The file, the sources that it names, and `k.cu` beside `k.ptx` with its headers."""
    beside = [path for suffix in SOURCES if file_exists(path := compiled.with_suffix(suffix))]
    headers = [header for path in beside for header in included_files(_text(path), path.parent, ())]
    sources = {path.resolve(): path for path in (*named, *beside, *headers)}
    for file in (compiled, *sources.values()):
        note_stamp(file)
    made = compiled.stat().st_mtime_ns
    digests = {_name(path, compiled): _digest(path) for path in (compiled, *sources.values())}
    newer = (path for path in sources.values() if path.stat().st_mtime_ns > made)
    return Given(tuple(digests.items()), tuple(_name(path, compiled) for path in newer))


def _name(path: Path, compiled: Path) -> str:
    try:
        return Path(os.path.relpath(path, compiled.parent)).as_posix()
    except ValueError:  # another drive of Windows
        return path.as_posix()


def _text(path: Path) -> str:
    return read_bytes(path).decode("utf-8", "replace")


def _digest(path: Path) -> str:
    return sha256(read_bytes(path)).hexdigest()[:DIGITS]
