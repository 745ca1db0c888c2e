"""Executions of an access by many blocks: which are equal, their requests, and how many warps made them.

Addresses are sums of a block's part and a thread's part. Keys are equal if two executions make the same
requests; when requests are expanded, one block represents all whose part is equal modulo the period.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import numpy as np

from memsim.access import NONE, AccessSide, SiteRequests
from memsim.arch.units import WARP
from memsim.state.parts import Mask, Part, warp_words
from memsim.state.predicates import to_bools
from memsim.state.registers import Sum, to_array, wrap_int

#: That of the site, and for a copy the other one.
Sides = list[AccessSide]


def identity(address: int | Sum, active: Mask, period: int) -> tuple[int, ...]:
    """A key that is equal for executions in a loop with the same requests, up to a multiple of the period."""
    lanes = active.uid if isinstance(active, Part) else -int(active)  # a uid is positive
    if not isinstance(address, Sum):
        return address % period, 0, 0, 0, lanes
    u, v, f = address.u, address.v, address.f
    return address.s % period, u.uid if u else 0, v.uid if v else 0, f.uid if f else 0, lanes


def content(address: int | Sum, active: Mask, period: int) -> tuple[Hashable, ...] | None:
    """As `identity`, by content, for values that loops recompute. None: not useful here."""
    if not isinstance(address, Sum) or address.v is None or address.f is not None:
        return None
    if isinstance(active, Part) and active.shape[0] != 1:
        return None
    blocks = address.u.uid if address.u else 0
    lanes = active.digest if isinstance(active, Part) else active
    return address.s % period, blocks, address.v.digest, lanes


def written_out(
    sides: Sides, periods: tuple[int, int], blocks: np.ndarray, warps: int, first_warps: np.ndarray
) -> tuple[SiteRequests, np.ndarray]:
    """(the requests of an execution by blocks of so many warps, how many blocks each represents)."""
    chosen, weights = block_classes(sides, periods, len(blocks))
    lanes = _rows(to_bools(sides[0][1]), chosen, warps)
    used = warp_words(lanes)[:, 0] != 0
    some = None if used.all() else np.flatnonzero(used)
    if some is not None:
        lanes = lanes[some]
    addresses = _chosen(_addresses(sides[0][0], chosen, warps), some)
    partner = None
    if len(sides) > 1:
        theirs = _chosen(_rows(to_bools(sides[1][1]), chosen, warps), some)
        partner = np.where(theirs, _chosen(_addresses(sides[1][0], chosen, warps), some), NONE)
    block = _chosen(np.repeat(blocks[chosen], warps), some)
    warp = _chosen((first_warps[chosen][:, None] + np.arange(warps)).reshape(-1), some)
    return SiteRequests(addresses, lanes, partner, block, warp), _chosen(np.repeat(weights, warps), some)


def _rows(array: np.ndarray, chosen: np.ndarray, warps: int) -> np.ndarray:
    """The selected blocks' rows as (requests, 32)."""
    rows = array[chosen] if len(chosen) < array.shape[0] else array
    return np.broadcast_to(rows, (len(chosen), warps * WARP)).reshape(-1, WARP)


def _addresses(address: int | Sum, chosen: np.ndarray, warps: int) -> np.ndarray:
    """The same of an address, of which only the chosen blocks' is written out."""
    if isinstance(address, Sum) and address.u is not None and len(chosen) < address.u.shape[0]:
        found = address.u.array[chosen] + wrap_int(address.s, 64)
        return _rows(found if address.v is None else found + address.v.array, chosen, warps)
    return _rows(to_array(address), chosen, warps)


def _chosen(rows: np.ndarray, some: np.ndarray | None) -> np.ndarray:
    return rows if some is None else rows[some]


def block_classes(sides: Sides, periods: tuple[int, int], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Of `count` blocks the representatives (by index), and how many blocks each represents."""
    inside = np.arange(count)
    residues = []
    own = sides[0][1]
    for (address, active), period in zip(sides, periods):
        rows = active.array if isinstance(active, Part) else None
        differs = isinstance(address, Sum) and address.f is not None
        if differs or (rows is not None and rows.shape[0] > 1 and rows.shape[1] > 1):
            return np.arange(count), np.ones(count, np.int64)
        if rows is not None and rows.shape[0] > 1 and active is not own:
            residues.append(rows[:, 0].astype(np.int64))
        if isinstance(address, Sum) and address.u is not None:
            rest = address.u.array[:, 0] % period  # the rest of the address is every block's
            residues.append(rest.astype(np.min_scalar_type(period)))  # small numbers are sorted fast
    if isinstance(own, Part) and own.shape[0] > 1:
        inside = inside[own.array[:, 0]]
    if not residues:
        return inside[:1], np.array([len(inside)], np.int64)
    if len(residues) == 1:
        _, first, counts = np.unique(residues[0][inside], return_index=True, return_counts=True)
    else:
        classes = np.stack(residues, axis=1)[inside]
        _, first, counts = np.unique(classes, axis=0, return_index=True, return_counts=True)
    order = np.argsort(first)  # keeps the order of blocks
    return inside[first[order]], counts[order]


#: Masks whose numbers of warps are cached.
MOST_MASKS = 1 << 16


class WarpCounts:
    """Numbers of warps of the running blocks, cached by mask."""

    def __init__(self) -> None:
        self.start_chunk(0, 1)

    def start_chunk(self, blocks: int, warps: int) -> None:
        """Other blocks run, of so many warps each."""
        self.blocks = blocks
        self.warps = warps
        self.counts: dict[int, int] = {}
        self.same: dict[int, bool] = {}

    def of(self, mask: Mask) -> int:
        """The number of warps with a thread in the mask."""
        if mask is True:
            return self.blocks * self.warps
        if mask is False:
            return 0
        if mask.uid not in self.counts:
            if len(self.counts) > MOST_MASKS:
                self.counts = {}
            words = np.broadcast_to(mask.words, (mask.shape[0], self.warps))
            self.counts[mask.uid] = int(np.count_nonzero(words)) * (self.blocks if len(words) == 1 else 1)
        return self.counts[mask.uid]

    def is_same_in_all(self, mask: Mask) -> bool:
        """Whether all blocks of the chunk have equally many warps with a thread in the mask."""
        if isinstance(mask, bool) or mask.shape[0] == 1:
            return True
        if mask.uid not in self.same:
            if len(self.same) > MOST_MASKS:
                return False
            each = np.count_nonzero(np.broadcast_to(mask.words, (mask.shape[0], self.warps)), axis=1)
            self.same[mask.uid] = bool((each == each[0]).all())
        return self.same[mask.uid]


class Executions:
    """How often warps executed each instruction, and whether all blocks executed the same.

    `start_chunk` comes before the first.
    """

    def __init__(self) -> None:
        self.ran: Counter[tuple[int, int]] = Counter()
        self.alike = True
        self._chunk: Counter[tuple[int, int]] = Counter()
        self._of_a_block: dict[tuple[int, int], int] | None = None
        self._blocks = 0

    def start_chunk(self, blocks: int) -> None:
        """So many blocks run next."""
        self._compare()
        self._blocks = blocks

    def add(self, start: int, stop: int, warps: int, same_in_all: bool) -> None:
        """`warps` of all blocks execute the instructions from `start` up to `stop`."""
        self.ran[start, stop] += warps
        if self.alike:
            self.alike = same_in_all or not warps
            self._chunk[start, stop] += warps

    def add_others(self, others: Executions) -> None:
        """Add those of other blocks, counted apart."""
        self.alike = self.blocks_alike and others.blocks_alike
        self.ran.update(others.ran)
        if others._of_a_block is not None:
            self.alike &= self._of_a_block in (None, others._of_a_block)
            self._of_a_block = others._of_a_block

    def of(self, instructions: int) -> np.ndarray:
        """The number of warps that executed each instruction, int64 [instructions]."""
        found = np.zeros(instructions, np.int64)
        for (start, stop), warps in self.ran.items():
            found[start:stop] += warps
        return found

    @property
    def blocks_alike(self) -> bool:
        """Whether every block is known to have executed each instruction equally often."""
        self._compare()
        return self.alike

    def _compare(self) -> None:
        """Compare the blocks of the chunk that ends with those before."""
        if not self._chunk or not self.alike:
            return
        each = {at: warps // self._blocks for at, warps in self._chunk.items() if warps}
        self.alike = self._of_a_block in (None, each)
        self._of_a_block, self._chunk = each, Counter()
