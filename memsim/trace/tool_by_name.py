"""Recognizes the tool that wrote a trace by the file's name; a separate module to keep imports cheap."""

from __future__ import annotations

from pathlib import Path

ACCELSIM, NVBIT = (".traceg", ".trace"), (".txt", ".log", ".memtrace")
#: Suffixes that memsim writes.
WRITTEN = ACCELSIM[0]
#: Suffixes of compressed files.
COMPRESSED = (".gz", ".xz")


def plain_name(path: Path) -> str:
    """`kernel-1.traceg` of `kernel-1.traceg.xz`."""
    return path.stem if path.suffix in COMPRESSED else path.name


def suffix_of(path: Path) -> str:
    """`.traceg` of `kernel-1.traceg.xz`."""
    return Path(plain_name(path)).suffix


def is_foreign(path: Path) -> bool:
    """Whether a file is another tool's trace."""
    return suffix_of(path) in (*ACCELSIM, *NVBIT)


def is_accelsim(path: Path) -> bool:
    """Whether a file has the name of an Accel-Sim trace that memsim can write."""
    return suffix_of(path) == WRITTEN
