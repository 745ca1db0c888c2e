"""Whose words of shared memory are: the thread that first wrote each, as shown in pictures of an array; and
whether several warps update one by loops of compare-and-swaps.

Of the writers, later ones of the same word, and atomics, which many threads share, are ignored. If no word is
updated by several warps, a warp's swap fails only at another lane of its own, so that its rounds are those of
one warp.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from memsim.arch.units import WARP, WORD
from memsim.state.parts import Mask, Part
from memsim.state.predicates import to_bools
from memsim.state.registers import Sum, to_array

#: Accesses that make a thread the owner of a word.
OWNING = ("store", "stmatrix", "cp_async", "cp_async_cg")
#: Cached stores, so that those of a loop are processed once.
MOST_SEEN = 1 << 16


class Writers:
    """The thread that first wrote each word of the first block's shared memory.

    `threads`: int32, linear thread number in the block for each 4-byte word from address 0; -1 for none.
    """

    def __init__(self) -> None:
        self.threads = np.zeros(0, np.int32)
        self.seen: set[Hashable] = set()

    def wrote(self, address: int | Sum, width: int, active: bool | Part, threads: int) -> None:
        """Of the block's `threads` threads, those that are `active` wrote `width` bytes each."""
        if not isinstance(active, Part) and not active:
            return
        key = _identity(address), width, active.uid if isinstance(active, Part) else True
        if key in self.seen:
            return
        if len(self.seen) > MOST_SEEN:
            self.seen = set()
        self.seen.add(key)

        on = np.broadcast_to(active.array[0] if isinstance(active, Part) else True, threads)
        thread = np.flatnonzero(on)
        start = np.broadcast_to(_of_first_block(address), threads)[thread] // WORD
        words = (start[:, None] + np.arange(max(1, width // WORD))).ravel()
        writer = np.repeat(thread, max(1, width // WORD))
        self._grow(int(words.max(initial=-1)) + 1)
        free = self.threads[words] < 0
        self.threads[words[free][::-1]] = writer[free][::-1]  # the first thread wins if several write

    def _grow(self, words: int) -> None:
        missing = words - len(self.threads)
        if missing > 0:
            self.threads = np.concatenate([self.threads, np.full(missing, -1, np.int32)])


def _identity(address: int | Sum) -> Hashable:
    """A key that two equal addresses of a loop share."""
    if not isinstance(address, Sum):
        return address
    return address.s, *(None if part is None else part.uid for part in (address.u, address.v, address.f))


def _of_first_block(address: int | Sum) -> int | np.ndarray:
    """The address of each thread of the chunk's first block, or a common one."""
    if not isinstance(address, Sum):
        return address
    total: int | np.ndarray = address.s
    for part in address.parts:
        total = total + part.array[0]
    return total


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
        self.start_chunk(np.zeros((0, 1), np.int64))

    def start_chunk(self, first: np.ndarray) -> None:
        """first: as of a `Chunk`. Of blocks whose warps are rows of their own, any two may meet."""
        self.parted = bool(first.any())
        self.owner: np.ndarray = np.full((len(first), 0), -1, np.int32)

    def update(self, address: int | Sum, width: int, active: Mask, threads: int) -> None:
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
