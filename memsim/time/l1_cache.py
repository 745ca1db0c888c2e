"""What each request to global memory costs in L1, in the order in which a multiprocessor's warps make them.

Blocks that are resident at once are taken to run side by side, and one wave of them after the other.
Measured on an H100 and an H200 (lab/time): a store writes through, and its sectors are found there later;
atomics leave no line; the cache is what shared memory leaves of 256 KiB; a request passes the data stage as
often as one to shared memory at the same addresses would, and the tag stage four lines a cycle. A sector that
is asked for again while it is on its way counts as found, in ncu and here; one that is stored, if its line is
there, whichever sectors of it are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from memsim.arch.units import LINE, SECTOR, WARP, WORD
from memsim.model.shared import shared_access
from memsim.time.block_streams import GlobalRequests
from memsim.time.launch_survey import ATOMICS, FirstTouches, evenly, turns_at_l2
from memsim.trace.footprint import SECTOR_BITS

#: Bytes of L1 and shared memory together, and what the driver gives to shared memory of it.
TOGETHER = 256 << 10
CARVEOUTS = tuple(kilobytes << 10 for kilobytes in (0, 8, 16, 32, 64, 100, 132, 164, 196, 228))
#: Shares of the cache's lines that were touched since a line was: below the first it is still there, beyond
#: the second it is not (measured: sets are chosen by a hash, and evict early).
SAFE, GONE = 0.75, 1.35
#: The share of the cache that is brought in, in the mean, until a line is gone that was loaded for the last
#: time (`LDL.LU`). Chosen: hit rates of three kernels that spill ?
LAST_USE = 0.37
#: Of lines that other warps asked for, or its own so few instructions before, the share that a store finds
#: which takes the tag stage more than a cycle: not what is on its way to L2 (lab/time/stores.cu). Chosen: hit
#: rates of half of the catalogue ?
FOUND_AGAIN, SOON = 0.3, 16
#: Lines of a request that wait on their way to L2 for what its warp stores next. Measured: 28 lines wait
#: (lab/time/stores.cu), and four schedulers share them.
WAITING_LINES = 28 // 4
#: Addresses of local memory, behind all others, and those of a warp.
LOCAL, LOCAL_OF_WARP = 1 << 56, 1 << 25
#: Operations that L1 keeps sectors of.
CACHED = frozenset({"load", "cp_async", "store"})
#: Operations that ask for no data.
WRITE_ONLY = frozenset({"store", "reduction"})
SECTORS_OF_LINE = LINE // SECTOR
LINE_BITS = LINE.bit_length() - 1
#: Bits of an address in a row of DRAM, and how often twice as many rows make a request wait longer. Measured:
#: pieces of 32 to 512 bytes, 256 bytes to 32 KiB apart (lab/time/reads.cu).
ROW_BITS, MOST_ROWS = 12, 4
#: Lines whose tags are looked up in a cycle.
TAGS_A_CYCLE = 4
#: Instructions by which one that asks is surely late enough to find it in L2.
MOST_BEHIND = 2048
#: More than a warp of the first wave executes.
LATER_WAVE = 1 << 60
#: Executions within which a sector that was asked for may still be on its way.
ON_ITS_WAY = 64


class AccessKind(NamedTuple):
    """What an instruction does. op: its operation. width: bytes a lane. is_past: a load that asks L2 even if
    L1 has it. is_local: to local memory. is_last: nobody loads it again.
    """

    op: str
    width: int
    is_past: bool = False
    is_local: bool = False
    is_last: bool = False

    @property
    def is_cached(self) -> bool:
        """Does L1 keep its sectors?"""
        return self.op in CACHED and not self.is_past


@dataclass(frozen=True, slots=True)
class CostOfRequest:
    """What a request costs. follows: the instruction that asked for the last of its sectors, which may be on
    its way, and by how many executions that one is ahead; (-1, 0) if there is none. wavefronts: of the data
    stage. tags: cycles of the tag stage. sectors, missing: asked for, and not found in L1. partial: of these,
    those that take L2 longer, as it writes a part of each. gaps: sectors that a store leaves out of the lines
    to which it goes. turns: of atomics at L2. behind: instructions, to a power of two, by which another warp
    asked L2 earlier for the newest of these. lines: of 128 bytes, that what misses is in. rows: of DRAM, by
    how often they are twice as many as one. moves: 1 if the last of them is another than that of the request
    that missed before, else 0.
    """

    follows: tuple[int, int]
    op: int
    wavefronts: int
    tags: int
    sectors: int
    missing: int
    partial: int
    gaps: int
    turns: int
    behind: int
    lines: int
    rows: int
    moves: int


@dataclass(frozen=True, slots=True)
class CachedRequests:
    """Requests with their costs. costs: the distinct ones. number: of each request's cost [m]. nth: how many
    of the same instruction its warp made before [m]. hits, sectors: found, and asked for. read, written: of
    global memory not found, and written. local: not found and written, of local memory.
    """

    made: GlobalRequests
    costs: tuple[CostOfRequest, ...]
    number: np.ndarray
    nth: np.ndarray
    hits: float
    sectors: float
    read: float
    written: float
    local: float

    def misses(self, op: int) -> float:
        """The share of an instruction's sectors that were not found; 1 if nothing is known of it."""
        costs = [self.costs[number] for number in self.number[self.made.op == op].tolist()]
        missing, sectors = (sum(getattr(cost, name) for cost in costs) for name in ("missing", "sectors"))
        return float(missing / sectors) if sectors else 1.0


def l1_bytes(shared_of_block: int, resident: int) -> int:
    """The size of L1 if so many blocks with so much shared memory, and 1 KiB each, are resident."""
    taken = (shared_of_block + 1024) * resident if shared_of_block else 0
    return TOGETHER - next((one for one in CARVEOUTS if one >= taken), CARVEOUTS[-1])


def cached_requests(
    made: GlobalRequests,
    kinds: Mapping[int, AccessKind],
    size: int,
    warps_of_wave: int,
    touches: FirstTouches,
    times: Mapping[int, float],
) -> CachedRequests:
    """The costs of requests.

    kinds: of each instruction. size: bytes of L1. warps_of_wave: of the blocks that are resident at once.
    touches: what the first wave of all multiprocessors asks for. times: of an instruction that makes more
    requests than these, how many times as many.
    """

    def those(is_meant: Callable[[AccessKind], bool]) -> np.ndarray:
        """Which requests are of such instructions [m]."""
        return np.isin(op, [one for one, kind in kinds.items() if is_meant(kind)])

    op = made.op
    # The youngest warp is the first to store; who loads first makes no difference but in time.
    turn = np.where(those(lambda kind: kind.op in WRITE_ONLY), -made.warp, made.warp)
    made = made[np.lexsort((turn, made.event, made.warp // max(warps_of_wave, 1)))]
    op = made.op
    width = np.array([kinds[one].width for one in op.tolist()], np.int64)
    is_local, stores = those(lambda kind: kind.is_local), those(lambda kind: kind.op in WRITE_ONLY)
    caches, loads = those(lambda kind: kind.is_cached), those(lambda kind: kind.is_cached) & ~stores
    made.addresses[is_local] = in_local_memory(made[is_local], kinds, warps_of_wave)
    sectors = np.sort(np.where(made.active, made.addresses >> SECTOR_BITS, -1), axis=1)
    is_first = np.diff(sectors, axis=1, prepend=-2) != 0
    is_first &= sectors >= 0
    line_of = sectors >> LINE_BITS - SECTOR_BITS
    is_line = (np.diff(line_of, axis=1, prepend=-2) != 0) & is_first
    asked, looked_up = is_first.sum(1), is_line.sum(1)
    row, column = np.nonzero(is_first & caches[:, None])
    sector, line = sectors[row, column], line_of[row, column]
    hit, stays, before, source = _lookups(sector, size, those(lambda kind: kind.is_last)[row])
    missing = asked.copy()
    tags = -(-looked_up // TAGS_A_CYCLE)
    at_once = tags[row] <= 1
    # On its way to L2 a store is combined with one that is still there (docs/time.md).
    is_own = _goes_on(row, row[before], made, loads)
    is_beside = at_once & (made.event[row] == made.event[row[before]]) & (width[row] >= WORD)
    goes_on = hit & stores[row] & stores[row[before]] & (is_own | is_beside)
    combined = goes_on & np.where(is_own, looked_up[row] <= WAITING_LINES, at_once)
    # It finds a line, whichever sectors of it are there.
    starts = np.flatnonzero(is_line[row, column])
    of_line = np.cumsum(is_line[row, column]) - 1
    finds_soon = (looked_up <= WAITING_LINES) | (asked == looked_up)
    is_of_own = _found_by_own_warp(line[starts], row[starts], made, finds_soon)[of_line]
    found = hit & ~stores[row] | stores[row] & stays[starts][of_line]
    share = np.where(stores[row] & ~is_of_own & ~at_once, FOUND_AGAIN, 1.0)
    np.subtract.at(missing, row[hit & loads[row] | combined], 1)
    partial = np.zeros(len(op), np.int64)
    in_part = stores[row] & ~goes_on & (_bytes_written(row, column, width) < SECTOR)
    in_part[before[goes_on]] = False  # it is filled
    np.add.at(partial, row[in_part], 1)
    gone = np.zeros(is_first.shape, np.bool_)
    gone[row[hit & loads[row]], column[hit & loads[row]]] = True
    comes, from_lane = np.nonzero(is_first & ~gone)
    address = sectors[comes, from_lane] << SECTOR_BITS
    behind = np.full(len(op), MOST_BEHIND)
    # What the first wave asked for is there in later ones, and what was spilled is.
    progress = np.where(made.warp < warps_of_wave, made.progress, LATER_WAVE)
    late = np.where(is_local[comes], MOST_BEHIND, touches.behind(address, progress[comes]))
    np.minimum.at(behind, comes, late)
    behind = np.where(missing > 0, 1 << np.log2(np.maximum(behind, 1)).astype(np.int64), 1)
    lines, in_rows = (
        _missed_in(comes, sectors[comes, from_lane], bits, len(op)) for bits in (LINE_BITS, ROW_BITS)
    )
    rows = np.minimum(np.ceil(np.log2(np.maximum(in_rows, 1))).astype(np.int64), MOST_ROWS)
    moves = _moves(comes, sectors[comes, from_lane] >> ROW_BITS - SECTOR_BITS, len(op))
    nth = _nth(op, made.warp)
    follows_op, ahead = _follows(row, hit & loads[row] & loads[row[source]], source, made.event, op, nth)
    wavefronts = np.where(is_local, np.maximum(looked_up, 1), _wavefronts(made, kinds))
    turns = np.zeros(len(op), np.int64)
    changed = those(lambda kind: kind.op in ATOMICS)[:, None] & made.active
    taken_by, _, taken = turns_at_l2(np.nonzero(changed)[0], made.addresses[changed])
    np.add.at(turns, taken_by, taken)
    gaps = np.where(caches & stores & (missing > 0), looked_up * SECTORS_OF_LINE - asked, 0)
    asks = follows_op, ahead, op, wavefronts, tags, asked, missing, partial, gaps, turns
    every = np.stack([*asks, behind, lines, rows, moves], 1)
    distinct, number = np.unique(every, axis=0, return_inverse=True)
    costs = tuple(CostOfRequest((by, before), *one) for by, before, *one in distinct.tolist())
    each = np.array([times.get(one, 1.0) for one in op.tolist()])
    missed = missing * each
    return CachedRequests(
        made,
        costs,
        number.reshape(-1),
        nth,
        hits=float((each[row] * share)[found].sum()),
        sectors=float((asked * each).sum()),
        read=float(missed[~stores & ~is_local].sum()),
        written=float(missed[stores & ~is_local].sum()),
        local=float(missed[is_local].sum()),
    )


def _missed_in(row: np.ndarray, sector: np.ndarray, bits: int, count: int) -> np.ndarray:
    """In how many parts of so many address bits the sectors are that each of `count` requests misses.

    row, sector: requests, ascending, and their sectors, ascending in each [n].
    """
    part = sector >> bits - SECTOR_BITS
    is_new = (np.diff(row, prepend=-1) != 0) | (np.diff(part, prepend=-1) != 0)
    return np.bincount(row[is_new], minlength=count)


def _moves(request: np.ndarray, row: np.ndarray, count: int) -> np.ndarray:
    """1 for each of `count` requests whose last row is not that of the last one that missed any, else 0.

    request, row: requests, ascending, and the rows of what they miss, ascending in each [n].
    """
    last = np.diff(request, append=-1) != 0
    found = np.zeros(count, np.int64)
    found[request[last]] = np.diff(row[last], prepend=-1) != 0
    return found


def _goes_on(row: np.ndarray, before: np.ndarray, made: GlobalRequests, loads: np.ndarray) -> np.ndarray:
    """Whether requests are of the same warps as ones before them, which have loaded nothing since [n].

    row, before: requests [n]. loads: which requests are [m].
    """
    order = np.argsort(made.warp, kind="stable")
    loaded = np.empty(len(loads), np.int64)
    loaded[order] = np.cumsum(loads[order])
    found: np.ndarray = (made.warp[row] == made.warp[before]) & (loaded[row] == loaded[before])
    return found


def _found_by_own_warp(
    line: np.ndarray, row: np.ndarray, made: GlobalRequests, at_once: np.ndarray
) -> np.ndarray:
    """Whether a line was looked up before by the same warp, so that a store of it finds it [n].

    line, row: looked up, and the request that does [n]. at_once: requests that find what the warp's last
    instructions stored [m]; it is on its way to L2.
    """
    number = np.unique(line, return_inverse=True)[1].reshape(-1)
    warp = made.warp[row]
    before = _previous(number * (int(warp.max(initial=0)) + 1) + warp)
    is_late = made.progress[row] - made.progress[row[before]] > SOON
    found: np.ndarray = (before >= 0) & (is_late | at_once[row])
    return found


def _bytes_written(row: np.ndarray, column: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Of each sector, whose first lane is in a column of a row [n], the bytes that lanes write there, if none
    writes what another does. width: bytes of a lane [m].
    """
    last = np.diff(row, append=-1) != 0
    found: np.ndarray = (np.where(last, WARP, np.roll(column, -1)) - column) * width[row]
    return found


def in_local_memory(made: GlobalRequests, kinds: Mapping[int, AccessKind], warps_of_wave: int) -> np.ndarray:
    """Where lanes' local memory lies, int64 [m, 32]: words of the lanes of a warp are side by side, and the
    next block has the place of the one that ended. Of the words that eight lanes ask for, each has one.
    """
    words = np.array([max(kinds[op].width // 4, 1) for op in made.op.tolist()], np.int64)[:, None]
    lane = np.arange(WARP)
    word = (made.addresses >> 2) + lane % 8 * words // 8
    warp = made.warp % max(warps_of_wave, 1) * LOCAL_OF_WARP
    found: np.ndarray = LOCAL + warp[:, None] + word * LINE + 4 * lane
    return found


def _lookups(
    sector: np.ndarray, size: int, is_last: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(whether L1 has each sector [n], whether it has its line [n], the place of the look-up of the sector
    before, and of the one that brought it there, each -1 if there is none [n]).

    How many lines came between is estimated from how long ago all lines were used last (StatStack, ISPASS
    2010); sectors of look-ups in order [n], and whether it is the last use of each.
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
    spread = evenly(np.arange(count))
    stays = (before_line >= 0) & (filled <= SAFE + (GONE - SAFE) * spread)
    brought_in = np.cumsum(~stays) * LINE / max(size, 1)
    since = brought_in - brought_in[before_line]
    stays &= ~is_last[before_line] | (since <= -LAST_USE * np.log1p(-spread))
    # A sector is there if its line has not been brought in again since.
    order = np.argsort(line, kind="stable")
    times = np.empty(count, np.int64)
    times[order] = np.cumsum(~stays[order])
    hit = (before_sector >= 0) & (times == times[before_sector])
    source = np.where(hit, before_sector, np.arange(count))
    while True:  # from a hit to what it hit, until that was a miss
        further = source[source]
        if (further == source).all():
            return hit, stays, before_sector, np.where(hit, source, -1)
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


def _wavefronts(made: GlobalRequests, kinds: Mapping[int, AccessKind]) -> np.ndarray:
    """Wavefronts of the data stage for each request, as of one to shared memory [m]."""
    found = np.ones(len(made), np.int64)
    for one, kind in kinds.items():
        rows = np.flatnonzero(made.op == one) if not kind.is_local else ()
        if len(rows):
            op = "load" if kind.op in ("load", "cp_async") else "store"
            found[rows] = shared_access(made.addresses[rows], kind.width, op, made.active[rows]).wavefronts
    return np.maximum(found, 1)
