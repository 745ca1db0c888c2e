"""Copies in bulk that nobody has waited for (PTX ISA, `cp.async.bulk`).

A copy to global memory writes at some time until its thread has waited for its group by `wait_group`; until
then neither a barrier nor its own warp's program order orders the writes (`BulkWrites`). In machine code the
wait for the writes is that of `.read`, which waits for what the copy reads only, and behind it a fence.

A copy from global memory reads at some time until the phase of the mbarrier where it completes is over; who
has waited for that knows of the read, and may overwrite what was read (`BulkReads`). The copies of a warp are
an agent of their own.

A copy from shared memory reads it until its thread has waited for its group by `wait_group.read`; when the
block has ended, that memory is another's (`UnfinishedCopies`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from memsim.access import Stretches
from memsim.arch.units import WARP
from memsim.isa.program import GLOBAL, Program
from memsim.order.global_order import accesses_by
from memsim.order.order_listener import OrderListener, Threads, warps_in
from memsim.sanitizer.examples import Example
from memsim.sanitizer.global_cells import Cells
from memsim.state.launch_memory import Memory
from memsim.state.parts import Mask

#: A block's index in the chunk, and a warp of it.
Place = tuple[int, int]
Copy = TypeVar("Copy")


def places_in(threads: Threads, mask: Mask) -> list[Place]:
    """The warps with a lane in a mask."""
    rows, warps = warps_in(threads, mask)
    return [*zip(rows.tolist(), warps.tolist())]


class CopyGroups(Generic[Copy]):
    """Of the running blocks; what is known of a copy is the caller's."""

    def __init__(self) -> None:
        self._begun: defaultdict[Place, list[Copy]] = defaultdict(list)
        self._groups: dict[Place, list[list[Copy]]] = {}

    @property
    def are_begun(self) -> bool:
        """Whether there is something to commit or to wait for."""
        return bool(self._begun or self._groups)

    def begin(self, place: Place, copy: Copy) -> None:
        """A warp begins a copy."""
        self._begun[place].append(copy)

    def commit(self, place: Place) -> None:
        """What a warp has begun is a group."""
        begun = self._begun.pop(place, [])
        if begun or place in self._groups:
            self._groups.setdefault(place, []).append(begun)

    def wait(self, place: Place, left: int) -> list[Copy]:
        """The copies that are done when at most so many of a warp's groups are in flight."""
        groups = self._groups.get(place, [])
        done = max(0, len(groups) - left)
        self._groups[place] = groups[done:]
        return [copy for group in groups[:done] for copy in group]

    def left(self) -> Iterator[tuple[Place, Copy]]:
        """All that is not waited for."""
        for place, begun in self._begun.items():
            yield from ((place, copy) for copy in begun)
        for place, groups in self._groups.items():
            yield from ((place, copy) for group in groups for copy in group)


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

    def end(self, phase: Phase) -> set[Place]:
        """A phase is over: of whose copies those know who wait for it."""
        return self._running.pop(phase, set())


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
            self.found.setdefault(op, Example(int(self._blocks[row]))).count += count
        self._groups = CopyGroups()

    def bulk_load(self, instruction: int, read: Stretches) -> None:
        if instruction in self._ops:
            for place in zip(read.rows.tolist(), read.warps.tolist()):
                self._groups.begin(place, instruction)

    def commit(self, mask: Mask) -> None:
        for place in self._places(mask):
            self._groups.commit(place)

    def wait(self, mask: Mask, left: int) -> None:
        for place in self._places(mask):
            self._groups.wait(place, left)

    def _places(self, mask: Mask) -> list[Place]:
        return places_in(self._threads, mask) if self._groups.are_begun else []
