"""The least work that a trace and its counts prove: wavefronts of the L1 data stage, look-ups of its tags,
sectors of the L2 cache, bytes of DRAM, executed instructions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil
from typing import NamedTuple

from memsim.arch import Arch
from memsim.counts import SiteCounts
from memsim.instruction import opcode_of
from memsim.trace.footprint import READS, WRITES, Footprint
from memsim.trace.trace import Trace

#: 32-byte sectors per wavefront of the L1 data stage.
SECTORS_OF_A_WAVEFRONT = 4
#: Global operations that read and write in the L2 cache.
READ_AND_WRITE = READS & WRITES
#: Global operations that use this stage; copies to shared memory do not.
THROUGH_THE_DATA_STAGE = ("load", "store")


class L2Sectors(NamedTuple):
    """Sectors between multiprocessors and the L2 cache."""

    read: int
    written: int


NO_SECTORS = L2Sectors(0, 0)


def least_wavefronts(trace: Trace, rows: Sequence[SiteCounts]) -> int:
    """The fewest wavefronts of the L1 data stage.

    Those of shared memory, one for each shuffle (loop `shfl`), and for loads and stores one per request, or
    as many as its distinct bytes fill.
    """
    shared = sum(row.wavefronts or 0 for row in rows)
    forms = executed_forms(trace)
    shuffles = sum(times for form, times in forms.items() if form.split(".")[0] == "SHFL")
    moved = sum(
        max(row.requests or 0, ceil((row.ideal_sectors or 0) / SECTORS_OF_A_WAVEFRONT))
        for row in rows
        if row.space == "global" and row.op in THROUGH_THE_DATA_STAGE
    )
    return shared + shuffles + moved


def tag_lookups(rows: Sequence[SiteCounts]) -> int:
    """Look-ups of the L1 tag stage, one per 128-byte line."""
    return sum(row.lines or 0 for row in rows if row.op in THROUGH_THE_DATA_STAGE and row.space == "global")


def dram_bytes(footprint: Footprint | None, chip: Arch) -> int:
    """The fewest bytes transferred from and to DRAM: everything read, and what is written and does not fit
    into the L2 cache.

    The cache is empty before the launch, as under ncu. What a launch writes may stay there; sectors fetched
    only to be partly written, or repeatedly, are not counted.
    """
    if footprint is None:
        return 0
    written = max(0, chip.sector_bytes * footprint.written - chip.sheet.l2)
    return chip.sector_bytes * footprint.read + written


def least_l2_sectors(footprint: Footprint | None, rows: Sequence[SiteCounts]) -> L2Sectors:
    """The fewest sectors that the multiprocessors read from and write to the L2 cache.

    Each distinct one once: the L1 cache may hold what is read again, and stores to one sector may be joined.
    An atomic operation reads in the L2 cache itself; with one, what is read is unknown.
    """
    if footprint is None:
        return NO_SECTORS
    is_read_there = any(row.op in READ_AND_WRITE for row in rows)
    return L2Sectors(0 if is_read_there else footprint.read, footprint.written)


def executed_forms(trace: Trace) -> Mapping[str, int]:
    """Opcode with modifiers -> number of warps that executed it; empty if unknown."""
    found: Counter[str] = Counter()
    if len(trace.executed):
        for (_, text, _, _), times in zip(trace.listing, trace.executed.tolist(), strict=True):
            found[opcode_of(text)] += times
    return found
