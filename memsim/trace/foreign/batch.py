"""Requests of one instruction that wait to be counted, as a trace writes them, and all of them as arrays.

In: one request after the other: mask, and addresses as the first and a stride or one for each lane. Out:
addresses and active lanes [m, 32]. A batch is written out at once, many times faster than each alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from memsim.launch import WARP

LANES = np.arange(WARP)


class Batch:
    """Requests in the order in which they came, and who made them."""

    def __init__(self) -> None:
        self.masks: list[int] = []
        self.blocks: list[int] = []
        self.warps: list[int] = []
        self.in_steps: list[int] = []  # which requests have a stride
        self.firsts: list[int] = []
        self.strides: list[int] = []
        self.in_full: list[int] = []  # which have all addresses
        self.addresses: list[int] = []

    def __len__(self) -> int:
        return len(self.masks)

    def add_steps(self, mask: int, first: int, stride: int) -> None:
        """The active lanes' addresses are `stride` bytes apart."""
        self.in_steps.append(len(self.masks))
        self.masks.append(mask)
        self.firsts.append(first)
        self.strides.append(stride)

    def add_full(self, mask: int, addresses: Iterable[int]) -> None:
        """An address for each active lane.

        Raises:
            ValueError: another number of addresses than of active lanes.
        """
        before = len(self.addresses)
        self.addresses.extend(addresses)
        if len(self.addresses) - before != mask.bit_count():
            del self.addresses[before:]
            raise ValueError("as many addresses as active lanes")
        self.in_full.append(len(self.masks))
        self.masks.append(mask)

    def written_out(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Addresses, 0 in idle lanes, and active lanes: [m, 32]."""
        masks = np.array(self.masks, np.int64)[:, None]
        active = (masks >> LANES & 1).astype(np.bool_)
        addresses = np.zeros(active.shape, np.int64)
        rank = np.cumsum(active[self.in_steps], axis=1) - 1
        firsts, strides = (np.array(each, np.int64)[:, None] for each in (self.firsts, self.strides))
        addresses[self.in_steps] = np.where(active[self.in_steps], firsts + strides * rank, 0)
        full = np.zeros((len(self.in_full), WARP), np.int64)
        full[active[self.in_full]] = self.addresses
        addresses[self.in_full] = full
        return addresses, active

    @property
    def block(self) -> NDArray[np.int64]:
        """Linear numbers of the blocks [m]."""
        return np.array(self.blocks, np.int64)

    @property
    def warp(self) -> NDArray[np.int32]:
        """Warps in their blocks [m]."""
        return np.array(self.warps, np.int32)
