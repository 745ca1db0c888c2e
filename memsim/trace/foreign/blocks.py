"""The distinct blocks in a trace, eight bytes each."""

from __future__ import annotations

import numpy as np

from memsim.errors import MemsimError

#: Numbers that wait to be sorted in among the others.
MANY = 1 << 16


def coordinates(text: str) -> tuple[int, int, int]:
    """From `x,y,z`.

    Raises:
        ValueError: not three numbers.
    """
    x, y, z = map(int, text.split(","))
    return x, y, z


class BlocksSeen:
    """The distinct blocks of a grid that occurred, by their coordinates."""

    def __init__(self, grid: tuple[int, ...]) -> None:
        self.grid = grid
        self.known = np.zeros(0, np.int64)
        self.fresh: set[int] = set()

    def __len__(self) -> int:
        self._settle()
        return len(self.known)

    def add(self, x: int, y: int, z: int) -> int:
        """The linear number of a block, which is counted if it is new.

        Raises:
            MemsimError: the grid has no such block.
        """
        columns, rows, layers = self.grid
        if not (0 <= x < columns and 0 <= y < rows and 0 <= z < layers):
            raise MemsimError(f"it has a thread block ({x},{y},{z}) outside of the grid {self.grid}")
        number = x + columns * (y + rows * z)
        self.fresh.add(number)
        if len(self.fresh) >= MANY:
            self._settle()
        return number

    def _settle(self) -> None:
        if self.fresh:
            self.known = np.union1d(self.known, np.fromiter(self.fresh, np.int64))
            self.fresh = set()
