"""What each request to global memory costs in L1, in the order in which a multiprocessor's warps make them.

Blocks that are resident at once are taken to run side by side, and one wave of them after the other.
Measured on an H100 and an H200 (lab/time): a store writes through, and its sectors are found there later;
atomics leave no line; the cache is what shared memory leaves of 256 KiB; a request passes the data stage as
often as one to shared memory at the same addresses would, and the tag stage four lines a cycle.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from memsim.arch.units import LINE
from memsim.model.shared import shared_access
from memsim.time.block_streams import GlobalRequests
from memsim.time.launch_survey import FirstTouches
from memsim.trace.footprint import SECTOR_BITS

#: Bytes of L1 and shared memory together, and what the driver gives to shared memory of it.
TOGETHER = 256 << 10
CARVEOUTS = tuple(kilobytes << 10 for kilobytes in (0, 8, 16, 32, 64, 100, 132, 164, 196, 228))
#: Shares of the cache's lines that were touched since a line was: below the first it is still there, beyond
#: the second it is not (measured: sets are chosen by a hash, and evict early).
SAFE, GONE = 0.75, 1.35
#: Operations that L1 keeps sectors of.
CACHED = frozenset({"load", "cp_async", "store"})
#: Operations that ask for no data.
WRITE_ONLY = frozenset({"store", "reduction"})
#: Lines whose tags are looked up in a cycle.
TAGS_A_CYCLE = 4
#: Instructions by which one that asks is surely late enough to find it in L2.
MOST_BEHIND = 2048
#: Executions within which a sector that was asked for may still be on its way.
ON_ITS_WAY = 64


@dataclass(frozen=True, slots=True)
class CostOfRequest:
    """What a request costs. wavefronts: of the data stage. tags: cycles of the tag stage. sectors, missing:
    asked for, and not found in L1. behind: instructions, to a power of two, by which another
    warp asked L2 earlier for the newest of these. follows: the instruction that asked for the last of its
    sectors, which may be on its way, and by how many executions that one is ahead; (-1, 0) if there is none.
    """

    op: int
    wavefronts: int
    tags: int
    sectors: int
    missing: int
    behind: int
    follows: tuple[int, int]


@dataclass(frozen=True, slots=True)
class CachedRequests:
    """Requests with their costs. costs: the distinct ones. number: of each request's cost [m]. nth: how many
    of the same instruction its warp made before [m]. hits, sectors: found, and asked for. read: not found,
    of all but stores.
    """

    made: GlobalRequests
    costs: tuple[CostOfRequest, ...]
    number: np.ndarray
    nth: np.ndarray
    hits: int
    sectors: int
    read: int


def l1_bytes(shared_of_block: int, resident: int) -> int:
    """The size of L1 if so many blocks with so much shared memory, and 1 KiB each, are resident."""
    taken = (shared_of_block + 1024) * resident if shared_of_block else 0
    return TOGETHER - next((one for one in CARVEOUTS if one >= taken), CARVEOUTS[-1])


def cached_requests(
    made: GlobalRequests,
    kinds: Mapping[int, tuple[str, int]],
    past: Collection[int],
    size: int,
    warps_of_wave: int,
    touches: FirstTouches,
) -> CachedRequests:
    """The costs of requests.

    kinds: operation and bytes a lane of each instruction. past: loads that ask L2 even if L1 has it. size:
    bytes of L1. warps_of_wave: of the blocks that are resident at once. touches: what the
    first wave of all multiprocessors asks for.
    """
    order = np.lexsort((made.warp, made.event, made.warp // max(warps_of_wave, 1)))
    op = made.op[order]
    sectors = np.sort(np.where(made.active, made.addresses >> SECTOR_BITS, -1)[order], axis=1)
    is_first = np.diff(sectors, axis=1, prepend=-2) != 0
    is_first &= sectors >= 0
    lines = sectors >> (LINE.bit_length() - 1 - SECTOR_BITS)
    is_line = (np.diff(lines, axis=1, prepend=-2) != 0) & is_first
    asked, looked_up = is_first.sum(1), is_line.sum(1)
    cached = [one for one, (kind, _) in kinds.items() if kind in CACHED and one not in past]
    caches = np.isin(op, cached)
    row, column = np.nonzero(is_first & caches[:, None])
    hit, source = _lookups(row, sectors[row, column], size)
    missing = asked.copy()
    loads = np.isin(op, [one for one in cached if kinds[one][0] != "store"])
    np.subtract.at(missing, row[hit & loads[row]], 1)
    gone = np.zeros(is_first.shape, np.bool_)
    gone[row[hit & loads[row]], column[hit & loads[row]]] = True
    comes, from_lane = np.nonzero(is_first & ~gone)
    address = sectors[comes, from_lane] << SECTOR_BITS
    behind = np.full(len(op), MOST_BEHIND)
    np.minimum.at(behind, comes, touches.behind(address, made.progress[order][comes]))
    behind = np.where(missing > 0, 1 << np.log2(np.maximum(behind, 1)).astype(np.int64), 1)
    nth = _nth(op, made.warp[order])
    follows_op, ahead = _follows(
        row, hit & loads[row] & loads[row[source]], source, made.event[order], op, nth
    )
    wavefronts = _wavefronts(made, order, op, kinds)
    tags = -(-looked_up // TAGS_A_CYCLE)
    rows = np.stack([op, wavefronts, tags, asked, missing, behind, follows_op, ahead], 1)
    distinct, number = np.unique(rows, axis=0, return_inverse=True)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    stores = [one for one, (kind, _) in kinds.items() if kind in WRITE_ONLY]
    read = int(missing[~np.isin(op, stores)].sum())
    costs = tuple(CostOfRequest(a, b, c, d, e, f, (g, h)) for a, b, c, d, e, f, g, h in distinct.tolist())
    totals = int(hit.sum()), int(asked.sum()), read
    return CachedRequests(made, costs, number.reshape(-1)[back], nth[back], *totals)


def _lookups(row: np.ndarray, sector: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """(whether L1 has each sector [n], the place of the look-up that brought it there, or -1 [n]).

    How many lines came between is estimated from how long ago all lines were used last (StatStack, ISPASS
    2010); sectors of look-ups in order [n], `row` of them the request.
    """
    count = len(sector)
    line = sector >> 2
    before_sector, before_line = _previous(sector), _previous(line)
    again = np.arange(count) - before_line
    again = np.where(before_line < 0, count + 1, again)
    # Of a stretch of look-ups, those whose line is not used again in it are its distinct lines.
    later = np.bincount(np.minimum(again, count), minlength=count + 1)[: count + 1]
    longer = count - np.cumsum(later) + 0.0
    distinct = np.concatenate([[0.0], np.cumsum(longer / max(count, 1))])
    filled = distinct[np.minimum(again, count)] * LINE / max(size, 1)
    spread = np.arange(count) * 0.6180339887 % 1.0  # in place of chance: every share of lines is met evenly
    stays = filled <= SAFE + (GONE - SAFE) * spread
    hit = (before_sector >= 0) & stays
    source = np.where(hit, before_sector, np.arange(count))
    while True:  # from a hit to what it hit, until that was a miss
        further = source[source]
        if (further == source).all():
            return hit, np.where(hit, source, -1)
        source = further


def _previous(values: np.ndarray) -> np.ndarray:
    """The place of the last equal value before each [n], -1 if there is none."""
    order = np.argsort(values, kind="stable")
    found = np.full(len(values), -1)
    same = values[order[1:]] == values[order[:-1]]
    found[order[1:][same]] = order[:-1][same]
    return found


def _nth(op: np.ndarray, warp: np.ndarray) -> np.ndarray:
    """How many requests of the same instruction and warp there are before each [m]."""
    key = op * (int(warp.max(initial=0)) + 1) + warp
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    found = np.empty_like(order)
    found[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return found


def _follows(
    row: np.ndarray, hit: np.ndarray, source: np.ndarray, event: np.ndarray, op: np.ndarray, nth: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(instruction, executions that it is ahead) of the request that brought the last of each request's
    sectors [m]; -1 and 0 if all were there for long.
    """
    brought_by = np.full(len(op), -1)
    recent = hit & (event[row] - event[row[source]] <= ON_ITS_WAY)
    recent &= event[row] >= event[row[source]]
    np.maximum.at(brought_by, row[recent], row[source[recent]])
    follows = brought_by >= 0
    at = np.where(follows, brought_by, 0)
    return np.where(follows, op[at], -1), np.where(follows, nth[at] - nth, 0)


def _wavefronts(
    made: GlobalRequests, order: np.ndarray, op: np.ndarray, kinds: Mapping[int, tuple[str, int]]
) -> np.ndarray:
    """Wavefronts of the data stage for each request, as of one to shared memory [m]."""
    found = np.ones(len(op), np.int64)
    for one, (kind, width) in kinds.items():
        places = np.flatnonzero(op == one)
        if len(places):
            rows = order[places]
            kind = "load" if kind in ("load", "cp_async") else "store"
            found[places] = shared_access(made.addresses[rows], width, kind, made.active[rows]).wavefronts
    return np.maximum(found, 1)
