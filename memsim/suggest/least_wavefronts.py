"""A lower bound: the fewest wavefronts that any layout of an array can reach with the recorded requests.

Conflicts between lanes that can share a wavefront can be avoided by some layout, with one exception: if an
array is also accessed 8 or 16 bytes at a time, a word keeps its place in these, so that words of the same
place can use only every second or fourth bank. Lanes that cannot share a word (atomics) are serialized in any
layout, and lanes of a copy by the banks that they read from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memsim.analysis import Analysis
from memsim.arch.units import LINE, WORD
from memsim.model.choice import shared_cost
from memsim.model.operations import operation
from memsim.model.shared import shared_rule
from memsim.suggest.tiles import Tile

Numbers = NDArray[np.int64]


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
            at: Numbers = np.broadcast_to(lanes, active.shape)
        else:
            rule = shared_rule(site.op, site.width, analysis.arch)
            at = _a_bank_each(trace.addresses[rows], active, rule.lanes) * rule.unit
        cost = shared_cost(at, site.width, site.op, active, trace.partner[rows], analysis.arch)
        total += int(times @ cost.wavefronts)
    return total


def _by_place(offsets: Numbers, active: NDArray[np.bool_], chunk: int) -> Numbers:
    """Wavefronts of each request [m] if its words are spread over all banks that their place allows."""
    words = np.where(active, offsets // WORD, -1)
    words = np.sort(words, axis=1)
    new = np.diff(words, axis=1, prepend=-1) != 0
    places = chunk // WORD
    most = np.zeros(len(words), np.int64)
    for place in range(places):
        distinct = np.count_nonzero(new & (words % places == place) & (words >= 0), axis=1)
        most = np.maximum(most, -(-distinct // (LINE // chunk)))
    return most


def _a_bank_each(addresses: Numbers, active: NDArray[np.bool_], lanes: int) -> Numbers:
    """For each lane the first of its group of `lanes` with the same address [m, 32]."""
    groups = np.where(active, addresses, -1).reshape(-1, lanes)
    same = groups[:, :, None] == groups[:, None, :]
    first: Numbers = same.argmax(axis=2).reshape(addresses.shape)
    return first
