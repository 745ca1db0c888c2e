"""What all blocks of a launch do, of which one multiprocessor is followed: the work of each block, and who
asks first for each part of memory.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from memsim.access import Chunk, Site, SiteAccess, Stretches
from memsim.arch.units import WARP
from memsim.errors import MemsimError
from memsim.state.parts import Mask, Part
from memsim.state.predicates import ScatteredLanes, to_bools, to_words
from memsim.state.registers import to_array
from memsim.trace.footprint import SECTOR_BITS
from memsim.trace.record import Recorder

#: DRAM delivers 64 bytes together (bytes from DRAM of loads that are apart, H200,
#: docs/validation/small_launches.json). Of the sectors that come so beside one that is asked for, the share
#: that L2 counts as found later. Measured: L2's hits of threads that walk along rows (`row_each` in
#: lab/time/launches.cu; H100, H200).
BESIDE_FOUND = 0.6
#: Requests that are looked at.
MOST_SURVEYED = 400_000
#: Bytes side by side, as an exponent of two, that one slice of L2 has, and slices. Measured: atomics of all
#: multiprocessors to 4 bytes to 8 KiB (H200, lab/time/first.cu), as if they were spread over so many slices.
SLICE_BITS, SLICES = 8, 96
#: Accesses that L2 executes.
ATOMICS = frozenset({"atomic", "reduction"})


class Patience:
    """How many stretches of instructions are still followed. An emulator's work goes by these: warps that do
    the same are one. else_says: the error, if there are more.
    """

    def __init__(self, stretches: float = math.inf, else_says: str = "") -> None:
        self.left, self.else_says = stretches, else_says

    def follow(self) -> None:
        """One more.

        Raises:
            MemsimError: there were as many as it was given.
        """
        self.left -= 1
        if self.left < 0:
            raise MemsimError(self.else_says)


class Progress:
    """How many instructions each warp of a chunk has executed. done: with all of the current stretch, int64
    [blocks, warps]. stop: behind the last instruction of that.
    """

    def __init__(self, patience: Patience) -> None:
        self.patience, self.stop = patience, 0
        self.done: np.ndarray = np.zeros((0, 0), np.int64)
        self.known: dict[int, np.ndarray] = {}

    def start_chunk(self, blocks: int, warps: int) -> None:
        """So many blocks begin."""
        self.done, self.known = np.zeros((blocks, warps), np.int64), {}

    def executed(self, start: int, stop: int, mask: Mask) -> np.ndarray:
        """The warps in a mask execute a stretch; those warps, bool [blocks, warps].

        Raises:
            MemsimError: it takes too long.
        """
        self.patience.follow()
        key = mask.uid if isinstance(mask, Part) else 0
        if key not in self.known:
            self.known[key] = np.broadcast_to(to_words(mask), self.done.shape) != 0
        self.done += (stop - start) * self.known[key]
        self.stop = stop
        return self.known[key]

    def before(self, instruction: int) -> np.ndarray:
        """What warps had executed before an instruction of the current stretch, int64 [blocks, warps]."""
        return self.done - (self.stop - instruction)


@dataclass(frozen=True, slots=True)
class FirstTouches:
    """Parts of global memory that a wave of blocks asks for, ascending [n], and how many instructions the
    warp had executed that asked for it first [n].
    """

    parts: np.ndarray
    first: np.ndarray

    def behind(self, address: np.ndarray, progress: np.ndarray) -> np.ndarray:
        """How many instructions later than another warp the warps ask for what is at addresses [n] that have
        executed so much [n]; 0 if they are the first.
        """
        if not len(self.parts):
            return np.zeros(len(address), np.int64)
        part = part_of(address >> SECTOR_BITS)
        place = np.minimum(np.searchsorted(self.parts, part), len(self.parts) - 1)
        later = np.maximum(progress - self.first[place], 0)
        return np.where(self.parts[place] == part, later, 0)


class LaunchSurvey(Recorder):
    """Counts what blocks execute, and keeps what those of the first wave ask global memory for.

    work: instructions of warps of each block, int64 [blocks]. is_whole: all requests of the wave were kept.
    turns: of atomics, by the slice of L2 that takes them.
    """

    def __init__(self, blocks: int, wave: int, patience: Patience) -> None:
        super().__init__()
        self.work = np.zeros(blocks, np.int64)
        self.wave, self.progress = wave, Progress(patience)
        self.kept: list[tuple[np.ndarray, np.ndarray]] = []
        self.surveyed = 0
        self.is_whole = True
        self.turns = np.zeros(SLICES, np.int64)

    def start_chunk(self, chunk: Chunk) -> None:
        """Rows are blocks."""
        super().start_chunk(chunk)
        self.progress.start_chunk(len(self.blocks), self.warps)

    def executed(self, start: int, stop: int, mask: Mask) -> None:
        """Some warps execute the instructions from number `start` up to `stop`."""
        if mask is not False:
            self.work[self.blocks] += (stop - start) * self.progress.executed(start, stop, mask).sum(1)

    def access(self, made: SiteAccess) -> Callable[[], bool] | None:
        """An access of some warps."""
        if made.site.space != "global":
            return lambda: True
        self.marks.access(made.site.access, made.address, made.active)
        if self.surveyed > MOST_SURVEYED or not (self.blocks < self.wave).any():
            self.is_whole &= self.surveyed <= MOST_SURVEYED
            return None
        shape = self.progress.done.shape
        whole = (shape[0], shape[1] * WARP)
        lanes = np.broadcast_to(to_bools(made.active), whole) & (self.blocks < self.wave)[:, None]
        address = np.broadcast_to(to_array(made.address), whole)[lanes]
        if made.site.access in ATOMICS:
            self.take_turns(np.flatnonzero(lanes) // WARP, address)
        done = self.progress.before(made.site.place)
        self.keep(address, np.broadcast_to(np.repeat(done, WARP, axis=1), whole)[lanes])
        return None

    def scattered(
        self, site: Site, address: np.ndarray, lanes: ScatteredLanes, warps: int, arrays: frozenset[str]
    ) -> None:
        """An access of a few lanes of each warp."""
        if site.space == "global":
            self.marks.sectors(site.access, address >> SECTOR_BITS)
        if site.space == "global" and self.surveyed <= MOST_SURVEYED:
            warp = np.repeat(lanes.warps, lanes.counts)
            if site.access in ATOMICS:
                self.take_turns(warp, address)
            self.keep(address, self.progress.before(site.place).reshape(-1)[warp])

    def stretches(self, site: Site, arrays: frozenset[str], made: Stretches) -> None:
        """Copies in bulk."""
        if site.space != "global":
            return
        self.marks.stretches(site.access, made.start, made.length)
        if self.surveyed > MOST_SURVEYED:
            self.is_whole = False
            return
        whose, sector = made.units(1 << SECTOR_BITS)
        mine = self.blocks[made.rows[whose]] < self.wave
        whose, sector = whose[mine], sector[mine]
        done = self.progress.before(site.place)
        self.keep(sector << SECTOR_BITS, done[made.rows[whose], made.warps[whose]])

    def keep(self, address: np.ndarray, progress: np.ndarray) -> None:
        """Keep each part once, with the least progress."""
        self.surveyed += len(address) // WARP + 1
        sector = address >> SECTOR_BITS
        is_new = np.append(True, (np.diff(sector) != 0) | (np.diff(progress) != 0))[: len(sector)]
        self.kept.append(_earliest(part_of(sector[is_new]), progress[is_new]))

    def take_turns(self, warp: np.ndarray, address: np.ndarray) -> None:
        """Count the turns of warps' atomics at addresses [n]."""
        _, sector, turns = turns_at_l2(warp, address)
        self.turns += np.bincount(slice_of(sector), turns, SLICES).astype(np.int64)

    @property
    def hottest(self) -> float:
        """The share of all turns of atomics that one slice of L2 takes, the one that takes most."""
        return float(self.turns.max() / max(self.turns.sum(), 1))

    def nothing(self, *what: Any) -> None:
        """Nothing is kept of other events."""

    issued: Callable[..., None] = nothing
    requests: Callable[..., None] = nothing
    unknown: Callable[..., None] = nothing

    def touches(self) -> FirstTouches:
        """What the wave asked for."""
        empty = np.zeros(0, np.int64), np.zeros(0, np.int64)
        return FirstTouches(*_earliest(*map(np.concatenate, zip(empty, *self.kept))))


def evenly(numbers: np.ndarray) -> np.ndarray:
    """In place of chance, from 0 to 1 for each number [n]: of numbers in a row every share is met evenly."""
    found: np.ndarray = numbers * 0.6180339887 % 1.0
    return found


def part_of(sector: np.ndarray) -> np.ndarray:
    """The sector whose request brings each sector to L2 [n]: of 64 bytes the first, or each sector its own.
    Which ones come together on a chip is not known: some, as good as by chance.
    """
    together = evenly(sector >> 1) < BESIDE_FOUND
    found: np.ndarray = sector - (sector & together)
    return found


def slice_of(sector: np.ndarray) -> np.ndarray:
    """A slice of L2 for each sector [n]. Which one it is on a chip is not known: one as good as by chance."""
    mixed = (sector >> SLICE_BITS - SECTOR_BITS).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ mixed >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)
    found: np.ndarray = (mixed >> np.uint64(32)).astype(np.int64) % SLICES
    return found


def turns_at_l2(request: np.ndarray, address: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(request, sector, turns) of each sector that requests ask L2 to change [k]. request, address: of each
    active lane [n]. A sector takes as many turns as lanes meet in one of its words.
    """
    word = address >> 2
    order = np.lexsort((word, request))
    request, word = request[order], word[order]
    starts = np.flatnonzero((np.diff(request, prepend=-1) != 0) | (np.diff(word, prepend=-1) != 0))
    lanes = np.diff(np.append(starts, len(word)))
    request, sector = request[starts], word[starts] >> SECTOR_BITS - 2
    first = np.flatnonzero((np.diff(request, prepend=-1) != 0) | (np.diff(sector, prepend=-1) != 0))
    turns = np.maximum.reduceat(lanes, first) if len(first) else lanes
    return request[first], sector[first], turns


def _earliest(parts: np.ndarray, progress: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each part [n] once, ascending, with the least of its progress [n]."""
    order = np.lexsort((progress, parts))
    once = np.diff(parts[order], prepend=-1) != 0
    return parts[order][once], progress[order][once]


def busiest_blocks(work: np.ndarray, multiprocessors: int, resident: int) -> np.ndarray:
    """Linear numbers of the blocks that the multiprocessor with most work executes, ascending.

    work: of each block. Blocks are handed out in their order, each to a place that is free first.
    """
    free = [(0, place) for place in range(multiprocessors * resident)]
    mine: dict[int, list[int]] = {}
    for block, taken in enumerate(work.tolist()):
        time, place = heapq.heappop(free)
        heapq.heappush(free, (time + taken, place))
        mine.setdefault(place % multiprocessors, []).append(block)
    return np.array(max(mine.values(), key=lambda blocks: int(work[blocks].sum())), np.int64)
