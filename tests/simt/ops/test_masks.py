"""Masks: as bools and as words of warps they are the same, in every shape that broadcasts to the threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim.state.parts import Part
from memsim.state.predicates import both, either, from_bools, from_words, invert, to_bools, to_words

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
