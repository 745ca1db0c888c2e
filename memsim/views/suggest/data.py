"""Data of a picture of a proposal: the array's worst request in its banks, and the layout, before
and after.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memsim.arch.units import BANKS, LINE, WORD
from memsim.model.service import bank_load
from memsim.suggest.proposals import Proposal
from memsim.views.explain.data import take_apart
from memsim.views.explain.lane_by_lane import SharedRequest

MOST_ROWS = MOST_COLUMNS = 8

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class BeforeAndAfter:
    """The worst request of an array before and after a change.

    request: as it is. words: words that each of the 32 banks serves for the request; two rows, before and
    after. rows, columns: the array rows that the request touches, and the pieces of `unit` bytes in them, the
    first of them and at least a few. banks: the first bank of each piece, int64 [2, rows, columns]. asked:
    whether the request accesses the piece, bool [rows, columns].
    """

    request: SharedRequest
    words: Numbers
    unit: int
    rows: Numbers
    columns: Numbers
    banks: Numbers
    asked: NDArray[np.bool_]


def picture(proposal: Proposal) -> BeforeAndAfter:
    """The picture of a proposal."""
    before, tile, change = proposal.before, proposal.tile, proposal.change
    worst = max(tile.sites, key=lambda number: before.sites[number].badness)
    request = take_apart(before, worst)
    assert isinstance(request, SharedRequest)
    active, width = request.active, request.origin.row.width
    offsets = np.where(active, request.addresses - tile.first, 0)
    at = np.stack([offsets, change.places(offsets)]) + tile.first
    load = bank_load(at, width, request.origin.row.op, np.stack([active, active]), before.arch)

    row, unit = _row(proposal), max(width, WORD)
    touched = offsets[active]
    rows = _some(np.unique(touched // row), tile.size // row, MOST_ROWS)
    columns = _some(np.unique(touched % row // unit), row // unit, MOST_COLUMNS)
    pieces = rows[:, None] * row + columns * unit
    places = np.stack([pieces, change.places(pieces)]) + tile.first
    return BeforeAndAfter(
        request=request,
        words=np.asarray(load.words, np.int64),
        unit=unit,
        rows=rows,
        columns=columns,
        banks=places // WORD % BANKS,
        asked=np.isin(pieces, touched // unit * unit),
    )


def _row(proposal: Proposal) -> int:
    """Bytes of a row to draw: the declared one, else the change's row, at least a line."""
    shape = proposal.tile.shape
    if shape is not None and len(shape.extents) > 1:
        return shape.extents[-1] * shape.element
    return max(proposal.change.every, LINE)


def _some(touched: Numbers, count: int, most: int) -> Numbers:
    """The first of what is touched, with its neighbours if that is little."""
    first = touched[:most]
    behind = np.setdiff1d(np.arange(first[0], min(first[0] + most, count)), first)
    return np.sort(np.concatenate([first, behind[: max(most // 2 - len(first), 0)]]))
