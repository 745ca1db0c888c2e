"""The groups, wavefronts and bank loads of single lanes add up to what `shared_access` counts."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsim.errors import MemsimError
from memsim.model import shared_access
from memsim.model.checked_requests import CHUNK
from memsim.model.service import bank_load, serve_lanes
from tests.model.oracle import COUNTS_LANES, TWICE, words_of
from tests.model.test_against_oracle import LANES, SHARED_KINDS, requests


@given(st.data())
def test_wavefronts_and_groups_add_up_to_the_counts(data: st.DataObject) -> None:
    op, width = data.draw(st.sampled_from(SHARED_KINDS))
    addresses, active = data.draw(requests(width))
    cost, service = shared_access(addresses, width, op, active), serve_lanes(addresses, width, op, active)

    assert ((service.group > 0) == active).all()
    assert ((service.wavefront > 0) == active).all()
    taken = int(cost.wavefronts) // (2 if op in TWICE else 1)
    assert set(service.wavefront[active]) == set(range(1, taken + 1))
    groups = set(service.group[active].tolist())
    assert int(cost.conflicts) == taken - len(groups)
    in_group = [len(set(service.wavefront[service.group == group].tolist())) for group in groups]
    assert max(in_group, default=0) == int(cost.ways)
    assert (service.group[active] == LANES[active] // int(service.lanes) + 1).all()


@given(st.data())
def test_in_a_wavefront_a_bank_serves_one_word(data: st.DataObject) -> None:
    op, width = data.draw(st.sampled_from(SHARED_KINDS))
    addresses, active = data.draw(requests(width))
    service, load = serve_lanes(addresses, width, op, active), bank_load(addresses, width, op, active)

    served = defaultdict(set)  # (wavefront, bank) -> words, or lanes where each lane counts
    group_of = {}
    for lane in LANES[active]:
        wavefront = int(service.wavefront[lane])
        assert group_of.setdefault(wavefront, service.group[lane]) == service.group[lane]
        for word in words_of(int(addresses[lane]), width):
            served[wavefront, word % 32].add(int(lane) if op in COUNTS_LANES else word)
    assert all(len(words) == 1 for words in served.values())

    words = [sum(bank == of for _, of in served) for bank in range(32)]
    assert load.words.tolist() == words
    for bank in range(32):
        groups = [group_of[wavefront] for wavefront, of in served if of == bank]
        assert load.ways[bank] == max(map(groups.count, groups), default=0)


@given(st.data())
def test_the_fullest_bank_gives_the_ways(data: st.DataObject) -> None:
    op, width = data.draw(st.sampled_from(SHARED_KINDS))
    addresses, active = data.draw(requests(width))
    cost, load = shared_access(addresses, width, op, active), bank_load(addresses, width, op, active)
    assert load.ways.max() == cost.ways


def test_two_rows_in_the_same_banks_and_the_same_rows_side_by_side() -> None:
    collide = LANES // 2 * 4 + LANES % 2 * 2048
    service, load = serve_lanes(collide, 4, "store"), bank_load(collide, 4, "store")
    assert service.wavefront.tolist() == [1, 2] * 16
    assert load.ways.tolist() == load.words.tolist() == [2] * 16 + [0] * 16

    clean = collide ^ (LANES % 2 * 64)
    service, load = serve_lanes(clean, 4, "store"), bank_load(clean, 4, "store")
    assert service.wavefront.tolist() == [1] * 32
    assert load.ways.tolist() == load.words.tolist() == [1] * 32


def test_a_wide_load_has_groups_and_no_conflict() -> None:
    service, load = serve_lanes(LANES * 16, 16), bank_load(LANES * 16, 16)
    assert service.wavefront.tolist() == service.group.tolist() == [lane // 8 + 1 for lane in LANES]
    assert (load.words.tolist(), load.ways.tolist()) == ([4] * 32, [1] * 32)
    assert (int(service.lanes), int(service.pairs)) == (8, 0)


@pytest.mark.parametrize(("units", "pairs"), [(LANES // 2, 1), (LANES % 2 + LANES // 4 * 2, 2), (LANES, 0)])
def test_pairs_merge_groups(units: np.ndarray, pairs: int) -> None:
    service = serve_lanes(units * 16, 16)
    assert (int(service.pairs), int(service.lanes)) == (pairs, 16 if pairs else 8)
    assert int(serve_lanes(units * 16, 16, "store").pairs) == 0


def test_equal_addresses_share_unless_each_lane_counts() -> None:
    assert serve_lanes(LANES * 0, 4).wavefront.tolist() == [1] * 32
    assert serve_lanes(LANES * 0, 4, "atomic").wavefront.tolist() == list(range(1, 33))
    assert bank_load(LANES * 0, 4).words.tolist() == [1] + [0] * 31
    assert bank_load(LANES * 0, 4, "atomic").words.tolist() == [32] + [0] * 31


@pytest.mark.parametrize(("op", "width"), [("load", 16), ("load", 4), ("atomic", 4), ("store", 8)])
def test_many_requests_are_the_same_as_one_by_one(op: str, width: int) -> None:
    rng = np.random.default_rng(5)
    addresses = rng.integers(0, 64, (CHUNK + 3, 32)) * width
    addresses[::3, 1::2] = addresses[::3, ::2]
    active = rng.random((CHUNK + 3, 32)) < 0.7
    all_lanes, all_banks = serve_lanes(addresses, width, op, active), bank_load(addresses, width, op, active)
    for row in (0, 1, 3, CHUNK - 1, CHUNK, CHUNK + 2):
        lanes = serve_lanes(addresses[row], width, op, active[row])
        banks = bank_load(addresses[row], width, op, active[row])
        for name in ("group", "wavefront", "lanes", "pairs"):
            assert np.array_equal(getattr(all_lanes, name)[row], getattr(lanes, name))
        for name in ("words", "ways"):
            assert np.array_equal(getattr(all_banks, name)[row], getattr(banks, name))


def test_bad_requests_are_refused_and_good_ones_keep_their_shape() -> None:
    for function in (serve_lanes, bank_load):
        with pytest.raises(MemsimError, match="misaligned"):
            function(LANES * 4 + 1, 4)
        with pytest.raises(MemsimError, match="not modelled"):
            function(LANES * 4, 4, "loat")
    assert serve_lanes(np.zeros((2, 3, 32), int), 4).wavefront.shape == (2, 3, 32)
    assert bank_load(np.zeros((2, 3, 32), int), 4).words.shape == (2, 3, 32)
