"""Merging neighbouring global accesses of a thread into one wider access, counted by joining recorded
requests.

A `Wider` is a row of global loads or stores whose requests can all be merged and then move fewer sectors. It
makes no edit. Shared accesses are left to the compiler, which merges what it can.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from memsim.analysis import Analysis
from memsim.model.choice import global_cost

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
    if (
        site.space != "global"
        or site.op not in JOINED
        or not site.sectors
        or site.sectors == site.ideal_sectors
    ):
        return None
    for times in (8, 4, 2):
        width = site.width * times
        firsts = _firsts(analysis, number, times) if width <= WIDEST else None
        if firsts is not None:
            sectors = _sectors(analysis, firsts, width, site.op)
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


def _sectors(analysis: Analysis, rows: NDArray[np.int64], width: int, op: str) -> int:
    trace = analysis.trace
    cost = global_cost(
        trace.addresses[rows], width, op, trace.active[rows], trace.partner[rows], analysis.arch
    )
    return int(trace.count[rows] @ cost.sectors)
