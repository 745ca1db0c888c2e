"""What an array's requests cost under a layout change.

A trace may have one row for requests that differ by a multiple of 128 bytes; they cost the same as recorded
but may not after a change. Such a row is counted at every place in the array where it may lie; the cost is
certain if it is the same everywhere, and otherwise a range. Rows of a trace made with `apart` have their
exact addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from memsim.analysis import Analysis
from memsim.arch.units import LINE
from memsim.model.choice import global_cost, shared_cost
from memsim.model.operations import operation
from memsim.suggest.maps import Map
from memsim.suggest.tiles import Tile

Counts = NDArray[np.int64]

FIRST_LOOK = 200_000  # requests that the first pass over all maps may count
FINALISTS = 24  # maps that are then counted in full


@dataclass(frozen=True, slots=True)
class Cost:
    """wavefronts: of all requests of the array, the lower limit if uncertain; most: the upper limit.

    sectors: of the global side of its `cp.async.cg`, which depends on the destination.
    """

    wavefronts: int
    most: int
    sectors: int

    @property
    def certain(self) -> bool:
        """Whether the number of wavefronts is exact."""
        return self.wavefronts == self.most


def count(analysis: Analysis, tile: Tile, changes: Sequence[Map]) -> dict[Map, Cost]:
    """The cost of each map. With many maps and many requests only the most promising maps are counted in
    full.
    """
    rows = tile.rows[np.argsort(-analysis.trace.count[tile.rows], kind="stable")]
    affordable = max(FIRST_LOOK // max(len(changes), 1), 1)
    if len(rows) > affordable:
        looked_at = _count(analysis, tile, changes, rows[:affordable])
        changes = sorted(changes, key=lambda change: looked_at[change].most)[:FINALISTS]
    return _count(analysis, tile, changes, rows)


def _count(analysis: Analysis, tile: Tile, changes: Sequence[Map], rows: Counts) -> dict[Map, Cost]:
    """The cost of each map for the given rows of the trace."""

    def moves_of(change: Map) -> int:
        """The number of places of a request that differ for a map; 1 if addresses are exact."""
        return 1 if analysis.trace.apart else min(change.period, -(-tile.size // LINE) * LINE) // LINE

    found: dict[Map, Cost] = {}
    for moves, group in groupby(sorted(changes, key=moves_of), key=moves_of):
        together = list(group)
        low, high = _wavefronts(analysis, tile, together, rows, moves)
        sectors = _sectors(analysis, tile, together)
        for change, least, most, moved in zip(together, low.tolist(), high.tolist(), sectors.tolist()):
            found[change] = Cost(least, most, moved)
    return found


def _wavefronts(
    analysis: Analysis, tile: Tile, changes: Sequence[Map], rows: Counts, moves: int
) -> tuple[Counts, Counts]:
    """The lower and upper limit of all rows' wavefronts, for each map."""
    trace = analysis.trace
    low, high = np.zeros((2, len(changes)), np.int64)
    kinds = np.array([[site.op, str(site.width)] for site in trace.sites])[trace.site[rows]]
    for op, width in np.unique(kinds, axis=0).tolist():
        some = rows[(kinds == (op, width)).all(axis=1)]
        if not operation("shared", op).is_of_lanes:
            continue
        at, of = _places(analysis, tile, some, int(width), moves)
        active, partner = trace.active[some][of], trace.partner[some][of]
        moved = np.stack([np.where(active, change.places(at), 0) for change in changes]) + tile.first
        shape = moved.shape
        cost = shared_cost(
            moved,
            int(width),
            op,
            np.broadcast_to(active, shape),
            np.broadcast_to(partner, shape),
            analysis.arch,
        ).wavefronts
        starts = np.flatnonzero(np.diff(of, prepend=-1))
        times = trace.count[some]
        low += np.minimum.reduceat(cost, starts, axis=1) @ times
        high += np.maximum.reduceat(cost, starts, axis=1) @ times
    return low, high


def _places(analysis: Analysis, tile: Tile, rows: Counts, width: int, moves: int) -> tuple[Counts, Counts]:
    """Lane offsets [m, 32] at every place in the array where the rows may lie, and the row of each [m]."""
    trace = analysis.trace
    active = trace.active[rows]
    offsets = np.where(active, trace.addresses[rows] - tile.first, 0)
    number = np.arange(len(rows))
    if moves == 1:
        return offsets, number
    lowest = np.where(active, offsets, tile.size).min(axis=1)
    highest = np.where(active, offsets, 0).max(axis=1) + width
    first = -(lowest // LINE)
    places = np.minimum((tile.size - highest) // LINE - first + 1, moves)
    of = np.repeat(number, places)
    step = np.arange(len(of)) - np.repeat(np.cumsum(places) - places, places) + first[of]
    return np.where(active[of], offsets[of] + step[:, None] * LINE, 0), of


def _sectors(analysis: Analysis, tile: Tile, changes: Sequence[Map]) -> Counts:
    """The sectors of copies to the array, for each map."""
    trace, rows = analysis.trace, tile.copies
    if len(rows) == 0:
        return np.zeros(len(changes), np.int64)
    found = []
    for change in changes:
        total = 0
        for number in np.unique(trace.site[rows]).tolist():
            some, site = rows[trace.site[rows] == number], trace.sites[number]
            to = trace.partner[some]
            partner = np.where(to >= 0, change.places(np.maximum(to - tile.first, 0)) + tile.first, -1)
            cost = global_cost(
                trace.addresses[some], site.width, site.op, trace.active[some], partner, analysis.arch
            )
            total += int(trace.count[some] @ cost.sectors)
        found.append(total)
    return np.array(found, np.int64)
