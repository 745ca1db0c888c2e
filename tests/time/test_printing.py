"""What calls of printf ask of L1 and L2, as a profiler counted it."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest

from memsim.time import printing
from memsim.time.printing import GROUP, Calls, Printed, traffic_of_prints

PATH = Path(__file__).resolve().parents[2] / "docs" / "validation" / "prints.json"
LAUNCHES: list[dict[str, Any]] = json.loads(PATH.read_text("utf-8"))["launches"]


def groups(launch: dict[str, Any]) -> int:
    return -(-launch["lanes"] // GROUP)


def called(launch: dict[str, Any]) -> Printed:
    warps = np.arange(launch["warps"])
    calls = Calls(warps, np.full(len(warps), (1 << launch["lanes"]) - 1))
    return traffic_of_prints([calls] * launch["times"], len(warps))


def test_the_constants_are_the_means_of_what_was_counted() -> None:
    calls = [(one, one["warps"] * one["times"]) for one in LAUNCHES]
    assert len(calls) == 192
    assert round(mean(one["stored"] / made / one["lanes"] for one, made in calls)) == printing.OF_LANE
    assert round(mean(one["loaded"] / made for one, made in calls)) == printing.OF_WARP
    for name, constant in (
        ("local_stored", printing.STORED_OF_GROUP),
        ("local_loaded", printing.LOADED_OF_GROUP),
    ):
        assert round(mean(one[name] / made / groups(one) for one, made in calls)) == constant
    missed = [(one["stored"] - one["stored_found"]) / made / one["lanes"] for one, made in calls]
    assert round(mean(missed)) == printing.MISSED_OF_LANE
    assert round(mean((one["loaded"] - one["loaded_found"]) / made for one, made in calls)) == (
        printing.MISSED_OF_WARP
    )
    first = [
        (one["local_stored"] - one["local_stored_found"]) / made / groups(one)
        for one, made in calls
        if one["times"] == 1
    ]
    assert round(mean(first)) == printing.MISSED_FIRST


def test_hit_rates_are_those_that_were_counted_within_four_points() -> None:
    for one in LAUNCHES:
        found = called(one)
        assert abs(found.found / found.sectors - one["found"] / one["sectors"]) < 0.04, one


def test_a_warp_of_a_later_block_finds_the_local_memory_of_the_one_before() -> None:
    one_lane = np.ones(1, np.uint32)
    first, again = (
        traffic_of_prints([Calls(np.array([0]), one_lane), Calls(np.array([warp]), one_lane)], 4)
        for warp in (1, 4)
    )
    assert again.found - first.found == printing.MISSED_FIRST - printing.MISSED_AGAIN
    assert traffic_of_prints([Calls(np.array([0]), np.zeros(1, np.uint32))], 4) == Printed()


@pytest.mark.parametrize(("lanes", "count"), [(0x1, 1), (0x101, 2), (0x80000001, 2), (0xFFFFFFFF, 4)])
def test_lanes_whose_bytes_lie_in_one_sector_are_counted_together(lanes: int, count: int) -> None:
    found = traffic_of_prints([Calls(np.array([0]), np.array([lanes], np.uint32))], 1)
    of_lanes = printing.OF_LANE * lanes.bit_count()
    each = printing.STORED_OF_GROUP + printing.LOADED_OF_GROUP
    assert found.sectors == of_lanes + printing.OF_WARP + count * each
    assert found.written == of_lanes + count * printing.STORED_OF_GROUP
