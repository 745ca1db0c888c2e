"""Marks that stand for several accesses of one word, each of which has to be ordered before what follows."""

from __future__ import annotations

import numpy as np

from memsim.order.warp_clocks import COPIES, WarpClocks
from memsim.order.word_marks import AGE, INSTRUCTION, LOADERS, MOST_AGE, MOST_INSTRUCTIONS, WHO

Marks = frozenset[int]


class MarkGroups:
    """The marks in each group, by its number, which stands in place of an instruction."""

    def __init__(self) -> None:
        self._groups: list[Marks] = []
        self._numbers: dict[Marks, int] = {}

    def members(self, mark: int) -> Marks:
        """The marks that one stands for."""
        is_group = LOADERS <= mark & WHO <= LOADERS + 1
        return self._groups[mark >> INSTRUCTION & MOST_INSTRUCTIONS] if is_group else frozenset((mark,))

    def joined(self, before: np.ndarray, own: np.ndarray, apart: np.ndarray, kind: int) -> np.ndarray:
        """The marks `own` of a warp [n], where `apart` together with those of others before."""
        found: np.ndarray = own.copy()
        for pair in {*zip(before[apart].tolist(), own[apart].tolist())}:
            found[apart & (before == pair[0]) & (own == pair[1])] = self._both(*pair, kind)
        return found

    def _both(self, before: int, own: int, kind: int) -> int:
        others = (mark for mark in self.members(before) if (mark ^ own) & WHO)
        marks = frozenset((*others, own))
        number = self._numbers.setdefault(marks, len(self._groups))
        if number == len(self._groups):
            self._groups.append(marks)
        return max(mark >> AGE for mark in marks) << AGE | number << INSTRUCTION | kind

    def known(self, clocks: WarpClocks, marks: np.ndarray, rows: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Whether agents `own` [n] of blocks [n] know of all accesses for which marks [n] stand."""
        who, ages = marks & WHO, marks >> AGE & MOST_AGE
        holders = np.where(own < COPIES, own, clocks.foreign)
        one = np.where(who < LOADERS, who, 0)
        found: np.ndarray = (who < LOADERS) & (clocks.known[rows, holders, one] >= ages)
        found |= (who == own) | ((who < COPIES) & (own < COPIES) & (ages < clocks.bases[rows]))
        groups = (who == LOADERS) | (who == LOADERS + 1)
        for mark in np.unique(marks[groups]).tolist():
            at = np.flatnonzero(marks == mark)
            found[at] = True
            for member in self.members(mark):
                found[at] &= self.known(clocks, np.full(len(at), member), rows[at], own[at])
        return found

    def of_one(self, marks: np.ndarray) -> np.ndarray:
        """Marks, those of groups replaced by one of their members."""
        found: np.ndarray = marks.copy()
        groups = (marks & WHO >= LOADERS) & (marks & WHO <= LOADERS + 1)
        for mark in np.unique(marks[groups]).tolist():
            found[marks == mark] = min(self.members(mark))
        return found

    def instructions(self, marks: np.ndarray) -> np.ndarray:
        """The instruction, or one of them, that made each mark."""
        found: np.ndarray = self.of_one(marks) >> INSTRUCTION & MOST_INSTRUCTIONS
        return found
