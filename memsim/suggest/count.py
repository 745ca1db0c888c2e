"""What an array's requests cost under a layout change, and the least that they can cost under any.

A trace may have one row for requests that differ by a multiple of 128 bytes; they cost the same as recorded
but may not after a change. Such a row is counted at every place in the array where it may lie; the cost is
certain if it is the same everywhere, and otherwise a range. Rows of a trace made with `apart` have their
exact addresses.

Conflicts between lanes that can share a wavefront can be avoided by some layout, with one exception: if an
array is also accessed 8 or 16 bytes at a time, a word keeps its place in these, so that words of the same
place can use only every second or fourth bank. Lanes that cannot share a word (atomics) are serialized in any
layout, and lanes of a copy by the banks that they read from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from memsim.analysis import Analysis
from memsim.arch.units import LINE, WORD
from memsim.model.choice import global_cost, shared_cost
from memsim.model.operations import operation
from memsim.model.shared import shared_rule
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
    """The cost of each map. Of many, for many requests, only the most promising are counted in full."""
    rows = tile.rows[np.argsort(-analysis.trace.count[tile.rows], kind="stable")]
    affordable = max(FIRST_LOOK // max(len(changes), 1), 1)
    if len(rows) > affordable:
        behind = np.cumsum(analysis.trace.count[rows])
        drawn = np.linspace(0, behind[-1], affordable, endpoint=False)
        some = rows[np.unique(np.searchsorted(behind, drawn, side="right"))]
        looked_at = _count(analysis, tile, changes, some)
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
        active, partner = (np.broadcast_to(one, moved.shape) for one in (active, partner))
        cost = shared_cost(moved, int(width), op, active, partner, analysis.arch).wavefronts
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
    found = np.zeros(len(changes), np.int64)
    for number in np.unique(trace.site[rows]).tolist():
        some, site = rows[trace.site[rows] == number], trace.sites[number]
        to = trace.partner[some]
        for place, change in enumerate(changes):
            partner = np.where(to >= 0, change.places(np.maximum(to - tile.first, 0)) + tile.first, -1)
            found[place] += sectors_of(analysis, some, site.width, site.op, partner=partner)
    return found


def sectors_of(
    analysis: Analysis,
    rows: Counts,
    width: int,
    op: str,
    *,
    addresses: Counts | None = None,
    partner: Counts | None = None,
) -> int:
    """The sectors of rows of the trace, as global accesses of so many bytes; at other places perhaps."""
    trace = analysis.trace
    at = trace.addresses[rows] if addresses is None else addresses
    to = trace.partner[rows] if partner is None else partner
    return int(trace.count[rows] @ global_cost(at, width, op, trace.active[rows], to, analysis.arch).sectors)


def least_wavefronts(analysis: Analysis, tile: Tile) -> int:
    """One wavefront for each group of lanes, and for each lane that no layout can serve with the others."""
    trace, total = analysis.trace, 0
    for number in tile.sites:
        site, rows = analysis.sites[number], analysis.requests_of_sites[number]
        active, times = trace.active[rows], trace.count[rows]
        op = operation(site.space, site.op)
        if op.shares:
            free = (site.wavefronts or 0) - site.wavefronts_of_conflicts
            if site.width <= WORD < tile.width:
                offsets = trace.addresses[rows] - tile.first
                free = int(times @ _by_place(offsets, active, tile.width))
            total += free
            continue
        if op.is_copy:
            lanes = np.arange(active.shape[1], dtype=np.int64) * site.width
            at: Counts = np.broadcast_to(lanes, active.shape)
        else:
            rule = shared_rule(site.op, site.width, analysis.arch)
            at = _a_bank_each(trace.addresses[rows], active, rule.lanes) * rule.unit
        cost = shared_cost(at, site.width, site.op, active, trace.partner[rows], analysis.arch)
        total += int(times @ cost.wavefronts)
    return total


def _by_place(offsets: Counts, active: NDArray[np.bool_], chunk: int) -> Counts:
    """Wavefronts of each request [m] if its words are spread over all banks that their place allows."""
    words = np.sort(np.where(active, offsets // WORD, -1), axis=1)
    new = np.diff(words, axis=1, prepend=-1) != 0
    places = chunk // WORD
    most = np.zeros(len(words), np.int64)
    for place in range(places):
        distinct = np.count_nonzero(new & (words % places == place) & (words >= 0), axis=1)
        most = np.maximum(most, -(-distinct // (LINE // chunk)))
    return most


def _a_bank_each(addresses: Counts, active: NDArray[np.bool_], lanes: int) -> Counts:
    """For each lane the first of its group of `lanes` with the same address [m, 32]."""
    groups = np.where(active, addresses, -1).reshape(-1, lanes)
    same = groups[:, :, None] == groups[:, None, :]
    first: Counts = same.argmax(axis=2).reshape(addresses.shape)
    return first
