"""Expanded requests, lane by lane, and keys that are equal for requests that are the same up to a shift."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memsim.arch.units import LINE
from memsim.state.by_mask import select

#: The model is invariant if all addresses of a request move by this many bytes.
PERIOD = LINE


#: No address.
NONE = -1


@dataclass(frozen=True, slots=True)
class SiteRequests:
    """Requests of one site: addresses and active lanes [m, 32], and the block and warp of each [m].

    partner: for copies the addresses on the other side, -1 in lanes without one [m, 32]; else None.
    """

    addresses: np.ndarray
    active: np.ndarray
    partner: np.ndarray | None
    block: np.ndarray
    warp: np.ndarray

    def __len__(self) -> int:
        return len(self.addresses)

    def __getitem__(self, chosen: np.ndarray | slice) -> SiteRequests:
        """A subset."""
        partner = None if self.partner is None else self.partner[chosen]
        return SiteRequests(
            self.addresses[chosen], self.active[chosen], partner, self.block[chosen], self.warp[chosen]
        )

    def expanded(self) -> SiteRequests:
        """Themselves; as `LaneRequests.expanded`."""
        return self

    @property
    def partners(self) -> np.ndarray:
        """The other side's addresses, -1 in all lanes if it is not a copy [m, 32]."""
        return np.broadcast_to(NONE, self.addresses.shape) if self.partner is None else self.partner

    def relative(self, periods: tuple[int, int]) -> np.ndarray:
        """Numbers that are equal for requests that are the same up to a multiple of the period [m, 32 or 64].

        periods: bytes, of the site's own side and of the other one.
        """
        own = relative_to_lowest(self.addresses, self.active, periods[0])
        if self.partner is None:
            return own
        return np.hstack([own, relative_to_lowest(self.partner, self.partner >= 0, periods[1])])


def relative_to_lowest(addresses: np.ndarray, lanes: np.ndarray, period: int) -> np.ndarray:
    """Addresses relative to the period that contains the lowest of `lanes`, -1 in other lanes;
    both [m, 32].
    """
    if lanes.all():
        lowest = addresses.min(1, keepdims=True)
        moved: np.ndarray = addresses - lowest // period * period
        return moved
    lowest = select(lanes, addresses, np.full((1, 1), np.iinfo(np.int64).max)).min(1, keepdims=True)
    return select(lanes, addresses - lowest // period * period, np.full((1, 1), NONE))
