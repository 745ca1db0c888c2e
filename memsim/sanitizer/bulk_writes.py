"""Writes of copies in bulk to global memory that nobody has waited for.

Such a copy writes at some time until its thread has waited for its group (PTX ISA,
`cp.async.bulk.wait_group`; `.read` waits for what the copy reads only). In machine code the wait for the
writes is that of `.read`, and behind it a fence. Until then neither a barrier nor its own warp's program
order orders them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from memsim.arch.units import WARP
from memsim.order.global_order import accesses_by
from memsim.sanitizer.copy_groups import CopyGroups, Place
from memsim.sanitizer.global_cells import Cells

#: Instead of a thread of a warp, a copy that is not waited for; in place of barriers passed; ages of these.
COPY, NEVER, LATE = 1 << 10, 1 << 30, (1 << 31) - 1
#: The first of the agents that copies of warps are, behind all warps of a block.
COPIES = COPY // WARP


class Write(NamedTuple):
    """What copies of a warp have written: marks of an array, which of its cells, and their age there."""

    marks: Cells
    cells: np.ndarray
    age: int


def copies_of(blocks: np.ndarray, warps: np.ndarray) -> np.ndarray:
    """Who copies of warps [n] are until they are waited for; blocks: their numbers and 1."""
    return accesses_by(blocks - 1, np.full(len(blocks), NEVER), COPY | warps * WARP)


class BulkWrites(CopyGroups[Write]):
    """Those of the running blocks."""

    def __init__(self) -> None:
        super().__init__()
        self._waited: defaultdict[Place, list[Write]] = defaultdict(list)
        self._count = 0

    def new_age(self) -> int:
        """Of a copy: no warp is told of what has it."""
        self._count += 1
        return LATE - self._count

    @property
    def are_waited(self) -> bool:
        """Whether a fence completes something."""
        return bool(self._waited)

    def wait(self, place: Place, left: int) -> list[Write]:
        done = super().wait(place, left)
        if done:
            self._waited[place] += done
        return done

    def complete(self, place: Place) -> Iterator[tuple[Cells, np.ndarray]]:
        """A fence behind a wait: the marks, and the cells that still have those of the copies."""
        for marks, cells, age in self._waited.pop(place, ()):
            yield marks, cells[marks.age[cells] == age]
