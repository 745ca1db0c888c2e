"""The trace: which addresses each access site asked for, and how often.

In: what the emulator (or another source) saw. Out: columns, one row for each *distinct*
request of a site. Two requests are the same row when their addresses differ by a multiple
of 128 bytes, the same on every active lane: banks, sectors and 128-byte lines cannot tell them apart.
`addresses` holds the true addresses of the first such request, `count` how many there were.
Left out on purpose: what a request costs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from memsim.launch import Launch, Natural, Space
from memsim.layout import Layout
from memsim.trace.footprint import Footprint


@dataclass(frozen=True, slots=True)
class Origin:
    """What was read to make a trace. `form`: "machine code", "PTX", "index math in Python" and others.

    arch: the chip that it was made for, "" if it was made for none. compiler: who made it, "" if that is not
    known. digest: SHA-256 of the cubin's code or of the text. lacks: what it does not tell, in words. files:
    of a compiled file that was given, its digest and those of the sources beside it, by name. newer: which of
    these were written after it.
    """

    form: str
    arch: str
    compiler: str
    digest: str
    lacks: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    newer: tuple[str, ...] = ()

    @property
    def doubt(self) -> str:
        """That it may not be of the sources that lie beside it, in words; "" if nothing says so."""
        if not self.newer:
            return ""
        are = "is" if len(self.newer) == 1 else "are"
        return f"{', '.join(self.newer)} {are} newer than {self.files[0][0]}, which may be of an older text"

    @property
    def is_estimate(self) -> bool:
        """PTX is what ptxas is given: it may merge, remove and reorder accesses."""
        return self.form == "PTX"

    def __str__(self) -> str:
        """`machine code of sm_90, made by NVRTC 12.0.140`."""
        made_for = f" of {self.arch}" if self.arch else ""
        return f"{self.form}{made_for}" + (f", made by {self.compiler}" if self.compiler else "")


@dataclass(frozen=True, slots=True)
class Resources:
    """What the code takes of a multiprocessor, as its cubin says and the driver gives it.

    registers: of a thread, of 32 bits. static_shared: bytes of a block. barriers: named ones of a block.
    """

    registers: Natural
    static_shared: Natural
    barriers: Natural


@dataclass(frozen=True, slots=True)
class ArrayLayout:
    """Where the elements of an array lie, from its first byte on. element: bytes of one."""

    layout: Layout
    element: int


@dataclass(frozen=True, slots=True)
class AccessSite:
    """One memory instruction of the kernel.

    `op`: load, store, atomic, reduction, ldmatrix, stmatrix, cp_async (`.ca`), cp_async_cg, or a shared
    atomic of its own kind: atomic_inc, atomic_cas, atomic_loop. `space`: shared or global. `width`: bytes a
    lane. `array`: the variable or parameter it touches (names joined by `|` if several; "" if unknown).
    `instructions`: warp instructions executed, those with every lane predicated off included. `unresolved`:
    why its addresses are not known, else None; then `instructions` still counts it and it has no rows, or not
    all of them. `address`: of machine code, the instruction's first byte counted from the kernel's; -1 for
    PTX.
    """

    instruction: str
    file: str
    line: Natural
    column: int
    op: str
    space: Space
    width: Natural
    array: str
    instructions: Natural
    unresolved: str | None = None
    unresolved_requests: Natural = 0
    address: int = -1


@dataclass(frozen=True)
class Trace:
    """All accesses of one launch. Columns have one row for each distinct request.

    site: int32 [n], index into `sites`. count: int64 [n]. addresses: int64 [n, 32], bytes;
    shared addresses are offsets in the block's shared memory. active: bool [n, 32].
    partner: int64 [n, 32], for a copy the lane's address on the other side of it: in global memory in a row
    of shared memory, and the other way round; -1 for a lane that has none (one that writes zeros).
    block: int64 [n] and warp: int32 [n]: where the first such request was seen.
    arrays: (name, space, first byte, size) of every buffer and shared variable.
    sources: text of the source files that `sites` name, as far as they are known.
    notes: what was seen and is not counted.
    writers: int32, for each 4-byte word of the first replayed block's shared memory the thread that first
    stored to it (linear number in the block), -1 for none; empty if that is not known.
    origin: what was read to make the trace; None if that is not known.
    unsure: why some counts are not certain, in words.
    listing: (address, text, file, line) of every instruction of the kernel's machine code; file "" and
    line 0 where they are not known. Empty for PTX, and in files of before.
    executed: int64, how often a warp executed each instruction of `listing`, whether a lane was on or not;
    empty where that is not known.
    apart: whether shared requests with a multiple of 128 bytes between them are rows of their own.
    layouts: of arrays by name, where they were said and need not be looked for in `sources`.
    resources: what a block takes; None where no machine code was read, and in files of before.
    blocks_alike: each replayed block was seen to execute every instruction as often as the others.
    footprint: distinct sectors of global memory that the replayed blocks touch; None where that is not known.
    """

    kernel: str
    launch: Launch
    blocks_replayed: int
    sites: tuple[AccessSite, ...]
    site: np.ndarray
    count: np.ndarray
    addresses: np.ndarray
    active: np.ndarray
    partner: np.ndarray
    block: np.ndarray
    warp: np.ndarray
    arrays: tuple[tuple[str, str, int, int], ...] = ()
    sources: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    writers: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    origin: Origin | None = None
    unsure: tuple[str, ...] = ()
    listing: tuple[tuple[int, str, str, int], ...] = ()
    executed: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    apart: bool = False
    layouts: dict[str, ArrayLayout] = field(default_factory=dict)
    resources: Resources | None = None
    blocks_alike: bool = False
    footprint: Footprint | None = None

    def __repr__(self) -> str:
        """Not the columns, which may have a million rows."""
        return (
            f"<Trace of {self.kernel}: {len(self.sites)} sites, {len(self.count)} distinct requests, "
            f"{self.blocks_replayed} of {self.launch.blocks} blocks>"
        )

    def save(self, path: str | Path) -> None:
        """Writes the trace to one file: `.npz` (see `memsim.trace.storage`), or Accel-Sim's `.traceg`.

        Raises:
            MemsimError: the file cannot be written, or Accel-Sim has no word for an access.
        """
        from memsim.trace.foreign.write import write_accelsim
        from memsim.trace.storage import save
        from memsim.trace.tool_by_name import is_foreign

        if is_foreign(Path(path)):
            write_accelsim(self, path)
        else:
            save(self, path)

    @staticmethod
    def load(path: str | Path, kernel: str | None = None) -> Trace:
        """Reads a trace that `save` wrote, or one of another tool: Accel-Sim's `.traceg`, NVBit's mem_trace.

        Args:
            kernel: which launch of an NVBit file that has several, by its name or number.

        Raises:
            MemsimError: no such file, or not a whole trace of a known version.
        """
        from memsim.trace.storage import load
        from memsim.trace.tool_by_name import is_foreign

        if is_foreign(Path(path)):
            from memsim.trace.foreign.read import read_foreign

            return read_foreign(Path(path), kernel)
        return load(path)
