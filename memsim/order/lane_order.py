"""Which lanes of a warp have executed together, and when: what orders their accesses.

Lanes that have diverged run in any order. What a lane accesses is ordered before what another one of its warp
does later if both are in the group that made the first access, or if since then a lane of that group and the
other one have run in one group.

Of each warp the latest groups are known, as (time, lanes). An older one whose lanes are among those of a
newer one adds nothing; if there are more than `GROUPS` others, the oldest is forgotten, which never orders
what is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.state.parts import Part

#: Groups of a warp that are known.
GROUPS = 8
#: How an access was made, as one number: from bit 33 on when, bit 32 whether by several groups that were not
#: ordered, then by which lanes; 0: by all lanes of a warp.
WHEN, SEVERAL, LANES = 33, 1 << 32, (1 << 32) - 1


class LaneOrder:
    """The groups of the running blocks' warps.

    made: how the running group makes accesses, int64 (1, W) or (B, W); None: all of its warps are whole, but
    for lanes that have exited. have_parted: whether it ever was not None.
    """

    def __init__(self, blocks: int, warps: int) -> None:
        self.shape = blocks, warps
        self.made: np.ndarray | None = None
        self.have_parted = False
        self._now = 0
        self._times = self._groups = np.zeros((0, 0, 0), np.int64)

    def run(self, mask: bool | Part, alive: bool | Part) -> None:
        """The lanes `mask` run together, of those `alive`."""
        self._now += 1
        lanes = _words(mask)
        apart = (lanes != 0) & (lanes != _words(alive))
        if apart.any():
            if not self.have_parted:
                self._times, self._groups = (np.zeros((GROUPS, *self.shape), np.int64) for _ in range(2))
                self.have_parted = True
            self.made = np.where(apart, lanes.astype(np.int64) | self._now << WHEN, 0)
        else:
            self.made = None
        if self.have_parted:
            self._remember(lanes, lanes & lanes - np.uint32(1) != 0)

    def _remember(self, lanes: np.ndarray, which: np.ndarray) -> None:
        """Groups of several lanes, in the place of those that they contain, or of the oldest."""
        rows, warps = np.nonzero(np.broadcast_to(which, self.shape))
        new = np.broadcast_to(lanes, self.shape)[rows, warps].astype(np.int64)
        contained = self._groups[:, rows, warps] & ~new == 0
        oldest = self._times[:, rows, warps].argmin(0)
        place = np.where(contained.any(0), contained.argmax(0), oldest)
        self._times[place, rows, warps] = self._now
        self._groups[place, rows, warps] = new

    def ordered(self, rows: np.ndarray, warps: np.ndarray, lanes: np.ndarray, made: np.ndarray) -> Any:
        """Whether accesses that were `made` so by a warp [n] come before what a lane of it [n] does now."""
        when, several, by = made >> WHEN, made & SEVERAL != 0, made & LANES
        times, groups = self._times[:, rows, warps], self._groups[:, rows, warps]
        since = (times >= when) & (groups >> lanes & 1 != 0)
        met = np.where(several, by & ~groups == 0, by & groups != 0)
        return (since & met).any(0) | (~several & (by >> lanes & 1 != 0))


def _words(mask: bool | Part) -> np.ndarray:
    """The lanes of each warp, uint32 (rows, warps)."""
    return mask.words if isinstance(mask, Part) else np.full((1, 1), LANES * mask, np.uint32)
