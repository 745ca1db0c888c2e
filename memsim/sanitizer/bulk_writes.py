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
from memsim.sanitizer.global_cells import Cells

#: Instead of a thread of a warp, a copy that is not waited for; in place of barriers passed; ages of these.
COPY, NEVER, LATE = 1 << 10, 1 << 30, (1 << 31) - 1


class Write(NamedTuple):
    """What copies of a warp have written: marks of an array, which of its cells, and their age there."""

    marks: Cells
    cells: np.ndarray
    age: int


#: A block's index in the chunk, and a warp of it.
Place = tuple[int, int]


def copies_of(blocks: np.ndarray, warps: np.ndarray) -> np.ndarray:
    """Who copies of warps [n] are until they are waited for; blocks: their numbers and 1."""
    return accesses_by(blocks - 1, np.full(len(blocks), NEVER), COPY | warps * WARP)


class BulkWrites:
    """Those of the running blocks."""

    def __init__(self) -> None:
        self._begun: defaultdict[Place, list[Write]] = defaultdict(list)
        self._groups: dict[Place, list[list[Write]]] = {}
        self._waited: dict[Place, list[Write]] = {}
        self._count = 0

    def new_age(self) -> int:
        """Of a copy: no warp is told of what has it."""
        self._count += 1
        return LATE - self._count

    def add(self, place: Place, write: Write) -> None:
        """A warp begins to write."""
        self._begun[place].append(write)

    @property
    def are_begun(self) -> bool:
        """Whether there is something to commit or to wait for."""
        return bool(self._begun or self._groups)

    @property
    def are_waited(self) -> bool:
        """Whether a fence completes something."""
        return bool(self._waited)

    def commit(self, place: Place) -> None:
        """What a warp has begun is a group."""
        begun = self._begun.pop(place, [])
        if begun or place in self._groups:
            self._groups.setdefault(place, []).append(begun)

    def wait(self, place: Place, left: int) -> None:
        """A warp waits until at most so many of its groups are in flight."""
        groups = self._groups.get(place, [])
        done = len(groups) - left
        if done > 0:
            self._waited.setdefault(place, []).extend(write for group in groups[:done] for write in group)
            self._groups[place] = groups[done:]

    def complete(self, place: Place) -> Iterator[tuple[Cells, np.ndarray]]:
        """A fence behind a wait: the marks, and the cells that still have those of the copies."""
        for marks, cells, age in self._waited.pop(place, ()):
            yield marks, cells[marks.age[cells] == age]
