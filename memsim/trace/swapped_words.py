"""Whether several warps update a word of shared memory by loops of compare-and-swaps.

If none does, a warp's swap fails only at another lane of its own, so that its rounds are those of one warp.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.arch.units import WARP, WORD
from memsim.state.predicates import to_bools
from memsim.state.registers import Sum, to_array

#: An access that is a loop of compare-and-swaps.
SWAP_LOOP = "atomic_loop"
#: Words of all blocks of a chunk above which it is not looked at.
MOST_WORDS = 1 << 24


class SwappedWords:
    """The warp that updates each word of each block of a chunk.

    meet: a word has several, or it was not looked at.
    """

    def __init__(self) -> None:
        self.meet = False
        self.parted = False
        self.owner: np.ndarray = np.zeros((0, 0), np.int32)

    def start_chunk(self, first: np.ndarray) -> None:
        """first: as of a `Chunk`. Of blocks whose warps are rows of their own, any two may meet."""
        self.parted = bool(first.any())
        self.owner = np.full((len(first), 0), -1, np.int32)

    def update(self, address: int | Sum, width: int, active: Any, threads: int) -> None:
        """Of the `threads` threads of each block, those that are `active` update `width` bytes each."""
        if self.meet or active is False:
            return
        shape = len(self.owner), threads
        block, thread = np.nonzero(np.broadcast_to(to_bools(active), shape))
        word = np.broadcast_to(to_array(address), shape)[block, thread] // WORD
        last = int(word.max(initial=-1)) + max(1, width // WORD)
        if self.parted or len(self.owner) * last > MOST_WORDS:
            self.meet = True
            return
        missing = last - self.owner.shape[1]
        if missing > 0:
            self.owner = np.pad(self.owner, ((0, 0), (0, missing)), constant_values=-1)
        warp = thread // WARP
        for part in range(max(1, width // WORD)):
            before = self.owner[block, word + part]
            self.owner[block, word + part] = warp
            after = self.owner[block, word + part]
            self.meet |= bool(((before >= 0) & (before != warp)).any() or (after != warp).any())
