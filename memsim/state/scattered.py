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
    def places(self) -> np.ndarray:
        """The position of each lane in an array of these warps alone, flat (w, 32) [n]."""
        found: np.ndarray = (np.cumsum(self._is_first) - 1) * WARP + self.lanes % WARP
        return found

    @cached_property
    def active(self) -> np.ndarray:
        """The lanes of these warps as a mask (w, 32)."""
        found = np.zeros((len(self.warps), WARP), np.bool_)
        found.reshape(-1)[self.places] = True
        return found

    def of_warps(self, values: np.ndarray) -> np.ndarray:
        """What each lane has [n], as an array of these warps (w, 32); anything in other lanes."""
        found: np.ndarray = np.full((len(self.warps), WARP), values[0])
        found.reshape(-1)[self.places] = values
        return found
