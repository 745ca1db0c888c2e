"""How many warps have a thread in a mask of lanes, and how often warps executed each instruction."""

from __future__ import annotations

from collections import Counter
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


class Executions:
    """How often warps executed each instruction, and whether all blocks executed the same.

    `start_chunk` comes before the first.
    """

    def __init__(self) -> None:
        self.ran: Counter[tuple[int, int]] = Counter()
        self.alike = True
        #: Whether some instructions were executed by warps that are not known.
        self.unknown = False
        self._chunk: Counter[tuple[int, int]] = Counter()
        self._of_a_block: dict[tuple[int, int], int] | None = None
        self._blocks = 0

    def start_chunk(self, blocks: int) -> None:
        """So many blocks run next."""
        self._compare()
        self._blocks = blocks

    def add(self, start: int, stop: int, warps: int, same_in_all: bool) -> None:
        """`warps` of all blocks execute the instructions from `start` up to `stop`."""
        self.ran[start, stop] += warps
        if self.alike:
            self.alike = same_in_all or not warps
            self._chunk[start, stop] += warps

    def of(self, instructions: int) -> np.ndarray:
        """The number of warps that executed each instruction, int64 [instructions]; empty if unknown."""
        if self.unknown:
            return np.zeros(0, np.int64)
        found = np.zeros(instructions, np.int64)
        for (start, stop), warps in self.ran.items():
            found[start:stop] += warps
        return found

    @property
    def blocks_alike(self) -> bool:
        """Whether every block is known to have executed each instruction equally often."""
        self._compare()
        return self.alike

    def _compare(self) -> None:
        """Compare the blocks of the chunk that ends with those before."""
        if not self._chunk or not self.alike:
            return
        each = {at: warps // self._blocks for at, warps in self._chunk.items() if warps}
        self.alike = self._of_a_block in (None, each)
        self._of_a_block, self._chunk = each, Counter()
