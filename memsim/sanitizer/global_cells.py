"""What is known of the cells of an array in global memory: the last accesses to each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from memsim.arch.units import WARP
from memsim.order.global_order import BARRIERS

#: Bits of who makes an access for the thread in its block.
THREAD = (1 << BARRIERS) - 1


class GlobalPair(NamedTuple):
    """Two instructions that race on an array; of one block, or of several; together: in one execution; seen:
    by a flag, but no fence is behind that; unfenced: they are ordered, but by different proxies without a
    proxy fence.
    """

    earlier: int
    later: int
    array: str
    same_block: bool
    together: bool
    seen: bool
    unfenced: bool = False


class Cells:
    """The last accesses to the cells of an array: who, at which age, and by which instruction. is_used: there
    are any.
    """

    def __init__(self, count: int) -> None:
        self.who = np.zeros(count, np.int64)
        self.age, self.by = np.zeros((2, count), np.int32)
        self.is_used = False

    def put(self, cells: np.ndarray, who: np.ndarray, age: np.ndarray, by: np.ndarray | int) -> None:
        """Accesses to cells [n]."""
        self.who[cells], self.age[cells], self.by[cells] = who, age, by
        self.is_used = True


@dataclass(frozen=True, slots=True)
class CellLanes:
    """Lanes of an access as columns, once for each cell: their row, who they are, their age, the cell among
    those of its array, and its number among all.
    """

    rows: np.ndarray
    who: np.ndarray
    ages: np.ndarray
    cells: np.ndarray
    numbers: np.ndarray

    def __getitem__(self, at: np.ndarray) -> CellLanes:
        return CellLanes(*(getattr(self, name)[at] for name in self.__slots__))

    @property
    def warps(self) -> np.ndarray:
        """In their blocks."""
        found: np.ndarray = (self.who & THREAD) // WARP
        return found
