"""Reads by copies in bulk of global memory: who may overwrite what they read.

Such a copy reads at some time until the phase of the mbarrier where it completes is over (PTX ISA,
`cp.async.bulk`); who has waited for that knows of the read. The copies of a warp are an agent of their own.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from memsim.sanitizer.block_order import BlockOrder
from memsim.sanitizer.bulk_writes import COPIES
from memsim.sanitizer.copy_groups import Place

#: A block's index in the chunk, and the column of an mbarrier there.
Phase = tuple[int, int]


class BulkReads:
    """Those of the running blocks that are not over."""

    def __init__(self) -> None:
        self._issued: tuple[int, set[Place]] = -1, set()
        self._running: defaultdict[Phase, set[Place]] = defaultdict(set)

    def begin(self, instruction: int, rows: np.ndarray, warps: np.ndarray) -> None:
        """Warps [n] of blocks [n] make such copies."""
        self._issued = instruction, {*zip(rows.tolist(), warps.tolist())}

    def complete_at(self, instruction: int, rows: np.ndarray, columns: np.ndarray, peers: np.ndarray) -> None:
        """What the instruction has just begun completes at mbarriers [n] of blocks [n]. peers: the blocks of
        each block's cluster.
        """
        begun, issued = self._issued
        for phase in {*zip(rows.tolist(), columns.tolist())} if begun == instruction else ():
            self._running[phase] |= {one for one in issued if phase[0] in peers[one[0]]}

    def end(self, order: BlockOrder, phase: Phase) -> None:
        """A phase is over: who waits for it knows of the copies."""
        for row, warp in self._running.pop(phase, ()):
            order.hear(("over", *phase), row, COPIES + warp)
