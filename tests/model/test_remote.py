"""Requests to other blocks' shared memory whose lanes do not share, against a scalar oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsim import MemsimError
from memsim.arch import SM_90
from memsim.model.choice import why_no_cost
from memsim.model.coalescing import global_access
from memsim.model.remote import is_sure, remote_access

OP = "cluster_async_store"
lanes = st.lists(st.one_of(st.none(), st.integers(0, 60)), min_size=32, max_size=32)


def oracle(places: list[int], width: int) -> tuple[int, int, int]:
    """One turn after the other: each takes the first lane at each address."""
    sectors = lines = 0
    left = list(places)
    while left:
        taken = set(left)
        sectors += len({place // 32 for place in taken})
        lines += len({place // 128 for place in taken})
        for place in taken:
            left.remove(place)
    return sectors, lines, -(-len(places) * width // 32)


@given(st.lists(lanes, min_size=1, max_size=3), st.sampled_from([4, 8, 16]))
def test_turns_are_the_oracles(rows: list[list[int | None]], width: int) -> None:
    addresses = np.array([[0 if lane is None else lane * width for lane in row] for row in rows])
    active = np.array([[lane is not None for lane in row] for row in rows])
    cost = remote_access(addresses, width, OP, active)
    found = zip(cost.sectors.tolist(), cost.lines.tolist(), cost.ideal_sectors.tolist())
    assert list(found) == [oracle([lane * width for lane in row if lane is not None], width) for row in rows]


def test_lanes_apart_cost_what_they_do_in_global_memory() -> None:
    addresses = np.arange(32) * 36 // 4 * 4
    alone, shared = remote_access(addresses, 4, OP), global_access(addresses, 4, "store")
    assert (alone.sectors, alone.lines, alone.ideal_sectors) == (
        shared.sectors,
        shared.lines,
        shared.ideal_sectors,
    )
    assert remote_access(np.zeros(32, int), 4, OP).lines == 32
    assert global_access(np.zeros(32, int), 4, "store").lines == 1


def test_lanes_in_more_than_four_lines_have_no_rule() -> None:
    on, partner = np.ones((1, 32), bool), np.full((1, 32), -1)
    for lines, sure in ((1, True), (4, True), (5, False), (32, False)):
        addresses = 128 * (np.arange(32) % lines)[None]
        assert is_sure(addresses, on).tolist() == [sure]
        why = why_no_cost(addresses, 4, OP, "shared", on, partner, SM_90)
        assert (why is None) == sure
    few = on & (np.arange(32) < 4)  # the others do not count
    assert is_sure(128 * np.arange(32)[None], few).all()


def test_what_is_not_modelled_is_refused() -> None:
    with pytest.raises(MemsimError, match="of 2 bytes per lane is not modelled"):
        remote_access(np.zeros(32, int), 2, OP)
    with pytest.raises(MemsimError, match="lanes of a warp"):
        remote_access(np.zeros(31, int), 4, OP)
