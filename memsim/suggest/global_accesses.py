"""What would lessen the sectors of global accesses; none of it makes an edit.

All is counted on one block's requests at their exact addresses: a trace of all blocks merges requests that
cost the same, but after a change they may not.

`fields`   an array of records of which a few fields are accessed, each field in an array of its own; the code
           elsewhere that fills the array would have to change too
`staging`  badly coalesced accesses: the block moves each sector once and reorders in a tile, which must fit
           into the remaining shared memory
`wider`    neighbouring accesses of a thread merged into one, where all recorded requests can be, and then
           move fewer sectors. Shared accesses are left to the compiler, which merges what it can
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from memsim.analysis import BADLY_COALESCED, Analysis, SiteCounts, analyze_trace
from memsim.api import running
from memsim.job import Job
from memsim.suggest.count import sectors_of
from memsim.suggest.proposals import fits
from memsim.trace.trace import TraceFile

MOST_REQUESTS = 20_000  # of a block; larger ones are skipped


def first_block(job: Job, analysis: Analysis) -> Analysis | None:
    """Block 0 alone; None if it wastes no sectors, makes too many requests, or is of a file's trace."""
    badly = [site for site in analysis.sites if is_badly_coalesced(site)]
    made = sum(site.requests or 0 for site in analysis.sites if site.space == "global")
    if not badly or isinstance(job.kernel, TraceFile):
        return None
    if made > MOST_REQUESTS * analysis.trace.blocks_replayed:
        return None
    return analyze_trace(running.trace_job(replace(job, blocks=1), everywhere=True), job.arch)


def is_badly_coalesced(site: SiteCounts) -> bool:
    """Whether a quarter or more of the bytes moved for a row of global loads or stores is unused."""
    return site.op in ("load", "store") and wastes_sectors(site)


def wastes_sectors(site: SiteCounts) -> bool:
    """Whether a quarter or more of the bytes moved for a row of any global accesses is unused."""
    if site.space != "global" or not site.sectors:
        return False
    return site.sectors - (site.ideal_sectors or 0) >= BADLY_COALESCED * site.sectors


LONGEST = 128  # bytes of a record; anything longer is assumed to be a matrix row
ALIGN = 256  # of a separate allocation


@dataclass(frozen=True, slots=True)
class ArrayOfStructs:
    """A global array of records. record: bytes of one. fields: (first byte, bytes) of each that is accessed.

    sectors: of all the first block's accesses to the array, before and after. lines: (file, line) of these.
    """

    array: str
    record: int
    fields: tuple[tuple[int, int], ...]
    sectors: tuple[int, int]
    lines: tuple[tuple[str, int], ...]


def fields(block: Analysis) -> tuple[ArrayOfStructs, ...]:
    """The arrays that move fewer sectors as a structure of arrays."""
    arrays = [entry for entry in block.trace.arrays if entry[1] == "global" and entry[3] > 0]
    found = (_fields(block, name, first, size) for name, _, first, size in arrays)
    return tuple(each for each in found if each is not None)


def _fields(block: Analysis, name: str, first: int, size: int) -> ArrayOfStructs | None:
    trace = block.trace
    numbers = [
        number
        for number, site in enumerate(block.sites)
        if site.space == "global" and name in site.array.split("|") and site.requests
    ]
    sites = [block.sites[number] for number in numbers]
    rows = [block.requests_of_sites[number] for number in numbers]
    badly = [some for some, site in zip(rows, sites) if is_badly_coalesced(site)]
    record = stride(block, np.concatenate(badly)) if badly else 0
    alone = all(one.array == name and not one.unresolved and not one.operation.is_copy for one in sites)
    if not alone or not 0 < record <= LONGEST:
        return None
    pieces = set()
    for some, site in zip(rows, sites, strict=True):
        offsets = trace.addresses[some][trace.active[some]] - first
        pieces |= {(start, site.width) for start in np.unique(offsets % record).tolist()}
    known = sorted(pieces)
    ends = [0, *(start + width for start, width in known)]
    overlap = any(start < end for (start, _), end in zip(known, ends)) or ends[-1] > record
    each_warp = sum(-(-site.instructions // trace.launch.warps) for site in sites)
    # More places than a warp has instructions: one of them goes along a row, by warps.
    if overlap or known == [(0, record)] or len(known) > each_warp:
        return None
    before = sum(site.sectors or 0 for site in sites)
    places = {start: index * (-(-size // ALIGN) + 1) * ALIGN for index, (start, _) in enumerate(known)}

    def moved(rows: NDArray[np.int64], width: int) -> NDArray[np.int64]:
        """The addresses of these requests, with each field in an array of its own at `places`."""
        offsets = np.where(trace.active[rows], trace.addresses[rows] - first, 0)
        start = np.zeros_like(offsets)
        for field, place in places.items():
            start[offsets % record == field] = place
        return np.where(trace.active[rows], start + offsets // record * width, 0)

    after = sum(
        sectors_of(block, some, site.width, site.op, addresses=moved(some, site.width))
        for some, site in zip(rows, sites, strict=True)
    )
    if after >= before:
        return None
    lines = tuple(dict.fromkeys((site.file, site.line) for site in sites))
    return ArrayOfStructs(name, record, tuple(known), (before, after), lines)


def stride(analysis: Analysis, rows: NDArray[np.int64], apart: int = 1) -> int:
    """By how many bytes lanes that are `apart` from others are ahead of them; 0 if that differs."""
    active, addresses = analysis.trace.active[rows], analysis.trace.addresses[rows]
    both = active[:, apart:] & active[:, :-apart]
    steps = np.unique((addresses[:, apart:] - addresses[:, :-apart])[both])
    return int(steps[0]) if len(steps) == 1 else 0


@dataclass(frozen=True, slots=True)
class Staging:
    """A row of the analysis whose data could be staged in shared memory.

    sectors: of the first block, before and after. room: bytes of shared memory that the block's data take, of
    one round if its warps access more than once. fills: it already is a copy into shared memory.
    """

    site: SiteCounts
    sectors: tuple[int, int]
    room: int
    fills: bool = False


def accesses_to_stage(block: Analysis) -> tuple[Staging, ...]:
    """The rows that move fewer sectors if every sector that the block touches is moved once."""
    trace, chip = block.trace, block.arch
    used = trace.shared_end
    stores = {(site.file, site.line) for site in block.sites if (site.space, site.op) == ("shared", "store")}
    found = []
    for number, site in enumerate(block.sites):
        of_library = site.array.startswith("__cudart")  # a table of functions: `__cudart_sin_cos_coeffs`
        if not is_badly_coalesced(site) or site.sectors is None or of_library:
            continue
        rows = block.requests_of_sites[number]
        touched = trace.addresses[rows][trace.active[rows]]
        sectors = len(np.unique(touched // chip.sector_bytes))  # an aligned access is within one sector
        rounds = max(-(-(site.requests or 0) // trace.launch.warps), 1)
        room = -(-len(np.unique(touched)) // rounds) * site.width
        saves = site.sectors - sectors >= BADLY_COALESCED * site.sectors
        if saves and fits(used + room, trace.launch, chip):
            fills = site.op == "load" and (site.file, site.line) in stores
            found.append(Staging(site, (site.sectors, sectors), room, fills))
    return tuple(found)


WIDEST = 16
JOINED = ("load", "store")
Rows = list[int]


@dataclass(frozen=True, slots=True)
class Wider:
    """A row of the analysis whose accesses can be merged. site: its number; times: how many become one of
    `width` B.

    sectors: of all its requests, before and after.
    """

    site: int
    times: int
    width: int
    sectors: tuple[int, int]


def wider(analysis: Analysis) -> tuple[Wider, ...]:
    """The rows of global accesses that move fewer sectors when merged, as wide as possible."""
    found = (_joined(analysis, number) for number in range(len(analysis.sites)))
    return tuple(each for each in found if each is not None)


def _joined(analysis: Analysis, number: int) -> Wider | None:
    site = analysis.sites[number]
    may_be_joined = site.space == "global" and site.op in JOINED
    if not may_be_joined or not site.sectors or site.sectors == site.ideal_sectors:
        return None
    for times in (8, 4, 2):
        width = site.width * times
        firsts = _firsts(analysis, number, times) if width <= WIDEST else None
        if firsts is not None:
            sectors = sectors_of(analysis, firsts, width, site.op)
            return Wider(number, times, width, (site.sectors, sectors)) if sectors < site.sectors else None
    return None


def _firsts(analysis: Analysis, number: int, times: int) -> NDArray[np.int64] | None:
    """The rows of the trace whose requests are the first of `times` neighbours; None unless all have them.

    Neighbours are requests of the same lanes of one warp, equally often, each lane's next to its previous.
    """
    trace, width = analysis.trace, analysis.sites[number].width
    alike: dict[tuple[object, ...], Rows] = defaultdict(list)
    for row in analysis.requests_of_sites[number].tolist():
        if trace.active[row].any():
            made = int(trace.count[row]), int(trace.block[row]), int(trace.warp[row])
            alike[made, trace.active[row].tobytes()].append(row)
    firsts: Rows = []
    for rows in alike.values():
        lanes = trace.active[rows[0]]
        rows.sort(key=lambda row: int(trace.addresses[row][lanes][0]))
        for start in range(0, len(rows), times):
            some = rows[start : start + times]
            addresses = [trace.addresses[row][lanes] for row in some]
            side_by_side = all((two - one == width).all() for one, two in pairwise(addresses))
            if len(some) < times or not side_by_side or (addresses[0] % (width * times)).any():
                return None
            firsts.append(some[0])
    return np.array(firsts, np.int64)
