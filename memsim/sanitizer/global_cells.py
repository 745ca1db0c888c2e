"""Accesses of lanes, and the last ones to each cell of an array in global memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from memsim.access import Chunk, Site
from memsim.arch.units import WARP
from memsim.model.operations import operation
from memsim.order.global_order import BARRIERS, BLOCK, are_unordered
from memsim.state.address_spaces import Buffer
from memsim.state.parts import Mask
from memsim.state.predicates import to_bools
from memsim.state.registers import to_array
from memsim.state.sums import Int

#: Bits of who makes an access for the thread in its warp, and in its block, and for the barriers there, too.
LANE, THREAD, _IN_BLOCK = WARP - 1, (1 << BARRIERS) - 1, (1 << BLOCK) - 1


class LaneAccess:
    """Lanes of the running blocks access a site.

    find: gives them as columns [n]: row of the chunk, thread of the row, address. find_places: the addresses
    alone, which takes less time. Each is asked once, if anybody wants to know.
    """

    def __init__(
        self,
        site: Site,
        chunk: Chunk,
        find: Callable[[], tuple[np.ndarray, ...]],
        find_places: Callable[[], np.ndarray] | None = None,
    ) -> None:
        self.site, self.chunk, self._find, self._find_places = site, chunk, find, find_places

    @cached_property
    def lanes(self) -> tuple[np.ndarray, ...]:
        """(row, column, address) [n]."""
        return self._find()

    @cached_property
    def places(self) -> np.ndarray:
        """The addresses [n]."""
        return self.lanes[2] if self._find_places is None else self._find_places()

    def anew(self) -> LaneAccess:
        """The same, which holds none of its lanes."""
        return LaneAccess(self.site, self.chunk, self._find, self._find_places)

    @property
    def threads(self) -> np.ndarray:
        """Their numbers in their blocks [n]."""
        rows, columns, _ = self.lanes
        found: np.ndarray = self.chunk.first[rows, 0] + columns
        return found

    @property
    def verb(self) -> str:
        """What they do, as of an `Operation`."""
        return operation(self.site.space, self.site.access).verb


def places_of(address: Int, active: Mask, chunk: Chunk) -> np.ndarray:
    """The addresses of active lanes [n]."""
    lanes = to_bools(active)
    places = np.broadcast_to(to_array(address), (len(chunk.blocks), chunk.threads))
    found: np.ndarray = places.ravel() if lanes.all() else places[np.broadcast_to(lanes, places.shape)]
    return found


def lanes_of(address: Int, active: Mask, chunk: Chunk) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(row, column, address) of active lanes [n]."""
    rows, columns = np.nonzero(np.broadcast_to(to_bools(active), (len(chunk.blocks), chunk.threads)))
    array = to_array(address)
    places = array[rows if array.shape[0] > 1 else 0, columns if array.shape[1] > 1 else 0]
    return rows, columns, np.broadcast_to(places, rows.shape)


def parts_of(who: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The block of who makes an access, how many barriers that has passed, and the warp."""
    return (who >> BLOCK) - 1, (who & _IN_BLOCK) >> BARRIERS, (who & THREAD) // WARP


def are_apart(earlier: np.ndarray, who: np.ndarray) -> np.ndarray:
    """Where there was an access that no block barrier orders with this one; lanes of a warp are ordered."""
    found = are_unordered(earlier, who)
    found &= (earlier ^ who) & ~np.int64(LANE) != 0
    return found


def are_of_warp(earlier: np.ndarray, who: np.ndarray) -> np.ndarray:
    """Where there was an access by the same warp, and no block barrier since."""
    found: np.ndarray = (earlier ^ who) & ~np.int64(LANE) == 0
    return found


class GlobalPair(NamedTuple):
    """Two instructions that race on an array; of one block, or of several; together: in one execution; seen:
    by a flag, but no fence is behind that; unfenced: they are ordered, but by different proxies without a
    proxy fence; same_warp: by lanes of one warp that have diverged.
    """

    earlier: int
    later: int
    array: str
    same_block: bool
    together: bool
    seen: bool
    unfenced: bool = False
    same_warp: bool = False


class Cells:
    """The last accesses to the cells of an array: who, at which age, and by which instruction. made: how
    lanes of diverged warps made them, as numbers of `LaneOrder`; None: none did. is_used: there are any.
    """

    def __init__(self, count: int) -> None:
        self.who = np.zeros(count, np.int64)
        self.age, self.by = np.zeros((2, count), np.int32)
        self.made: np.ndarray | None = None
        self.is_used = False

    def put(
        self,
        cells: np.ndarray,
        who: np.ndarray,
        age: np.ndarray,
        by: np.ndarray | int,
        made: np.ndarray | None = None,
    ) -> None:
        """Accesses to cells [n]."""
        self.who[cells], self.age[cells], self.by[cells] = who, age, by
        self.is_used = True
        if made is not None and self.made is None:
            self.made = np.zeros(len(self.who), np.int64)
        if self.made is not None:
            self.made[cells] = 0 if made is None else made

    def ops(self, cells: np.ndarray) -> np.ndarray:
        """The instructions of the last accesses to cells [n]."""
        by = self.by[cells]
        found: np.ndarray = np.maximum(by, ~by)
        return found


class ArrayMarks(NamedTuple):
    """The last accesses to the cells of an array, of each kind; `by` of a strong read is the complement.
    strong_too: strong writes in front of `strong` that are not ordered with it. read_too: of reads the same.
    """

    written: Cells
    strong: Cells
    strong_too: Cells
    read: Cells
    read_too: Cells

    @property
    def of_writes(self) -> tuple[Cells, ...]:
        """Those that no other access may overtake."""
        return self.written, self.strong, self.strong_too


class Moment(NamedTuple):
    """When running blocks make an access: block barriers behind them [B, 1], ages [B], and how their warps
    run, as numbers of `LaneOrder`; None: whole.
    """

    barriers: np.ndarray
    ages: np.ndarray
    made: np.ndarray | None


class TouchedOnce:
    """The accesses to an array while one instruction makes all of them, and none to a place that it has
    accessed before: nothing is to be compared. kept: what they were, for when something is.
    """

    def __init__(self, buffer: Buffer) -> None:
        self.kept: list[tuple[LaneAccess, Moment]] = []
        self._buffer = buffer
        self._touched: np.ndarray = np.zeros(0, np.bool_)

    def add(self, made: LaneAccess, now: Moment) -> bool:
        """Whether an access is one of them; it is kept then."""
        width, start = made.site.width, self._buffer.start
        if self.kept and self.kept[0][0].site is not made.site:
            return False
        if not len(self._touched):
            self._touched = np.zeros((self._buffer.end - start) // width, np.bool_)
        places = (made.places - start) // width
        if not len(places):
            return True
        if places.min() < 0 or places.max() >= len(self._touched) or self._touched[places].any():
            return False
        before = np.count_nonzero(self._touched)
        self._touched[places] = True
        if np.count_nonzero(self._touched) - before < len(places):
            return False
        self.kept.append((made.anew(), now))
        return True


@dataclass(frozen=True, slots=True)
class CellLanes:
    """Lanes of an access as columns, once for each cell: their row, who they are, their age, the cell among
    those of its array, its number among all, and how their warps run, as a number of `LaneOrder`.
    """

    rows: np.ndarray
    who: np.ndarray
    ages: np.ndarray
    cells: np.ndarray
    numbers: np.ndarray
    made: np.ndarray | None = None

    def __getitem__(self, at: np.ndarray) -> CellLanes:
        made = None if self.made is None else self.made[at]
        return CellLanes(self.rows[at], self.who[at], self.ages[at], self.cells[at], self.numbers[at], made)

    @property
    def warps(self) -> np.ndarray:
        """In their blocks."""
        return (self.who & THREAD) // WARP
