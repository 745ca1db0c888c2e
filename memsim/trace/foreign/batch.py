"""A batch of one instruction's requests, expanded to arrays at once, which is many times faster than one by
one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np

from memsim.access import SiteRequests
from memsim.arch.units import WARP

LANES = np.arange(WARP)


class Batch:
    """Requests in order, with the warps that made them.

    A number that is too large for its column raises `OverflowError` when it is added.
    """

    def __init__(self) -> None:
        self.masks = array("I")
        self.blocks = array("q")
        self.warps = array("i")
        self.in_steps = array("q")  # requests given by a stride
        self.firsts = array("q")
        self.strides = array("q")
        self.in_full = array("q")  # requests with all addresses
        self.addresses = array("q")

    def __len__(self) -> int:
        return len(self.masks)

    def add_steps(self, mask: int, first: int, stride: int) -> None:
        """The active lanes' addresses are `stride` bytes apart."""
        self.in_steps.append(len(self.masks))
        self.masks.append(mask)
        self.firsts.append(first)
        self.strides.append(stride)

    def add_full(self, mask: int, addresses: Iterable[int]) -> None:
        """One address for each active lane.

        Raises:
            ValueError: the numbers of addresses and active lanes differ.
        """
        before = len(self.addresses)
        self.addresses.extend(addresses)
        if len(self.addresses) - before != mask.bit_count():
            del self.addresses[before:]
            raise ValueError("the numbers of addresses and active lanes differ")
        self.in_full.append(len(self.masks))
        self.masks.append(mask)

    def requests(self) -> SiteRequests:
        """All of them; the address of an inactive lane is 0."""
        masks = np.array(self.masks, np.int64)[:, None]
        active = (masks >> LANES & 1).astype(np.bool_)
        addresses = np.zeros(active.shape, np.int64)
        rank = np.cumsum(active[self.in_steps], axis=1) - 1
        firsts, strides = (np.array(each, np.int64)[:, None] for each in (self.firsts, self.strides))
        addresses[self.in_steps] = np.where(active[self.in_steps], firsts + strides * rank, 0)
        full = np.zeros((len(self.in_full), WARP), np.int64)
        full[active[self.in_full]] = self.addresses
        addresses[self.in_full] = full
        blocks, warps = np.array(self.blocks, np.int64), np.array(self.warps, np.int32)
        return SiteRequests(addresses, active, None, blocks, warps)
