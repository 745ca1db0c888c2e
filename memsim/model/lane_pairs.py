"""The lanes of a request compared with each other: bool [m, lane, lane]."""

from __future__ import annotations

from functools import reduce

import numpy as np

from memsim.arch.units import WARP
from memsim.model.checked_requests import Counts, Lanes, Mask

#: Which lanes come before a lane: bool [lane, lane].
EARLIER = np.tri(WARP, k=-1, dtype=np.bool_)


def equal(keys: Lanes | Counts) -> Mask:
    """Which lanes have the same key."""
    same: Mask = keys[..., :, None] == keys[..., None, :]
    return same


def together(active: Mask) -> Mask:
    """Which lanes are both active."""
    both: Mask = active[..., :, None] & active[..., None, :]
    return both


def first(same: Mask, active: Mask) -> Mask:
    """Which active lanes have no equal active lane before them: bool [m, lane]."""
    lanes = active.shape[-1]
    found: Mask = active & ~(same & active[:, None, :] & EARLIER[:lanes, :lanes]).any(axis=2)
    return found


def distinct(keys: tuple[Lanes | Counts, ...], active: Mask | None) -> Counts:
    """The number of distinct keys of the active lanes [m]; `keys` are columns [m, lanes]."""
    on = np.ones(keys[0].shape, np.bool_) if active is None else active
    found: Counts = np.count_nonzero(first(reduce(np.logical_and, map(equal, keys)), on), axis=1)
    return found
