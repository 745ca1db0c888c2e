"""Requests lane by lane are the same as with a column for each lane, and cost the same."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.access import LaneRequests, Site, SiteRequests
from memsim.arch import SM_90
from memsim.instruction import Instruction
from memsim.model.alike import SPAN, SameCost, alike

RANDOM = np.random.default_rng(5)
REQUESTS = 200


def requests(width: int, reach: int = 1 << 12) -> tuple[LaneRequests, SiteRequests]:
    """Requests of 1 to 32 lanes, both ways; some lanes access the same address."""
    active = RANDOM.random((REQUESTS, 32)) < RANDOM.random((REQUESTS, 1))
    active[active.sum(1) == 0, 7] = True
    addresses = (1 << 40) + RANDOM.integers(0, reach, (REQUESTS, 32)) * width
    block, warp = np.arange(REQUESTS), np.arange(REQUESTS, dtype=np.int32) % 8
    lanes = np.nonzero(active)[1]
    by_lane = LaneRequests(addresses[active], lanes, active.sum(1), block, warp)
    return by_lane, SiteRequests(addresses, active, None, block, warp)


def assert_same(found: SiteRequests, expected: SiteRequests) -> None:
    assert np.array_equal(found.active, expected.active)
    assert np.array_equal(found.addresses[found.active], expected.addresses[found.active])
    assert np.array_equal(found.block, expected.block)
    assert np.array_equal(found.warp, expected.warp)


def test_a_column_for_each_lane() -> None:
    by_lane, expected = requests(4)
    assert len(by_lane) == REQUESTS
    assert_same(by_lane.expanded(), expected)


@pytest.mark.parametrize("chosen", [slice(20, 90), np.array([150, 3, 3, 70])])
def test_a_subset(chosen: slice | np.ndarray) -> None:
    by_lane, expected = requests(4)
    assert_same(by_lane[chosen].expanded(), expected[chosen])


@pytest.mark.parametrize("reach", [4, 40, 1 << 20])
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_the_cost_is_that_of_whole_warps(width: int, reach: int) -> None:
    by_lane, rows = requests(width, reach)
    expected = alike("global", "load", width, rows.addresses, rows.active, rows.partners, SM_90)
    found = SameCost(SM_90)(Site(0, Instruction("LDG"), "load", "global", width), by_lane)
    assert np.array_equal(found, expected)


def test_far_apart_they_are_costed_by_warp() -> None:
    site = Site(0, Instruction("LDG"), "load", "global", 4)
    by_lane, rows = requests(4, SPAN)
    assert by_lane.span >= SPAN
    tell = SameCost(SM_90)
    assert np.array_equal(tell(site, by_lane), tell(site, rows))
