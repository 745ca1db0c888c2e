"""A shared array as it is and under each change that helps: a request in its banks, and its words' banks.

In: an `Analysis` and an `Advice`. Out: `Look`s, which a page can switch between. Left out: drawing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from memsim.analysis import Analysis
from memsim.suggest.proposals import Advice, Proposal
from memsim.views.explain.data import SharedRequest, shared_request, worst_shared_request
from memsim.views.layout.data import BANKS, WORD, WordLayout, layouts


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """An array with a change, or as it is. proposal: the change; None: as it is.

    request: the request that has most conflicts as the array is, where its words now lie. layout: the words
    as the source has them, with the banks in which they now lie.
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
        origin = replace(request.origin, array=None)  # its elements lie elsewhere than they are declared
        found.append(Look(proposal, replace(request, origin=origin), _laid_out(layout, proposal)))
    return tuple(found)


def _laid_out(layout: WordLayout, proposal: Proposal) -> WordLayout:
    """The same words, with the banks in which a proposal lays them."""
    offsets = layout.word * WORD - layout.first
    places = proposal.change.places(np.maximum(offsets, 0)) + layout.first
    return replace(layout, bank=np.where(layout.bank >= 0, places // WORD % BANKS, -1))
