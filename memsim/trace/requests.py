"""Requests written out, lane by lane, and what tells them apart.

In: addresses and active lanes. Out: `SiteRequests`, and rows of numbers that are equal where requests are the
same but for where they begin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memsim.arch.units import LINE

#: Nothing in the model changes when all addresses of a request move by this many bytes.
PERIOD = LINE


#: No address.
NONE = -1


@dataclass(frozen=True, slots=True)
class SiteRequests:
    """Requests of one site: addresses and active lanes [m, 32], the block and the warp that made each [m].

    partner: of copies the addresses on the other side, -1 in lanes that have none [m, 32]; None for others.
    """

    addresses: np.ndarray
    active: np.ndarray
    partner: np.ndarray | None
    block: np.ndarray
    warp: np.ndarray

    def __len__(self) -> int:
        return len(self.addresses)

    def __getitem__(self, chosen: np.ndarray | slice) -> SiteRequests:
        """Some of them."""
        partner = None if self.partner is None else self.partner[chosen]
        return SiteRequests(
            self.addresses[chosen], self.active[chosen], partner, self.block[chosen], self.warp[chosen]
        )

    @property
    def partners(self) -> np.ndarray:
        """The other side's addresses, -1 in all lanes of what is no copy [m, 32]."""
        return np.broadcast_to(NONE, self.addresses.shape) if self.partner is None else self.partner

    def relative(self, periods: tuple[int, int]) -> np.ndarray:
        """Numbers that are equal where requests are the same but for a multiple of the period [m, 32 or 64].

        periods: bytes, of the site's own side and of the other one.
        """
        own = relative_to_lowest(self.addresses, self.active, periods[0])
        if self.partner is None:
            return own
        return np.hstack([own, relative_to_lowest(self.partner, self.partner >= 0, periods[1])])


def relative_to_lowest(addresses: np.ndarray, lanes: np.ndarray, period: int) -> np.ndarray:
    """Addresses less the period that the lowest of `lanes` is in, -1 in the others; both [m, 32]."""
    lowest = np.where(lanes, addresses, np.iinfo(np.int64).max).min(1, keepdims=True)
    return np.where(lanes, addresses - lowest // period * period, NONE)
