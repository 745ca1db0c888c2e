"""Races in global memory: of threads of several blocks, or of warps of one block without a barrier between.

Each cell of an array that the launch writes remembers who wrote it last, who read it last and who changed it
by an atomic or another strong access, as one number (`memsim.order.global_order.accesses_by`). Two accesses
are ordered if one warp makes both, or if both are of one block with a block barrier between them. Fences and
flags order more (PTX ISA 8.8, 8.9.4); they are not followed, so in code that has a fence a race is possible
only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from memsim.access import Chunk, Site
from memsim.arch.units import WARP
from memsim.instruction import Instruction
from memsim.isa.memory_access import bytes_of_piece
from memsim.isa.program import Op, Program
from memsim.model.operations import operation
from memsim.order.global_order import BLOCK, accesses_by, are_unordered
from memsim.order.order_listener import OrderListener
from memsim.sanitizer.shared_races import Example
from memsim.simt.bounds import Bounds
from memsim.state.address_spaces import Buffer
from memsim.state.launch_memory import Memory
from memsim.state.parts import Mask
from memsim.state.predicates import ScatteredLanes, to_bools
from memsim.state.registers import to_array
from memsim.state.sums import Int

#: Accesses of lanes to arrays that the launch writes, after which no more are followed; bytes of such arrays.
MOST_LANES, MOST_BYTES = 1 << 23, 1 << 29
#: Bits of a number for the thread in its warp.
_LANE = WARP - 1
#: In global memory a copy only reads.
WRITES = frozenset(("store", "update"))


class GlobalPair(NamedTuple):
    """Two instructions that race on an array; of one block, or of several; together: in one execution."""

    earlier: int
    later: int
    array: str
    same_block: bool
    together: bool


class _Cells:
    """The last accesses to the cells of an array: who, and by which instruction."""

    def __init__(self, count: int) -> None:
        self.who = np.zeros(count, np.int64)
        self.by = np.zeros(count, np.int32)


class GlobalRaces(OrderListener):
    """Finds them: `found`. limits: what is not followed, in words."""

    def __init__(self, program: Program) -> None:
        self.found: dict[GlobalPair, Example] = {}
        self.limits: set[str] = set()
        ops = [op for op in program.ops if any(space in ("global", "generic") for _, space in op.touches)]
        self.unit = min((bytes_of_piece(op.form) for op in ops), default=4)
        self._writers = [
            op for op in ops if any(operation("global", way).verb in WRITES for way, _ in op.touches)
        ]
        self._left = MOST_LANES
        self._cells: dict[str, tuple[Buffer, tuple[_Cells, ...]]] | None = None

    def start_chunk(self, threads: Any, memory: Memory) -> None:
        self._threads, self._memory = threads, memory
        self._barriers = np.zeros((len(threads.blocks), 1), np.int64)

    def block_barrier(self, mask: Mask = True) -> None:
        here: np.ndarray = np.any(to_bools(mask), axis=1)
        self._barriers = self._barriers + here[:, None]

    def hear(self, site: Site, address: Int, active: Mask, chunk: Chunk) -> None:
        """Lanes access global memory."""
        if self._left < 0 or active is False or not self._is_followed(site):
            return
        shape = len(chunk.blocks), chunk.threads
        rows, columns = np.nonzero(np.broadcast_to(to_bools(active), shape))
        self._left -= len(rows)
        if self._left < 0:
            self.limits.add("races in global memory (more accesses than are compared; --blocks N runs fewer)")
            return
        array = to_array(address)
        places = array[rows if array.shape[0] > 1 else 0, columns if array.shape[1] > 1 else 0]
        self._lanes(site, np.broadcast_to(places, rows.shape), rows, columns, chunk)

    def scattered(self, site: Site, address: np.ndarray, lanes: ScatteredLanes, chunk: Chunk) -> None:
        """The same of some lanes."""
        if self._left >= 0 and self._is_followed(site):
            self._left -= len(lanes.lanes)
            self._lanes(site, address, *np.divmod(lanes.lanes, chunk.threads), chunk)

    def _is_followed(self, site: Site) -> bool:
        """Whether an access is to an array that the launch writes."""
        if self._cells is None:
            self._cells = {one.name: self._new(one) for one in self._written()}
        origins = self._origins(site.instruction)
        return any(one.name in self._cells for one in origins) if origins else bool(self._cells)

    def _origins(self, instruction: Instruction) -> Sequence[Buffer]:
        """The arrays that its address is derived from; none if that is not known."""
        bounds: Bounds = self._threads.bounds
        return bounds.origins_of(instruction) if isinstance(instruction, Op) else ()

    def _written(self) -> list[Buffer]:
        layout = self._memory.layouts["global"]
        found: list[Buffer] = []
        for op in self._writers:
            found += self._origins(op) or layout.buffers
        written = [*dict.fromkeys(found)]
        if sum(one.end - one.start for one in written) > MOST_BYTES * self.unit // 32:
            self.limits.add("races in global memory (the arrays that are written are too large)")
            return []
        return written

    def _new(self, buffer: Buffer) -> tuple[Buffer, tuple[_Cells, ...]]:
        count = -(-(buffer.end - buffer.start) // self.unit)
        return buffer, tuple(_Cells(count) for _ in range(4))

    def _lanes(
        self, site: Site, places: np.ndarray, rows: np.ndarray, columns: np.ndarray, chunk: Chunk
    ) -> None:
        op = site.instruction
        assert isinstance(op, Op) and self._cells is not None
        verb = operation("global", site.access).verb
        threads = chunk.first[rows, 0] + columns
        barriers = (
            self._barriers[rows, 0] if len(self._barriers) == len(chunk.blocks) else np.zeros_like(rows)
        )
        who = accesses_by(chunk.blocks[rows], barriers, threads)
        each = max(1, site.width // self.unit)
        cells = places // self.unit
        if each > 1:
            cells = (cells[:, None] + np.arange(each)).ravel()
            who = np.repeat(who, each)
        is_strong = verb == "update" or "STRONG" in op.form.modifiers
        for buffer, marks in self._cells.values():
            first = buffer.start // self.unit
            here = (cells >= first) & (cells < first + len(marks[0].who))
            if here.any():
                self._of_array(buffer, marks, op.index, verb, is_strong, cells[here] - first, who[here])

    def _of_array(
        self,
        buffer: Buffer,
        marks: Sequence[_Cells],
        op: int,
        verb: str,
        is_strong: bool,
        cells: np.ndarray,
        who: np.ndarray,
    ) -> None:
        written, strong, read, read_too = marks
        writes = verb in WRITES
        others = [written] + ([] if is_strong else [strong]) + ([read, read_too] if writes else [])
        for one in others:
            late = _unordered(one.who[cells], who)
            if one is strong and not writes:
                late &= one.by[cells] >= 0  # strong loads are marked so
            if late.any():
                self._report(buffer, op, cells[late], one.who[cells][late], one.by[cells][late], who[late])
        before, by = read.who[cells], read.by[cells]
        mine = strong if is_strong else written if writes else read
        mine.who[cells] = who
        mine.by[cells] = op if writes else ~op if is_strong else op
        if mine is read:  # of several readers that are not ordered two are kept
            for apart, who_too, by_too in (
                (_unordered(before, who), before, by),
                (_unordered(read.who[cells], who), who, np.full(len(who), op)),
            ):
                read_too.who[cells[apart]], read_too.by[cells[apart]] = who_too[apart], by_too[apart]
        if writes and not is_strong:
            winners = mine.who[cells]
            lost = (winners != who) & _unordered(winners, who)
            lost |= (winners != who) & (winners >> BLOCK == who >> BLOCK) & (winners >> 5 == who >> 5)
            if lost.any():
                self._report(buffer, op, cells[lost], winners[lost], mine.by[cells][lost], who[lost], True)

    def _report(
        self,
        buffer: Buffer,
        op: int,
        cells: np.ndarray,
        earlier: np.ndarray,
        by: np.ndarray,
        who: np.ndarray,
        together: bool = False,
    ) -> None:
        by = np.where(by < 0, ~by, by)
        same = earlier >> BLOCK == who >> BLOCK
        kinds = by.astype(np.int64) << 1 | same
        for kind in np.unique(kinds).tolist():
            at = np.flatnonzero(kinds == kind)
            one = at[0]
            pair = GlobalPair(kind >> 1, op, buffer.name, bool(kind & 1), together)
            if pair not in self.found:
                self.found[pair] = Example(
                    int(who[one] >> BLOCK) - 1,
                    int(earlier[one] & 1023),
                    int(who[one] & 1023),
                    int(cells[one]) * self.unit,
                    0,
                    other=int(earlier[one] >> BLOCK) - 1,
                )
            self.found[pair].count += len(at)


def _unordered(earlier: np.ndarray, who: np.ndarray) -> np.ndarray:
    """Where there was an access that is not ordered with this one; lanes of a warp are taken to be."""
    found = are_unordered(earlier, who)
    found &= (earlier ^ who) & ~np.int64(_LANE) != 0
    return found
