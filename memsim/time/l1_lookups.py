"""Requests to global memory in the order in which a multiprocessor's warps make them, and which of their
sectors L1 has.

Blocks that are resident at once are taken to run side by side, and one wave of them after the other. Atomics
leave no line in L1 (H100, H200, lab/time).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from memsim.arch.units import LINE, WARP
from memsim.time.block_streams import GlobalRequests
from memsim.time.launch_survey import evenly
from memsim.trace.footprint import SECTOR_BITS

LINE_BITS = LINE.bit_length() - 1
#: Lines whose tags are looked up in a cycle.
TAGS_A_CYCLE = 4
#: Shares of the cache's lines that were touched since a line was: below the first it is still there, beyond
#: the second it is not (measured: sets are chosen by a hash, and evict early).
SAFE, GONE = 0.75, 1.35
#: The share of the cache that is brought in, in the mean, until a line is gone that was loaded for the last
#: time (`LDL.LU`). Chosen: hit rates of three kernels that spill ?
LAST_USE = 0.37
#: Addresses of local memory, behind all others, and those of a warp.
LOCAL, LOCAL_OF_WARP = 1 << 56, 1 << 25
#: Operations that L1 keeps sectors of.
CACHED = frozenset({"load", "cp_async", "store"})
#: Operations that ask for no data.
WRITE_ONLY = frozenset({"store", "reduction"})


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


class OrderedRequests:
    """Requests in the order in which L1 takes them, and what their instructions do.

    width: bytes of a lane [m]. is_local, is_last: as of `AccessKind` [m]. stores: ask for no data; caches: L1
    keeps their sectors; loads: it finds them there [m]. sectors: of the lanes, ascending, -1 of those that
    are not active [m, 32]. is_first, is_line: the first lane that asks for its sector, and for its line
    [m, 32]. asked, lines: sectors, and lines that are looked up [m].
    """

    def __init__(self, made: GlobalRequests, kinds: Mapping[int, AccessKind], warps_of_wave: int) -> None:
        # The last warp is the first to store; who loads first makes no difference but in time.
        write_only = [op for op, kind in kinds.items() if kind.op in WRITE_ONLY]
        turn = np.where(np.isin(made.op, write_only), -made.warp, made.warp)
        self.made = made = made[np.lexsort((turn, made.event, made.warp // max(warps_of_wave, 1)))]
        self.kinds = kinds
        self.width = np.array([kinds[op].width for op in made.op.tolist()], np.int64)
        self.is_local = self.those(lambda kind: kind.is_local)
        self.is_last = self.those(lambda kind: kind.is_last)
        self.stores, self.caches = np.isin(made.op, write_only), self.those(lambda kind: kind.is_cached)
        self.loads = self.caches & ~self.stores
        made.addresses[self.is_local] = in_local_memory(made[self.is_local], kinds, warps_of_wave)
        self.sectors = np.sort(np.where(made.active, made.addresses >> SECTOR_BITS, -1), axis=1)
        self.is_first = (np.diff(self.sectors, axis=1, prepend=-2) != 0) & (self.sectors >= 0)
        line = self.sectors >> LINE_BITS - SECTOR_BITS
        self.is_line = (np.diff(line, axis=1, prepend=-2) != 0) & self.is_first
        self.asked, self.lines = self.is_first.sum(1), self.is_line.sum(1)

    def __len__(self) -> int:
        return len(self.made)

    def those(self, is_meant: Callable[[AccessKind], bool]) -> np.ndarray:
        """Which requests are of such instructions [m]."""
        return np.isin(self.made.op, [op for op, kind in self.kinds.items() if is_meant(kind)])


class LookUps:
    """The sectors that requests look up in L1, one after the other.

    row, column: the request, and its lane [n]. hit, stays, before, source: as `look_up` finds them [n].
    at_once: its request takes the tag stage a cycle at most [n].
    """

    def __init__(self, requests: OrderedRequests, size: int) -> None:
        self.row, self.column = np.nonzero(requests.is_first & requests.caches[:, None])
        sector = requests.sectors[self.row, self.column]
        found = look_up(sector, size, requests.is_last[self.row])
        self.hit, self.stays, self.before, self.source = found
        self.at_once = requests.lines[self.row] <= TAGS_A_CYCLE


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


def look_up(
    sector: np.ndarray, size: int, is_last: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(whether L1 has each sector [n], whether it has its line [n], the place of the look-up of the sector
    before, and of the one that brought it there, each -1 if there is none [n]).

    How many lines came between is estimated from how long ago all lines were used last (StatStack, ISPASS
    2010); sectors of look-ups in order [n], and whether it is the last use of each.
    """
    count = len(sector)
    line = sector >> 2
    before_sector, before_line = previous(sector), previous(line)
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


def previous(values: np.ndarray) -> np.ndarray:
    """The place of the last equal value before each [n], -1 if there is none."""
    order = np.argsort(values, kind="stable")
    found = np.full(len(values), -1)
    same = values[order[1:]] == values[order[:-1]]
    found[order[1:][same]] = order[:-1][same]
    return found
