"""A shared array as it is and under each proposal: the worst request in its banks, and the banks of its
words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from memsim.analysis import Analysis
from memsim.arch.units import BANKS, WORD
from memsim.suggest.proposals import Advice, Proposal
from memsim.views.explain.data import shared_request, worst_shared_request
from memsim.views.explain.lane_by_lane import SharedRequest
from memsim.views.layout.data import WordLayout, layouts


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
