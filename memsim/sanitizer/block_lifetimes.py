"""Shared memory of a block that another one, or a copy, accesses before the block begins or after it ends.

A block of a cluster may access another one's shared memory only from when that has begun until it ends (CUDA
C++ Programming Guide, "Distributed Shared Memory"), and a copy writes there until the phase where it
completes is over (PTX ISA, `cp.async.bulk`, `st.async`). Who knows of anything that a block did knows that it
has begun; a block whose warps know of all accesses to its memory ends behind them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from memsim.arch.units import WARP
from memsim.order.warp_clocks import WarpClocks
from memsim.sanitizer.examples import Example


class Outside(NamedTuple):
    """An instruction that accesses memory of a block that may not have begun, or, `ends`, may have ended."""

    instruction: int
    ends: bool


class BlockLifetimes:
    """Of the running blocks [B]. found: what is wrong."""

    def __init__(self, blocks: np.ndarray, found: dict[Outside, Example]) -> None:
        self.found = found
        self._blocks = blocks
        #: The last access to each block's memory by each agent: its age, instruction, and whose it was.
        self._last: np.ndarray = np.zeros((4, len(blocks), 0), np.int64)

    def access(
        self,
        instruction: int,
        rows: np.ndarray,
        agents: np.ndarray,
        ages: np.ndarray,
        blocks: np.ndarray,
        warps: np.ndarray,
    ) -> None:
        """Agents [n] access shared memory of blocks `rows` at these ages: warps [n] of blocks [n], -1 if they
        are none.
        """
        more = int(agents.max()) + 1 - self._last.shape[2]
        if more > 0:
            self._last = np.pad(self._last, ((0, 0), (0, 0), (0, more)))
        self._last[:, rows, agents] = ages, np.full(len(rows), instruction), blocks, warps

    def begin(
        self,
        clocks: WarpClocks,
        classes: np.ndarray,
        instruction: int,
        rows: np.ndarray,
        warps: np.ndarray,
        agents: np.ndarray,
    ) -> None:
        """Warps [n] of blocks [n], of these classes, access memory of others, whose warps are agents there
        [n, warps].
        """
        known = clocks.known[classes[:, None], warps[:, None], agents].max(1)
        self._count(Outside(instruction, False), np.flatnonzero(known == 0), rows, warps)

    def end(self, clocks: WarpClocks, classes: np.ndarray) -> None:
        """The blocks have ended, of these classes."""
        ages, instructions, blocks, warps = self._last
        if not ages.any() or clocks.is_full:
            return
        known = clocks.known[:, : clocks.warps, : ages.shape[1]].max(1)[classes]
        late = ages > known
        for instruction in np.unique(instructions[late]).tolist():
            at = np.nonzero(late & (instructions == instruction))
            self._count(Outside(instruction, True), np.arange(len(at[0])), blocks[at], warps[at])

    def _count(self, key: Outside, at: np.ndarray, rows: np.ndarray, warps: np.ndarray) -> None:
        if len(at):
            row, warp = int(rows[at[0]]), int(warps[at[0]])
            first = Example(int(self._blocks[row]), later=warp * WARP if warp >= 0 else -1)
            self.found.setdefault(key, first).count += len(at)
