"""What each request to global memory costs: in L1, and what it asks L2 for.

Measured on an H100 and an H200 (lab/time): a store writes through, and its sectors are found there later;
the cache is what shared memory leaves of 256 KiB; a request passes the data stage as often as one to shared
memory at the same addresses would, and the tag stage four lines a cycle. A sector that is asked for again
while it is on its way counts as found, in ncu and here; one that is stored, if its line is there, whichever
sectors of it are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from memsim.arch.units import LINE, SECTOR, WARP, WORD
from memsim.model.shared import shared_access
from memsim.time.block_streams import GlobalRequests
from memsim.time.l1_lookups import LINE_BITS, TAGS_A_CYCLE, AccessKind, LookUps, OrderedRequests, previous
from memsim.time.launch_survey import ATOMICS, FirstTouches, turns_at_l2
from memsim.trace.footprint import SECTOR_BITS

#: Bytes of L1 and shared memory together, and what the driver gives to shared memory of it.
TOGETHER = 256 << 10
CARVEOUTS = tuple(kilobytes << 10 for kilobytes in (0, 8, 16, 32, 64, 100, 132, 164, 196, 228))
#: Of lines that other warps asked for, or its own so few instructions before, the share that a store finds
#: which takes the tag stage more than a cycle: not what is on its way to L2 (lab/time/stores.cu). Chosen: hit
#: rates of half of the catalogue ?
FOUND_AGAIN, SOON = 0.3, 16
#: Lines of a request that wait on their way to L2 for what its warp stores next. Measured: 28 lines wait
#: (lab/time/stores.cu), and four schedulers share them.
WAITING_LINES = 28 // 4
SECTORS_OF_LINE = LINE // SECTOR
#: Bits of an address in a row of DRAM, and how often twice as many rows make a request wait longer. Measured:
#: pieces of 32 to 512 bytes, 256 bytes to 32 KiB apart (lab/time/reads.cu).
ROW_BITS, MOST_ROWS = 12, 4
#: Instructions by which one that asks is surely late enough to find it in L2.
MOST_BEHIND = 2048
#: More than a warp of the first wave executes.
LATER_WAVE = 1 << 60
#: Executions within which a sector that was asked for may still be on its way.
ON_ITS_WAY = 64


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
    requests = OrderedRequests(made, kinds, warps_of_wave)
    made, op, stores, is_local = requests.made, requests.made.op, requests.stores, requests.is_local
    looks = LookUps(requests, size)
    row = looks.row
    loaded = looks.hit & requests.loads[row]
    joins, combined = _combined(requests, looks)
    missing = requests.asked.copy()
    np.subtract.at(missing, row[loaded | combined], 1)
    gaps = np.where(
        requests.caches & stores & (missing > 0), requests.lines * SECTORS_OF_LINE - requests.asked, 0
    )
    nth = _nth(op, made.warp)
    source = looks.source
    follows_op, ahead = _follows(row, loaded & requests.loads[row[source]], source, made.event, op, nth)
    every = np.stack(
        [
            follows_op,
            ahead,
            op,
            np.where(is_local, np.maximum(requests.lines, 1), _wavefronts(made, kinds)),
            -(-requests.lines // TAGS_A_CYCLE),
            requests.asked,
            missing,
            _partial(requests, looks, joins),
            gaps,
            _turns(requests),
            *_asked_of_l2(requests, looks, loaded, missing, warps_of_wave, touches),
        ],
        1,
    )
    distinct, number = np.unique(every, axis=0, return_inverse=True)
    costs = tuple(CostOfRequest((by, before), *one) for by, before, *one in distinct.tolist())
    each = np.array([times.get(one, 1.0) for one in op.tolist()])
    missed = missing * each
    return CachedRequests(
        made,
        costs,
        number.reshape(-1),
        nth,
        hits=float((each[row] * _found(requests, looks)).sum()),
        sectors=float((requests.asked * each).sum()),
        read=float(missed[~stores & ~is_local].sum()),
        written=float(missed[stores & ~is_local].sum()),
        local=float(missed[is_local].sum()),
    )


def _combined(requests: OrderedRequests, looks: LookUps) -> tuple[np.ndarray, np.ndarray]:
    """Whether a store goes on where one before has begun, and whether the two go to L2 together [n]: if the
    first is still on its way (docs/time-model.md).
    """
    row, before, made = looks.row, looks.row[looks.before], requests.made
    is_own = _goes_on(row, before, made, requests.loads)
    is_beside = looks.at_once & (made.event[row] == made.event[before]) & (requests.width[row] >= WORD)
    joins = looks.hit & requests.stores[row] & requests.stores[before] & (is_own | is_beside)
    return joins, joins & np.where(is_own, requests.lines[row] <= WAITING_LINES, looks.at_once)


def _partial(requests: OrderedRequests, looks: LookUps, joins: np.ndarray) -> np.ndarray:
    """Sectors that L2 writes a part of, and that no later store fills, of each request [m]."""
    row = looks.row
    written = _bytes_written(row, looks.column, requests.width)
    in_part = requests.stores[row] & ~joins & (written < SECTOR)
    in_part[looks.before[joins]] = False
    return np.bincount(row[in_part], minlength=len(requests))


def _found(requests: OrderedRequests, looks: LookUps) -> np.ndarray:
    """The share of each sector that is looked up which L1 finds [n]. A store finds a line, whichever sectors
    of it are there.
    """
    row, column = looks.row, looks.column
    line = requests.sectors[row, column] >> LINE_BITS - SECTOR_BITS
    is_line = requests.is_line[row, column]
    starts, of_line = np.flatnonzero(is_line), np.cumsum(is_line) - 1
    finds_soon = (requests.lines <= WAITING_LINES) | (requests.asked == requests.lines)
    is_of_own = _found_by_own_warp(line[starts], row[starts], requests.made, finds_soon)[of_line]
    stores = requests.stores[row]
    found = np.where(stores, looks.stays[starts][of_line], looks.hit)
    share: np.ndarray = np.where(stores & ~is_of_own & ~looks.at_once, FOUND_AGAIN, 1.0) * found
    return share


def _turns(requests: OrderedRequests) -> np.ndarray:
    """Turns of atomics at L2, of each request [m]."""
    changed = requests.those(lambda kind: kind.op in ATOMICS)[:, None] & requests.made.active
    taken_by, _, taken = turns_at_l2(np.nonzero(changed)[0], requests.made.addresses[changed])
    found = np.zeros(len(requests), np.int64)
    np.add.at(found, taken_by, taken)
    return found


def _asked_of_l2(
    requests: OrderedRequests,
    looks: LookUps,
    loaded: np.ndarray,
    missing: np.ndarray,
    warps_of_wave: int,
    touches: FirstTouches,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`behind`, `lines`, `rows` and `moves`, as of `CostOfRequest`, of what each request asks L2 for [m].

    loaded: sectors that L1 had [n]. missing: sectors of each request that it had not [m].
    """
    made, count = requests.made, len(requests)
    is_asked = requests.is_first.copy()
    is_asked[looks.row[loaded], looks.column[loaded]] = False
    row, column = np.nonzero(is_asked)
    sector = requests.sectors[row, column]
    # What the first wave asked for is there in later ones, and what was spilled is.
    progress = np.where(made.warp < warps_of_wave, made.progress, LATER_WAVE)
    late = np.where(requests.is_local[row], MOST_BEHIND, touches.behind(sector << SECTOR_BITS, progress[row]))
    behind = np.full(count, MOST_BEHIND)
    np.minimum.at(behind, row, late)
    behind = np.where(missing > 0, 1 << np.log2(np.maximum(behind, 1)).astype(np.int64), 1)
    lines, in_rows = (_missed_in(row, sector, bits, count) for bits in (LINE_BITS, ROW_BITS))
    rows = np.minimum(np.ceil(np.log2(np.maximum(in_rows, 1))).astype(np.int64), MOST_ROWS)
    return behind, lines, rows, _moves(row, sector >> ROW_BITS - SECTOR_BITS, count)


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
    before = previous(number * (int(warp.max(initial=0)) + 1) + warp)
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
