"""How many warps have a thread in a mask of lanes."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Masks whose numbers of warps are cached.
MOST_MASKS = 1 << 16


class WarpCounts:
    """Numbers of warps of the running blocks, cached by mask."""

    def __init__(self) -> None:
        self.start_chunk(0, 1)

    def start_chunk(self, blocks: int, warps: int) -> None:
        """Other blocks run, of so many warps each."""
        self.blocks = blocks
        self.warps = warps
        self.counts: dict[int, int] = {}
        self.same: dict[int, bool] = {}

    def of(self, mask: Any) -> int:
        """The number of warps with a thread in the mask."""
        if mask is True:
            return self.blocks * self.warps
        if mask is False:
            return 0
        if mask.uid not in self.counts:
            if len(self.counts) > MOST_MASKS:
                self.counts = {}
            words = np.broadcast_to(mask.words, (mask.shape[0], self.warps))
            self.counts[mask.uid] = int(np.count_nonzero(words)) * (self.blocks if len(words) == 1 else 1)
        return self.counts[mask.uid]

    def is_same_in_all(self, mask: Any) -> bool:
        """Whether all blocks of the chunk have equally many warps with a thread in the mask."""
        if isinstance(mask, bool) or mask.shape[0] == 1:
            return True
        if mask.uid not in self.same:
            if len(self.same) > MOST_MASKS:
                return False
            each = np.count_nonzero(np.broadcast_to(mask.words, (mask.shape[0], self.warps)), axis=1)
            self.same[mask.uid] = bool((each == each[0]).all())
        return self.same[mask.uid]
