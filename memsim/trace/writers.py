"""The thread that first wrote each word of shared memory, as shown in pictures of an array.

Later writers of the same word, and atomics, which many threads share, are ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.arch.units import WORD
from memsim.state.parts import Part
from memsim.state.registers import Sum

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
        self.seen: set[Any] = set()

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


def _identity(address: int | Sum) -> Any:
    """A key that two equal addresses of a loop share."""
    if not isinstance(address, Sum):
        return address
    return address.s, *(None if part is None else part.uid for part in (address.u, address.v, address.f))


def _of_first_block(address: int | Sum) -> Any:
    """The address of each thread of the chunk's first block, or a common one."""
    if not isinstance(address, Sum):
        return address
    total: Any = address.s
    for part in address.parts:
        total = total + part.array[0]
    return total
