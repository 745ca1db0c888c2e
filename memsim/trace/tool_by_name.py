"""Which tool wrote a file, by its name.

In: a path. Out: whose trace it is. Here so that to ask costs no more than the question.
"""

from __future__ import annotations

from pathlib import Path

ACCELSIM, NVBIT = (".traceg", ".trace"), (".txt", ".log", ".memtrace")
#: What memsim writes.
WRITTEN = ACCELSIM[0]
#: Of compressed files.
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
    """Whether a file is called as the Accel-Sim traces are that memsim writes."""
    return suffix_of(path) == WRITTEN
