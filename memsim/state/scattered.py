"""Lanes scattered over the warps of a chunk."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from memsim.arch.units import WARP


class ScatteredLanes:
    """Some lanes of a chunk of rows. lanes: their positions in (rows, threads) [n], ascending."""

    def __init__(self, lanes: np.ndarray) -> None:
        self.lanes = lanes

    def __len__(self) -> int:
        return len(self.lanes)

    @cached_property
    def _is_first(self) -> np.ndarray:
        """Whether it is the first of its warp [n]."""
        of_warps = self.lanes // WARP
        found: np.ndarray = np.ones(len(of_warps), np.bool_)
        np.not_equal(of_warps[1:], of_warps[:-1], out=found[1:])
        return found

    @cached_property
    def warps(self) -> np.ndarray:
        """The warps that have one of the lanes, by number in the chunk [w]."""
        found: np.ndarray = self.lanes[self._is_first] // WARP
        return found

    @cached_property
    def counts(self) -> np.ndarray:
        """How many of the lanes each of these warps has [w]."""
        return np.diff(np.flatnonzero(self._is_first), append=len(self))
