"""What distinguishes the requests of a folded site: what they cost."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from memsim.access import Site
from memsim.trace.lane_requests import LaneRequests
from memsim.trace.rows import Requests, Tell

#: Bytes between requests that are costed together, lane by lane.
SPAN = 1 << 40


class Alike(Protocol):
    """Equivalence of requests: numbers [n, k] that are equal for requests that cost the same."""

    def of_warps(
        self, space: str, op: str, width: int, addresses: np.ndarray, active: np.ndarray, partner: np.ndarray
    ) -> np.ndarray:
        """Of requests as the columns of a trace, [n, 32]."""

    def of_lanes(self, op: str, width: int, addresses: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Of loads and stores of global memory as `LaneRequests`, less than 2**40 bytes apart."""


def kinds_of(site: Site, alike: Alike) -> Tell:
    """What distinguishes the requests of this site."""

    def tell(requests: Requests) -> np.ndarray:
        if isinstance(requests, LaneRequests) and site.space == "global" and requests.span < SPAN:
            return alike.of_lanes(site.access, site.width, requests.addresses, requests.counts)
        made = requests.expanded()
        return alike.of_warps(site.space, site.access, site.width, made.addresses, made.active, made.partners)

    return tell
