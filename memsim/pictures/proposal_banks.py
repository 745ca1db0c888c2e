"""A shared array before and after a proposal: its worst request in the banks, and the banks of its words."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from memsim.analysis import Analysis
from memsim.arch.units import BANKS, LINE, WORD
from memsim.model.service import bank_load
from memsim.pictures.array_layouts import WordLayout, layouts
from memsim.pictures.worst_request import SharedRequest, shared_request, take_apart, worst_shared_request
from memsim.suggest.proposals import Advice, Proposal

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


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """An array under a proposal; None: as it is.

    request: the worst request of the array as it is, at its new addresses. layout: the words in source order,
    with their new banks.
    """

    proposal: Proposal | None
    request: SharedRequest
    layout: WordLayout


def looks(analysis: Analysis, entry: Advice) -> tuple[Look, ...]:
    """The array as it is, then with each proposal."""
    counted = [number for number in entry.tile.sites if analysis.sites[number].operation.is_of_lanes]
    site = max(counted, key=lambda number: analysis.sites[number].badness)
    worst = worst_shared_request(analysis, site)
    layout = next(each for each in layouts(analysis) if each.first == entry.tile.first)
    found = [Look(None, shared_request(analysis, site, worst), layout)]
    for proposal in entry.proposals:
        request = shared_request(proposal.after, site, worst)
        origin = replace(request.origin, array=None)  # its elements are not where the declaration says
        found.append(Look(proposal, replace(request, origin=origin), _laid_out(layout, proposal)))
    return tuple(found)


def _laid_out(layout: WordLayout, proposal: Proposal) -> WordLayout:
    """The same words with the banks that a proposal gives them."""
    offsets = layout.word * WORD - layout.first
    places = proposal.change.places(np.maximum(offsets, 0)) + layout.first
    return replace(layout, bank=np.where(layout.bank >= 0, places // WORD % BANKS, -1))
