"""Whether what threads read from global memory depends on the order in which they run.

Each cell of memory remembers its last write and its last reads. Two accesses of which one is a write are
ordered if one thread makes both, or if both are of one block with a block barrier between them.
If this holds for all cells that are both written and read, any order of warps and blocks reads the same.

Who accesses a cell, and when, is one number: that of the block and 1, how many barriers its block has passed,
and that of the thread in the block.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from memsim.access import Stretches
from memsim.order.order_listener import OrderListener, Threads
from memsim.state.launch_memory import Memory
from memsim.state.parts import Mask
from memsim.state.predicates import to_bools
from memsim.state.registers import to_array
from memsim.state.sums import Int

#: The first bits of the number of barriers and of that of the block.
BARRIERS, BLOCK = 11, 32
_BARRIERS = (1 << BLOCK) - (1 << BARRIERS)
#: In place of a thread: several of a block. (A block has at most 1,024.)
NOBODY = (1 << BARRIERS) - 1
#: In place of an access: several that are not ordered.
SEVERAL = -1
#: What copies in bulk are multiples of.
UNIT = 16


class GlobalOrder:
    """The accesses of a launch to the global memory from `base` on, in cells of `cell` bytes.

    depends: whether a value that was read may be another in another order; nothing is recorded from then on.
    reads_back: whether something was read that the launch has written.
    """

    def __init__(self, base: int, size: int, cell: int) -> None:
        self.base = base
        self.shift = cell.bit_length() - 1
        self.depends = False
        self.reads_back = False
        self.written, self.read = (np.zeros(-(-size // cell), np.int64) for _ in range(2))

    def access(self, address: np.ndarray, width: int, who: np.ndarray, reads: bool, writes: bool) -> None:
        """`who` [n] access `width` bytes at addresses [n]."""
        cells = address - self.base >> self.shift
        each = width >> self.shift
        if each > 1:
            cells = (cells[:, None] + np.arange(each)).ravel()
            who = np.repeat(who, each)
        if reads and not self.depends:
            self._reads(cells, who)
        if writes and not self.depends:
            self._writes(cells, who)

    def _reads(self, cells: np.ndarray, who: np.ndarray) -> None:
        written = self.written[cells]
        if written.any():
            self.reads_back = True
            if are_unordered(written, who).any():
                self.depends = True
                return
        read = self.read[cells]
        self.read[cells] = who
        winner = self.read[cells]
        of_others = are_unordered(read, who)
        several = of_others | (winner != who)
        if several.any():
            of_blocks = (of_others & (read >> BLOCK != who >> BLOCK)) | (winner >> BLOCK != who >> BLOCK)
            self.read[cells[several]] = who[several] | NOBODY
            self.read[cells[of_blocks]] = SEVERAL

    def _writes(self, cells: np.ndarray, who: np.ndarray) -> None:
        if are_unordered(self.read[cells], who).any():
            self.depends = True
            return
        written = self.written[cells]
        self.written[cells] = who
        several = are_unordered(written, who) | (self.written[cells] != who)
        if several.any():
            self.written[cells[several]] = SEVERAL


class GlobalListener(OrderListener):
    """Tells `GlobalOrder` of accesses. ways: whether an instruction reads, and writes, of those followed.
    copies: those that read at any time until their thread waits for them (`cp.async`).
    """

    def __init__(
        self, ways: Mapping[int, tuple[bool, bool]], copies: Collection[int], order: GlobalOrder
    ) -> None:
        self.order = order
        self._ways, self._copies = ways, copies

    def start_chunk(self, threads: Threads, memory: Memory) -> None:
        self._threads = threads
        self._barriers = np.zeros(1, np.int64)  # of each block, or of all

    def block_barrier(self, mask: Mask = True) -> None:
        self._barriers = self._barriers + to_bools(mask).any(axis=1)

    def access(self, instruction: int, space: str, address: Int, width: int, active: Mask) -> None:
        ways = self._ways.get(instruction) if space == "global" else None
        if ways is None or self.order.depends or active is False:
            return
        threads = self._threads
        who = accesses_by(threads.blocks[:, None], self._barriers[:, None], threads.numbers)
        each = (np.broadcast_to(array, threads.shape) for array in (to_array(address), who))
        where, who = (array.ravel() if active is True else array[threads.full(active)] for array in each)
        if instruction in self._copies:
            who = np.full(len(where), SEVERAL)
        self.order.access(where, width, who, *ways)

    def maps(self, instruction: int, read: Stretches) -> None:
        """By any thread of a block: only barriers order that."""
        if instruction in self._ways:
            barriers = np.broadcast_to(self._barriers, len(self._threads.blocks))
            who = accesses_by(self._threads.blocks[read.rows], barriers[read.rows], np.array(NOBODY))
            whose, units = read.units(UNIT)
            self.order.access(units * UNIT, UNIT, who[whose], True, False)

    def bulk_global(self, instruction: int, access: str, made: Stretches) -> None:
        """At any time: nothing orders that."""
        if ways := self._ways.get(instruction):
            _, units = made.units(UNIT)
            self.order.access(units * UNIT, UNIT, np.full(len(units), SEVERAL), *ways)

    def lose(self, instruction: int, space: str, active: Mask) -> None:
        if space == "global" and active is not False and instruction in self._ways:
            self.order.depends = True


def accesses_by(block: np.ndarray, barriers: np.ndarray, thread: np.ndarray) -> np.ndarray:
    """The numbers of accesses, of int64 arrays; barriers that are too many for it count as none."""
    passed = np.minimum(barriers, _BARRIERS >> BARRIERS)
    found: np.ndarray = (block + 1 << BLOCK) + (passed << BARRIERS) + thread
    return found


def are_unordered(earlier: np.ndarray, who: np.ndarray) -> np.ndarray:
    """Where there was an access (not 0) that is not ordered with this one."""
    found: np.ndarray = (earlier != 0) & (earlier != who)
    if found.any():
        apart = earlier ^ who
        before = (apart >> BLOCK == 0) & (earlier & _BARRIERS < who & _BARRIERS)
        found &= (apart & ~_BARRIERS != 0) & ~before
    found |= (earlier != 0) & (who == SEVERAL)
    return found
