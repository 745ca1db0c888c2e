"""Tells `BlockOrder` of what orders the warps of a launch: barriers, fences, phases, and waits for copies."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise, repeat

import numpy as np

from memsim.arch.units import WARP
from memsim.isa.op import Trait
from memsim.isa.program import SHARED, Program
from memsim.launch import Launch
from memsim.order.global_order import accesses_by
from memsim.order.order_listener import OrderListener, Threads, warps_in
from memsim.sanitizer.block_order import BlockOrder
from memsim.sanitizer.bulk_copies import COPIES, BulkReads, BulkWrites, CopyGroups, Place, places_in
from memsim.state.launch_memory import Memory
from memsim.state.parts import Mask
from memsim.state.predicates import to_bools


class BlockOrderListener(OrderListener):
    """Of a launch. is_partial: not all is known that orders accesses."""

    def __init__(self, program: Program, launch: Launch) -> None:
        self._is_copy = np.array([op.is_bulk for op in program.ops], np.bool_)
        ops = [op for op in program.ops if Trait.IDLES not in op.traits]
        #: What is known of the instruction before each.
        self._before = {op.index: before.traits for before, op in pairwise(ops)}
        #: `cp.async`, which reads global memory until its warp has waited for its group.
        self._copies = {op.index for op in program.ops if "cp_async" in op.accesses}
        agents = COPIES + launch.warps if self._is_copy.any() or self._copies else launch.warps
        self._order = BlockOrder(launch.blocks, launch.warps, agents)
        self._bulk, self._bulk_reads = BulkWrites(), BulkReads()
        #: Copies by `cp.async` that read global memory, by their ages.
        self._reads: CopyGroups[int] = CopyGroups()
        #: Whether what waits besides block barriers may matter.
        self._is_ordered = False

    @property
    def is_partial(self) -> bool:
        """Whether not all is known that orders accesses."""
        return self._order.is_full

    @property
    def _is_followed_order(self) -> bool:
        """Whether there are accesses that fences may order, of rows that are blocks."""
        raise NotImplementedError

    def start_chunk(self, threads: Threads, memory: Memory) -> None:
        self._threads = threads
        self._barriers = np.zeros((len(threads.blocks), 1), np.int64)
        self._order.start(threads.blocks)
        self._bulk, self._bulk_reads, self._reads = BulkWrites(), BulkReads(), CopyGroups()

    def block_barrier(self, mask: Mask = True) -> None:
        """What a warp accessed that has exited since, a barrier of the others does not order."""
        here: np.ndarray = np.broadcast_to(np.any(to_bools(mask), axis=1), len(self._barriers))
        if self._threads.alive is not True and self._is_followed_order:
            gone = here[:, None] & ~self._threads.warps_of(self._threads.alive)
            if gone.any():
                self._order.exit(*np.nonzero(gone))
        self._barriers = self._barriers + here[:, None]
        self._order.pass_barrier(here)

    def commit(self, mask: Mask) -> None:
        for place in self._places(mask) if self._bulk.are_begun else ():
            self._bulk.commit(place)
        for place in self._places(mask) if self._reads.are_begun else ():
            self._reads.commit(place)
            self._order.ages[place[0]] += 1

    def wait(self, mask: Mask, left: int) -> None:
        for place in self._places(mask) if self._bulk.are_begun else ():
            self._bulk.wait(place, left)
        for place in self._places(mask) if self._reads.are_begun else ():
            if ages := self._reads.wait(place, left):
                self._order.learn_of(*place, COPIES + place[1], max(ages))

    def _begin_reads(self, rows: np.ndarray, warps: np.ndarray) -> None:
        """Warps [n] of blocks [n] copy by `cp.async`."""
        for row, warp in {*zip(rows.tolist(), warps.tolist())}:
            self._reads.begin((row, warp), int(self._order.ages[row]))

    def copies_arrive(self, rows: np.ndarray, warps: np.ndarray, columns: np.ndarray) -> None:
        for row, warp, column in zip(rows.tolist(), warps.tolist(), columns.tolist()):
            if self._is_ordered and self._reads.are_begun:
                self._order.hear((row, column), row, COPIES + warp)

    def fence_memory(self, mask: Mask, releases: bool, of_block: bool) -> None:
        for row, warp in self._places(mask) if self._bulk.are_waited and not of_block else ():
            now = accesses_by(self._threads.blocks[row], self._barriers[row, 0], np.int64(warp * WARP))
            for marks, cells in self._bulk.complete((row, warp)):
                marks.put(cells, now, self._order.ages[row], marks.by[cells])
        if self._is_followed_order:
            self._order.fence(*self._warps(mask), releases, of_block)

    def fence_proxies(self, instruction: int, mask: Mask, space: str) -> None:
        """One for shared memory is for all directly behind a fence: so ptxas writes `fence.proxy.async`."""
        is_global = space != SHARED or Trait.FENCES in self._before[instruction]
        if is_global and self._is_followed_order:
            self._order.fence_proxies(*self._warps(mask))

    def arrive_named(self, number: int, mask: Mask) -> None:
        if self._is_ordered:
            rows, warps = self._warps(mask)
            self._order.tell(rows, warps, (("barrier", number, row) for row in rows.tolist()))

    def pass_named(self, number: int, mask: Mask) -> None:
        if self._is_ordered:
            self.arrive_named(number, mask)
            rows, warps = self._warps(mask)
            keys = [("barrier", number, row) for row in rows.tolist()]
            self._order.learn(rows, warps, keys)
            for key in {*keys}:
                self._order.move(key, None)

    def arrive_cluster(self, mask: Mask) -> None:
        if self._is_ordered:
            rows, warps = self._warps(mask)
            self._order.tell(rows, warps, self._clusters(rows))

    def pass_cluster(self, mask: Mask) -> None:
        if self._is_ordered and mask is not False:
            rows, warps = self._warps(mask)
            self._order.learn(rows, warps, self._clusters(rows))

    def arrive_grid(self, mask: Mask) -> None:
        if self._is_followed_order:
            self._order.tell(*self._warps(mask), repeat("grid"))

    def pass_grid(self, mask: Mask) -> None:
        if self._is_followed_order and mask is not False:
            self._order.learn(*self._warps(mask), repeat("grid"))

    def arrive(self, rows: np.ndarray, warps: np.ndarray, blocks: np.ndarray, columns: np.ndarray) -> None:
        if self._is_ordered:
            self._order.tell(rows, warps, zip(blocks.tolist(), columns.tolist()))

    def complete_phase(self, rows: np.ndarray, columns: np.ndarray) -> None:
        if self._is_ordered:
            for key in {*zip(rows.tolist(), columns.tolist())}:
                self._order.move(key, ("over", *key))
                for row, warp in self._bulk_reads.end(key):
                    self._order.hear(("over", *key), row, COPIES + warp)

    def pass_phase(self, rows: np.ndarray, warps: np.ndarray, columns: np.ndarray) -> None:
        if self._is_ordered:
            keys = (("over", *key) for key in zip(rows.tolist(), columns.tolist()))
            self._order.learn(rows, warps, keys)

    def _warps(self, mask: Mask) -> tuple[np.ndarray, np.ndarray]:
        return warps_in(self._threads, mask)

    def _places(self, mask: Mask) -> list[Place]:
        return places_in(self._threads, mask)

    def _clusters(self, rows: np.ndarray) -> Iterable[tuple[str, int]]:
        return (("cluster", first) for first in self._threads.peers[rows].min(1).tolist())
