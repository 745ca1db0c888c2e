"""The order in which fixed points are worked out."""

from __future__ import annotations

from memsim.simt.control_graph import Sweeps


def test_a_block_that_was_passed_waits_for_the_next_sweep() -> None:
    work = Sweeps[int](lambda block: block)
    for block in (3, 1, 2, 1):
        work.add(block)
    assert [work.pop(), work.pop()] == [1, 2]
    for block in (4, 2, 1, 4):
        work.add(block)
    assert [work.pop() for _ in range(4)] == [3, 4, 1, 2]
    assert not work


def test_backward_the_end_of_the_code_comes_first() -> None:
    work = Sweeps[int](lambda block: -block)
    for block in (1, 3, 2):
        work.add(block)
    assert work.pop() == 3
    work.add(3)
    work.add(1)
    assert [work.pop() for _ in range(3)] == [2, 1, 3]
