"""Reads a trace in another tool's format."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, islice
from pathlib import Path

from memsim.errors import MemsimError
from memsim.trace.foreign.accelsim import AccelSimReader
from memsim.trace.foreign.nvbit import read_nvbit
from memsim.trace.foreign.stream import lines_of
from memsim.trace.record import Recorder
from memsim.trace.suffixes import NVBIT, suffix_of
from memsim.trace.trace_data import TraceData


def read_foreign(
    path: Path, kernel: str | None = None, recorder: Callable[[], Recorder] = Recorder
) -> TraceData:
    """The trace in a file of Accel-Sim (`.traceg`) or of NVBit's mem_trace (`.txt`, `.log`, `.memtrace`).

    The file may be compressed (`.gz`, `.xz`).

    Args:
        kernel: which launch of an NVBit file, by the kernel's name or the launch's number; None if it has
            only one. An Accel-Sim file has one.
        recorder: creates the recorder of distinct requests.

    Raises:
        MemsimError: it cannot be read, has another format, or is damaged; with the line.
    """
    if suffix_of(path) in NVBIT:
        return read_nvbit(path, lambda: lines_of(path), kernel, recorder)
    if kernel is not None:
        raise MemsimError("an Accel-Sim trace has one kernel: do not choose one", file=str(path))
    lines = lines_of(path)
    first = list(islice(lines, 1))
    if first and first[0][1].startswith("kernel"):
        raise MemsimError(
            "this is a list of kernels", file=str(path), hint="pass one of the .traceg files in it"
        )
    return AccelSimReader(path, recorder).read(chain(first, lines))
