"""What a trace holds: the requests of each access site, and how often each occurred.

Columns have one row for each *distinct* request of a site. Two requests share a row if their addresses differ
by a multiple of 128 bytes, the same in every active lane: they are equivalent for banks, sectors and 128-byte
lines. `addresses` holds the true addresses of the first such request, `count` their number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from memsim.launch import Launch, Natural, Space
from memsim.trace.footprint import Footprint

if TYPE_CHECKING:
    from memsim.layout import Layout


@dataclass(frozen=True, slots=True)
class Origin:
    """What a trace was made from. `form`: "machine code", "index math in Python" and others.

    arch: the chip that it was compiled for, "" if none. compiler: "" if unknown. digest: SHA-256 of the
    cubin's code or of the text. lacks: what is missing, in words. files: of a compiled file, its digest and
    those of the sources beside it, by name. newer: which of these were modified after it.
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
        """A note that it may not match the sources beside it; "" if nothing indicates that."""
        if not self.newer:
            return ""
        are = "is" if len(self.newer) == 1 else "are"
        return f"{', '.join(self.newer)} {are} newer than {self.files[0][0]}, which may be out of date"

    def __str__(self) -> str:
        """`machine code of sm_90, made by NVRTC 12.0.140`."""
        made_for = f" of {self.arch}" if self.arch else ""
        return f"{self.form}{made_for}" + (f", made by {self.compiler}" if self.compiler else "")


#: What an access does that takes something from a word, in a finding.
TAKES = ("loads", "copies from", "multiplies")


@dataclass(frozen=True, slots=True)
class SeenRace:
    """Two accesses to shared memory that nothing orders, of which one writes.

    file, line: of the second one, "" and 0 if unknown. text: both, in words. statements: of both. element:
    the word, as `s[0]`. does: what each access does, such as stores. Both "" in older traces.
    """

    file: str
    line: Natural
    array: str
    text: str
    statements: tuple[str, str]
    element: str = ""
    does: tuple[str, str] = ("", "")

    @property
    def takes(self) -> tuple[bool, bool]:
        """Whether each access takes something from the word, rather than bring something."""
        return self.does[0] in TAKES, self.does[1] in TAKES

    @property
    def key(self) -> str:
        """What stays the same when lines move: `s: s[t] = t; / o[t] = s[t - 32];`."""
        return f"{self.array}: {' / '.join(self.statements)}"


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources that the code needs, from its cubin.

    registers: per thread, of 32 bits. static_shared: bytes per block. barriers: named ones per block.
    """

    registers: Natural
    static_shared: Natural
    barriers: Natural


@dataclass(frozen=True, slots=True)
class ArrayLayout:
    """The layout of an array from its first byte on. element: bytes per element."""

    layout: Layout
    element: int


@dataclass(frozen=True, slots=True)
class AccessSite:
    """One memory instruction of the kernel.

    `op`: load, store, atomic, reduction, ldmatrix, stmatrix, cp_async (`.ca`), cp_async_cg, or a shared
    atomic of its own kind: atomic_inc, atomic_cas, atomic_loop. `space`: shared or global. `width`: bytes per
    lane. `array`: the variable or parameter it accesses (names joined by `|` if several; "" if unknown).
    `instructions`: warp instructions executed, including those with all lanes predicated off. `unresolved`:
    why its addresses are unknown, else None; then `instructions` is still counted, but rows are missing or
    incomplete. `address`: of machine code, the instruction's offset from the kernel's first byte; else -1.
    `lanes`: of a copy by TMA, the lanes that executed it; 0 for others, whose requests have them.
    `apart`: of atomic_loop, no such access of the launch updates a word from several warps of a block.
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
    lanes: Natural = 0
    apart: bool = False


@dataclass(frozen=True)
class TraceData:
    """All accesses of one launch. Columns have one row for each distinct request.

    site: int32 [n], index into `sites`. count: int64 [n]. addresses: int64 [n, 32], bytes; shared addresses
    are offsets in the block's shared memory. active: bool [n, 32]. partner: int64 [n, 32], for a copy the
    lane's address on its other side: in global memory in a row of shared memory, and vice versa; -1 for a
    lane without one (it writes zeros). block: int64 [n] and warp: int32 [n]: where the first such request
    was seen. arrays: (name, space, first byte, size) of every buffer and shared variable. sources: text
    of the source files in `sites`, as far as known. notes: what else was seen, in words. uncounted:
    requests whose cost is unknown, by their name in the singular, such as `texture request`. writers:
    int32, for each 4-byte word of the first replayed block's shared memory the thread that first stored
    to it (linear number in the block), -1 for none; empty if unknown. origin: what the trace was made
    from; None if unknown. uncertain: why some counts are uncertain, in words. listing: (address, text,
    file, line) of every instruction of the machine code, if there is any; file "" and line 0 if unknown.
    executed: int64, the number of warps that executed each instruction of `listing`, whether a lane was
    active or not; at least, where `notes` says that branches decide no access; empty if unknown. apart:
    whether shared requests that differ by a multiple of 128 bytes are separate rows. layouts: of arrays
    by name, if given and not to be looked up in `sources`. resources: that a block needs; None without
    machine code. races: that its first accesses show. blocks_alike: every replayed block is known to have
    executed every instruction equally often, but for those behind branches that decide no access.
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
    uncounted: dict[str, int] = field(default_factory=dict)
    writers: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    origin: Origin | None = None
    uncertain: tuple[str, ...] = ()
    listing: tuple[tuple[int, str, str, int], ...] = ()
    executed: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    apart: bool = False
    layouts: dict[str, ArrayLayout] = field(default_factory=dict)
    resources: Resources | None = None
    blocks_alike: bool = False
    footprint: Footprint | None = None
    races: tuple[SeenRace, ...] = ()

    def __repr__(self) -> str:
        """Without the columns, which may have a million rows."""
        return (
            f"<Trace of {self.kernel}: {len(self.sites)} sites, {len(self.count)} distinct requests, "
            f"{self.blocks_replayed} of {self.launch.blocks} blocks>"
        )

    @property
    def shared_end(self) -> int:
        """The end of the last shared array, in bytes."""
        return max((first + size for _, space, first, size in self.arrays if space == "shared"), default=0)

    @property
    def not_counted(self) -> str:
        """The requests whose cost is unknown, as `128 texture requests are not counted`; "" if none."""
        found = [f"{times:,} {what}{'s' * (times > 1)}" for what, times in self.uncounted.items()]
        is_one = len(found) == 1 and 1 in self.uncounted.values()
        return f"{' and '.join(found)} {'is' if is_one else 'are'} not counted" if found else ""
