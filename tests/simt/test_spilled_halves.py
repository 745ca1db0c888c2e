"""A half of a register that is spilled by itself is loaded with the whole word."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import from_bools
from memsim.state.space_bytes import SpaceBytes

WHY = Poison("never written", None)
OTHER = Poison("an unknown value", None)


def fresh() -> SpaceBytes:
    store = SpaceBytes(np.zeros((4, 16), np.uint8), 0, (1, 4), "thread")
    store.never_written(WHY, 16)
    return store


def test_the_rest_of_a_word_that_is_written_in_part_is_zero() -> None:
    store = fresh()
    store.begin_words(4, True)
    store.store(4, np.full((1, 4), 7, np.uint16), True)
    assert store.load(4, np.uint32, True).tolist() == [[7] * 4]
    with pytest.raises(Poisoned):
        store.load(0, np.uint32, True)  # nobody wrote anything there
    with pytest.raises(Poisoned):
        store.load(8, np.uint32, True)


def test_only_of_the_threads_that_write() -> None:
    store, first = fresh(), from_bools(np.array([[True, False, False, False]]))
    store.begin_words(4, first)
    store.store(6, np.full((1, 4), 7, np.uint16), first)
    assert store.load(4, np.uint32, first)[0, 0] == 7 << 16
    assert np.broadcast_to(store.lost(4, np.uint32, True).array, (1, 4)).tolist() == [
        [False, True, True, True]
    ]  # type: ignore[union-attr]


def test_what_is_unknown_for_another_reason_stays_so() -> None:
    store = fresh()
    store.forget(6, np.uint16, True, OTHER)
    store.begin_words(4, True)
    store.store(4, np.full((1, 4), 7, np.uint16), True)
    with pytest.raises(Poisoned) as caught:
        store.load(4, np.uint32, True)
    assert caught.value.poison.story() == OTHER.story()
