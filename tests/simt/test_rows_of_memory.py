"""Loads of rows of consecutive elements, one for each warp: the same as element by element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim.state.parts import Part
from memsim.state.predicates import to_bools
from memsim.state.registers import Sum
from memsim.state.space_bytes import SpaceBytes

ROWS, THREADS, BASE = 5, 32, 1 << 20
RANDOM = np.random.default_rng(2)
DATA = RANDOM.integers(0, 256, 1 << 12, dtype=np.uint8)
SOME_ROWS = Part(np.array([[True], [False], [True], [True], [False]]))
SOME_LANES = Part((np.arange(THREADS) % 3 == 1)[None, :])


@pytest.mark.parametrize("active", [True, SOME_ROWS, SOME_LANES])
@pytest.mark.parametrize("step", [1, 2, -1, 0])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_each_thread_gets_its_element(dtype: Any, step: int, active: Any) -> None:
    """Rows in steps of one element are read as a whole, others are not."""
    memory = SpaceBytes(DATA[None].copy(), BASE, (ROWS, THREADS), "one")
    elements = DATA.view(dtype)
    first = RANDOM.integers(2 * THREADS, len(elements) - 2 * THREADS, (ROWS, 1))
    lanes = np.broadcast_to(to_bools(active), (ROWS, THREADS))
    first[~lanes.any(1)] = 1 << 30  # outside of the memory, but nobody reads there
    of_threads = step * np.arange(THREADS)[None, :]
    size = np.dtype(dtype).itemsize
    address = Sum(BASE, u=Part(first * size), v=Part(of_threads * size))
    found = memory.load(address, dtype, active)
    assert np.array_equal(np.broadcast_to(found, lanes.shape)[lanes], elements[(first + of_threads)[lanes]])


def test_the_last_row_ends_with_the_memory() -> None:
    memory = SpaceBytes(DATA[None].copy(), BASE, (2, THREADS), "one")
    elements = DATA.view(np.int32)
    first = np.array([[0], [len(elements) - THREADS]])
    address = Sum(BASE, u=Part(4 * first), v=Part(4 * np.arange(THREADS)[None, :]))
    assert np.array_equal(memory.load(address, np.int32, True), elements[first + np.arange(THREADS)])


@pytest.mark.parametrize("space", ["one", "block"])
@pytest.mark.parametrize("active", [SOME_ROWS, SOME_LANES])
@pytest.mark.parametrize("step", [0, 1, 3])
def test_others_load_what_an_active_thread_loads(space: str, active: Part, step: int) -> None:
    """So what is at the beginning of the memory does not widen the bounds of what is loaded."""
    memory = SpaceBytes(
        np.zeros((1 if space == "one" else ROWS, 1 << 12), np.uint8), BASE, (ROWS, THREADS), space
    )
    elements = memory.view(np.int32)
    elements[:] = np.arange(elements.shape[1])
    elements[:, 0] = 1 << 30
    first = np.arange(1, ROWS + 1)[:, None] * THREADS
    first[~np.broadcast_to(to_bools(active), (ROWS, THREADS)).any(1)] = -(1 << 40)
    address = Sum(BASE, u=Part(first * 4), v=Part(4 * step * np.arange(THREADS)[None, :]))
    found = memory.load(address, np.int32, active)
    lanes = np.broadcast_to(to_bools(active), (ROWS, THREADS))
    of_active = np.broadcast_to(found, lanes.shape)[lanes]
    assert np.array_equal(of_active, (first + step * np.arange(THREADS))[lanes])
    assert found.min() >= of_active.min()
    assert found.max() <= of_active.max()


def test_nobody_reads() -> None:
    memory = SpaceBytes(DATA[None].copy(), BASE, (ROWS, THREADS), "one")
    address = Sum(-BASE, v=Part(4 * np.arange(THREADS)[None, :]))
    assert not memory.positions(address, np.int32, False).any()
