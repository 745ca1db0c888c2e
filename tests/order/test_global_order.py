"""Which values in global memory depend on the order of threads, compared with all pairs of accesses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from memsim.order.global_order import SEVERAL, GlobalOrder, accesses_by

THREADS = 2


@dataclass(frozen=True)
class Access:
    """One thread's access to one cell, after so many barriers of its block.

    is_copy: it is made at any time.
    """

    thread: int
    barriers: int
    cell: int
    writes: bool
    is_copy: bool = False

    def comes_before(self, other: Access) -> bool:
        """Is this one, which was recorded first, ordered with another?"""
        if self.is_copy or other.is_copy:
            return False
        of_block = self.thread // THREADS == other.thread // THREADS
        return self.thread == other.thread or (of_block and self.barriers < other.barriers)


def by_pairs(accesses: list[Access]) -> tuple[bool, bool]:
    """Whether a value that is read depends on the order, and whether one is read that was written."""
    depends = reads_back = False
    for cell in {one.cell for one in accesses}:
        here = [one for one in accesses if one.cell == cell]
        unordered_writes = False
        for at, one in enumerate(here):
            before = here[:at]
            if not one.writes:
                reads_back |= any(other.writes for other in before)
                depends |= unordered_writes
            for other in before:
                if not other.comes_before(one):
                    depends |= one.writes != other.writes
                    unordered_writes |= one.writes and other.writes
    return depends, reads_back


def may_be_together(one: Access, other: Access) -> bool:
    """May one instruction of several threads make both?"""
    of_block = one.thread // THREADS == other.thread // THREADS
    if one.is_copy or other.is_copy:
        return one.is_copy and other.is_copy
    return one.thread != other.thread and (not of_block or one.barriers == other.barriers)


def recorded(accesses: list[Access], together: int) -> tuple[bool, bool]:
    """The same by `GlobalOrder`, with up to so many like accesses of different threads as one."""
    order = GlobalOrder(1024, 64, 4)
    while accesses:
        first, count = accesses[0], 1
        while (
            count < min(together, len(accesses))
            and accesses[count].writes == first.writes
            and all(may_be_together(one, accesses[count]) for one in accesses[:count])
        ):
            count += 1
        group, accesses = accesses[:count], accesses[count:]
        thread = np.array([one.thread for one in group])
        barriers = np.array([one.barriers for one in group])
        address = 1024 + 4 * np.array([one.cell for one in group])
        who = accesses_by(thread // THREADS, barriers, thread % THREADS)
        if first.is_copy:
            who[:] = SEVERAL
        order.access(address, 4, who, not first.writes, first.writes)
        if order.depends:
            break
    return order.depends, order.reads_back


def drawn(rng: np.random.Generator) -> list[Access]:
    """Accesses of two blocks of two threads; barriers of a block come between its threads' accesses."""
    barriers = [0, 0]
    found = []
    for _ in range(int(rng.integers(2, 9))):
        thread = int(rng.integers(4 if rng.random() < 0.5 else 2))
        block = thread // THREADS
        barriers[block] += int(rng.random() < 0.4)
        writes, is_copy = bool(rng.random() < 0.4), bool(rng.random() < 0.1)
        found.append(Access(thread, barriers[block], int(rng.integers(2)), writes, is_copy))
    return found


@pytest.mark.some(1)
@pytest.mark.parametrize("together", [1, 4])
def test_as_all_pairs(together: int) -> None:
    rng = np.random.default_rng(20261123)
    seen = set()
    for _ in range(3000):
        accesses = drawn(rng)
        depends, reads_back = by_pairs(accesses)
        found = recorded(accesses, together)
        assert found[0] == depends, accesses
        if not depends:
            assert found[1] == reads_back, accesses
        seen.add((depends, reads_back))
    assert len(seen) == 4


def order_of(cell: int, *accesses: tuple[int, int, int, bool]) -> GlobalOrder:
    """Accesses of threads of different blocks: (address, width, thread, writes)."""
    order = GlobalOrder(0, 64, cell)
    for address, width, thread, writes in accesses:
        none = np.zeros(1, np.int64)
        who = accesses_by(np.array([thread]), none, none)
        order.access(np.array([address]), width, who, not writes, writes)
    return order


@pytest.mark.parametrize("cell", [1, 2, 4])
def test_width(cell: int) -> None:
    """16 bytes are read, of which another thread writes the last 4, or the 4 behind them."""
    assert order_of(cell, (0, 16, 0, False), (12, 4, 1, True)).depends
    assert not order_of(cell, (0, 16, 0, False), (16, 4, 1, True)).depends


def test_bytes_beside_each_other() -> None:
    """Two threads' bytes in one word are apart if cells are bytes; in cells of words they may not be."""
    accesses = [(0, 1, 0, True), (1, 1, 1, True), (0, 1, 0, False)]
    assert not order_of(1, *accesses).depends
    assert order_of(4, *accesses).depends
