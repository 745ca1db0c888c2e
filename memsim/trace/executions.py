"""Counts how often warps executed each instruction, and whether all blocks executed the same."""

from __future__ import annotations

from collections import Counter

import numpy as np


class Executions:
    """Counts of a launch; `start_chunk` before the first."""

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
