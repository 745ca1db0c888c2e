"""Masks: as bools and as words of warps they are the same, in every shape that broadcasts to the threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim.state.parts import Part, select
from memsim.state.predicates import (
    ScatteredLanes,
    both,
    either,
    from_bools,
    from_words,
    invert,
    to_bools,
    to_words,
)

BLOCKS, THREADS = 5, 64
SHAPES = [(BLOCKS, THREADS), (1, THREADS), (BLOCKS, 1)]


def mask(shape: tuple[int, int], share: float = 0.5) -> Any:
    """A mask as a register and as bools."""
    array = np.random.default_rng(len(str(shape))).random(shape) < share
    return from_bools(array), array


def full(value: bool | Part) -> np.ndarray:
    return np.broadcast_to(to_bools(value), (BLOCKS, THREADS))


@pytest.mark.parametrize("b", [*SHAPES, True, False])
@pytest.mark.parametrize("a", SHAPES)
def test_what_holds_in_each_lane(a: Any, b: Any) -> None:
    one, bools = mask(a)
    other, others = (b, np.array([[b]])) if isinstance(b, bool) else mask(b, 0.3)
    assert np.array_equal(full(both(one, other)), np.broadcast_to(bools & others, (BLOCKS, THREADS)))
    assert np.array_equal(full(either(one, other)), np.broadcast_to(bools | others, (BLOCKS, THREADS)))
    assert np.array_equal(full(invert(one)), np.broadcast_to(~bools, (BLOCKS, THREADS)))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_lane_is_the_bit_of_its_number(shape: tuple[int, int]) -> None:
    one, bools = mask(shape)
    words = np.broadcast_to(to_words(one), (BLOCKS, THREADS // 32))
    lanes = np.broadcast_to(bools, (BLOCKS, THREADS)).reshape(BLOCKS, -1, 32)
    assert np.array_equal(words, (lanes << np.arange(32)).sum(2))
    assert np.array_equal(to_bools(from_words(words)).reshape(lanes.shape), lanes)


def test_where_all_lanes_agree_a_mask_is_a_bool() -> None:
    some = mask((BLOCKS, THREADS))[0]
    assert both(some, invert(some)) is False
    assert either(some, invert(some)) is True
    assert from_bools(np.ones((BLOCKS, THREADS), bool)) is True
    assert from_words(np.zeros((BLOCKS, 2), np.uint32)) is False
    assert [int(to_words(value)[0, 0]) for value in (True, False)] == [0xFFFFFFFF, 0]


def test_threads_that_are_no_whole_warps() -> None:
    """A mask of them has no words; it still holds lane by lane."""
    array, other = np.arange(20)[None, :] % 3 == 0, np.arange(20)[None, :] % 2 == 0
    one, two = from_bools(array), from_bools(other)
    assert np.array_equal(to_bools(both(one, two)), array & other)
    assert np.array_equal(to_bools(either(one, two)), array | other)
    assert np.array_equal(to_bools(invert(one)), ~array)
    assert both(one, invert(one)) is False and either(one, invert(one)) is True


def test_lanes_of_a_mask_that_is_narrowed() -> None:
    wide, narrow = mask((BLOCKS, THREADS), 0.6)[0], mask((BLOCKS, THREADS), 0.4)[0]
    assert wide.lanes.tolist() == np.flatnonzero(wide.array).tolist()
    inner = both(wide, invert(narrow))
    assert isinstance(inner, Part)
    assert inner.lanes.tolist() == np.flatnonzero(inner.array).tolist()
    innermost = both(inner, mask((1, THREADS), 0.5)[0])
    assert isinstance(innermost, Part)
    assert innermost.lanes.tolist() == np.flatnonzero(innermost.array).tolist()


def test_what_is_known_of_a_part() -> None:
    part = Part(np.array([[3, 4, 9]]))
    assert (part.lo, part.hi, part.bits, part.shape) == (3, 9, 15, (1, 3))
    assert part.scaled(2) is part.scaled(2) and part.scaled(2).array.tolist() == [[6, 8, 18]]
    assert part.uid != Part(part.array).uid and part.digest == Part(part.array).digest
    assert part.only(Part(np.array([[True, False, True]]))).array.tolist() == [3, 9]


def test_scattered_lanes_by_warp() -> None:
    scattered = ScatteredLanes(np.array([0, 5, 31, 64, 96, 127]))
    assert (len(scattered), scattered.warps.tolist(), scattered.counts.tolist()) == (6, [0, 2, 3], [3, 1, 2])


@pytest.mark.parametrize("dtype", [np.float16, np.int32, np.float64])
def test_selected_elements(dtype: type) -> None:
    yes: Any = np.arange(6).reshape(2, 3).astype(dtype)
    no: Any = -np.ones((2, 3), dtype)
    for held in (np.eye(2, 3, dtype=bool), np.array([[True], [False]]), np.array([[True, False, True]])):
        assert np.array_equal(select(held, yes, no), np.where(held, yes, no))
