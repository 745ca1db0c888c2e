"""Clocks of warps that also know of proxy fences: on whose accesses copies in bulk may rely."""

from __future__ import annotations

import numpy as np

from memsim.order.warp_clocks import WarpClocks


class ProxyClocks(WarpClocks):
    """`WarpClocks`, and up to which age the accesses that a warp knows of are behind a `fence.proxy.async`.

    A generic access happens before one by the async proxy only if such a fence lies on the way from one to
    the other (PTX ISA 8.9.5, proxy-preserved base causality order): by who made the access, by who issues the
    copy, or by whoever passes knowledge on between the two. fenced: as `known`.
    """

    def __init__(self, blocks: int, warps: int) -> None:
        super().__init__(blocks, warps)
        self.fenced: np.ndarray = np.zeros_like(self.known)

    def use(self) -> None:
        super().use()
        if not self.fenced.size:
            self.fenced = np.zeros_like(self.known)

    def fence(self, rows: np.ndarray, warps: np.ndarray) -> None:
        """Warps [n] of blocks [n] execute a proxy fence."""
        known = self.known[rows, warps]
        known[:, : self.warps] = np.maximum(known[:, : self.warps], self.bases[rows, None] - 1)
        known[np.arange(len(rows)), warps] = self.ages[rows]
        self.fenced[rows, warps] = np.maximum(self.fenced[rows, warps], known)
        self.ages[np.unique(rows)] += 1

    def spread(self, former: np.ndarray) -> None:
        super().spread(former)
        self.fenced = self.fenced[former]

    def _grow(self, axis: int, count: int) -> None:
        super()._grow(axis, count)
        if count > 0:
            shape = [*self.fenced.shape]
            shape[axis] = count
            self.fenced = np.concatenate([self.fenced, np.zeros(shape, np.int64)], axis)

    def pass_barrier(self, blocks: np.ndarray) -> None:
        super().pass_barrier(blocks)
        if self.are_used:
            of_warps = self.fenced[:, : self.warps]
            every = of_warps.max(1, keepdims=True)
            self.fenced[:, : self.warps] = np.where(blocks[:, None, None], every, of_warps)

    def tell(self, rows: np.ndarray, warps: np.ndarray, holder: int) -> None:
        super().tell(rows, warps, holder)
        np.maximum.at(self.fenced, (rows, np.full(len(rows), holder)), self.fenced[rows, warps])

    def learn(self, rows: np.ndarray, warps: np.ndarray, holder: int) -> None:
        super().learn(rows, warps, holder)
        self.fenced[rows, warps] = np.maximum(self.fenced[rows, warps], self.fenced[rows, holder])

    def forget(self, rows: np.ndarray, holder: int) -> None:
        super().forget(rows, holder)
        self.fenced[rows, holder] = 0
