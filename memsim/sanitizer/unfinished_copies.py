"""Copies in bulk from shared memory that nobody waits for before their block ends.

The shared memory of a block is another's when it has ended, and a copy reads it until its thread has waited
for its group (PTX ISA, `cp.async.bulk.wait_group.read`).
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from memsim.isa.program import GLOBAL, Program
from memsim.order.order_listener import OrderListener, Threads
from memsim.sanitizer.copy_groups import CopyGroups, Place
from memsim.sanitizer.shared_races import Example
from memsim.state.launch_memory import Memory
from memsim.state.parts import Mask


class UnfinishedCopies(OrderListener):
    """Finds them: `found`, by instruction."""

    def __init__(self, program: Program) -> None:
        self.found: dict[int, Example] = {}
        self._ops = {
            op.index
            for op in program.ops
            if any(space == GLOBAL and way in ("bulk_store", "bulk_reduction") for way, space in op.touches)
        }
        self._groups: CopyGroups[int] = CopyGroups()

    def start_chunk(self, threads: Threads, memory: Memory) -> None:
        self.finish()
        self._threads, self._blocks = threads, threads.blocks

    def finish(self) -> None:
        """The running blocks have ended."""
        for ((row, _), op), count in Counter(self._groups.left()).items():
            example = Example(int(self._blocks[row]), -1, -1, 0, 0)
            self.found.setdefault(op, example).count += count
        self._groups = CopyGroups()

    def bulk_load(
        self, instruction: int, rows: np.ndarray, start: np.ndarray, length: np.ndarray, warps: np.ndarray
    ) -> None:
        if instruction in self._ops:
            for place in zip(rows.tolist(), warps.tolist()):
                self._groups.begin(place, instruction)

    def commit(self, mask: Mask) -> None:
        for place in self._places(mask):
            self._groups.commit(place)

    def wait(self, mask: Mask, left: int) -> None:
        for place in self._places(mask):
            self._groups.wait(place, left)

    def _places(self, mask: Mask) -> list[Place]:
        if not self._groups.are_begun:
            return []
        warps = self._threads.warps_of(mask)
        rows, columns = np.nonzero(np.broadcast_to(warps, (len(self._blocks), warps.shape[1])))
        return [*zip(rows.tolist(), columns.tolist())]
