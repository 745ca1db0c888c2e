"""How each access uses the 32 banks of shared memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memsim.analysis import Analysis
from memsim.model.service import bank_load
from memsim.pictures.worst_request import worst_shared_request


@dataclass(frozen=True, slots=True, eq=False)
class BankUse:
    """The banks as one access site uses them; arrays over the 32 banks.

    words: words that the bank serves for a request, on average over the requests that use it; 0 if none does.
    busy: the share of the requests that use the bank, 0 to 1. `words * busy` is the average over all.
    ways: the most words that meet in the bank in one group of lanes, the worst of all requests. worst: the
    same of one request, the worst of the row, which `explain` takes apart.

    An average over all requests would hide conflicts: a warp that crowds banks 0-15 and the next that
    crowds banks 16-31 look clean together. The worst of each bank alone would hide that one bank works and
    31 are idle: each warp that reads a column crowds another one.
    """

    words: NDArray[np.float64]
    busy: NDArray[np.float64]
    ways: NDArray[np.int64]
    worst: NDArray[np.int64]


def bank_use(analysis: Analysis) -> dict[int, BankUse]:
    """Index in `analysis.sites` -> use of the banks, for each shared row that takes wavefronts."""
    trace = analysis.trace
    found = {}
    for number, (site, rows) in enumerate(zip(analysis.sites, analysis.requests_of_sites, strict=True)):
        if not site.wavefronts or not site.operation.is_of_lanes:
            continue
        load = bank_load(trace.addresses[rows], site.width, site.op, trace.active[rows], analysis.arch)
        times = trace.count[rows]
        users = times @ (load.words > 0)
        found[number] = BankUse(
            words=times @ load.words / np.maximum(users, 1),
            busy=users / site.requests,
            ways=load.ways.max(axis=0),
            worst=load.ways[rows.tolist().index(worst_shared_request(analysis, number))],
        )
    return found
