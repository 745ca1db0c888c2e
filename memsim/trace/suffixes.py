"""What the name of a trace's file says: which tool wrote it, and whether memsim can."""

from __future__ import annotations

from pathlib import Path

#: Of memsim's own format.
SUFFIX = ".npz"
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


def can_be_written(path: Path) -> bool:
    """Whether a trace can be saved under a name: in memsim's own format or in Accel-Sim's."""
    return path.suffix == SUFFIX or is_accelsim(path)


def is_trace(path: str | Path) -> bool:
    """Whether a file's name is that of a trace, memsim's own or another tool's."""
    return Path(path).suffix == SUFFIX or is_foreign(Path(path))
