"""Which tool wrote a file, and the trace that is in it.

In: a path. Out: a `Trace`.
"""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path

from memsim.errors import MemsimError
from memsim.trace.foreign.accelsim import Reader
from memsim.trace.foreign.nvbit import read_nvbit
from memsim.trace.foreign.stream import lines_of, plain_name
from memsim.trace.trace import Trace

ACCELSIM, NVBIT = (".traceg", ".trace"), (".txt", ".log", ".memtrace")


def is_foreign(path: Path) -> bool:
    """Whether a file is another tool's trace, by its name."""
    return Path(plain_name(path)).suffix in (*ACCELSIM, *NVBIT)


def read_foreign(path: Path, kernel: str | None = None) -> Trace:
    """The trace in a file of Accel-Sim (`.traceg`) or of NVBit's mem_trace (`.txt`, `.log`, `.memtrace`).

    The file may be compressed (`.gz`, `.xz`).

    Args:
        kernel: which launch of an NVBit file, by the kernel's name or the launch's number; None if it has
            only one. An Accel-Sim file has one.

    Raises:
        MemsimError: it cannot be read, is none of them, or is damaged; with the line.
    """
    if Path(plain_name(path)).suffix in NVBIT:
        return read_nvbit(path, lambda: lines_of(path), kernel)
    if kernel is not None:
        raise MemsimError("an Accel-Sim trace is of one kernel: none is to be chosen", file=str(path))
    lines = lines_of(path)
    first = list(islice(lines, 1))
    if first and first[0][1].startswith("kernel"):
        raise MemsimError(
            "this is a list of kernels", file=str(path), hint="give one of the .traceg it names"
        )
    return Reader(path).read(chain(first, lines))
