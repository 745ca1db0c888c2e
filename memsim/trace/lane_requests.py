"""Requests of few lanes, lane by lane: of warps that diverge, most requests are of one or two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memsim.arch.units import WARP
from memsim.trace.requests import SiteRequests


@dataclass(frozen=True, slots=True)
class LaneRequests:
    """Requests of one site. addresses, lanes: of all active lanes, 0 to 31, request by request [n]. counts:
    how many each request has, 1 or more; block, warp: of each [m].
    """

    addresses: np.ndarray
    lanes: np.ndarray
    counts: np.ndarray
    block: np.ndarray
    warp: np.ndarray

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, chosen: np.ndarray | slice) -> LaneRequests:
        """A subset."""
        counts = self.counts[chosen]
        index: np.ndarray | slice
        if isinstance(chosen, slice):  # of adjacent requests
            start = int(self.counts[: chosen.start].sum())
            index = slice(start, start + int(counts.sum()))
        else:
            starts = (np.cumsum(self.counts) - self.counts)[chosen]
            index = np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        return LaneRequests(
            self.addresses[index], self.lanes[index], counts, self.block[chosen], self.warp[chosen]
        )

    @property
    def span(self) -> int:
        """Bytes between the lowest and the highest address."""
        return int(self.addresses.max()) - int(self.addresses.min())

    def expanded(self) -> SiteRequests:
        """The same with a column for each lane."""
        place = np.repeat(np.arange(len(self)) * WARP, self.counts) + self.lanes
        addresses = np.full((len(self), WARP), self.addresses[0])
        active = np.zeros((len(self), WARP), np.bool_)
        addresses.reshape(-1)[place] = self.addresses
        active.reshape(-1)[place] = True
        return SiteRequests(addresses, active, None, self.block, self.warp)
