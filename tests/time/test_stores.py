"""Which stores find their line in L1, and which wait for those that follow, as a profiler counted them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim.time.block_streams import GlobalRequests
from memsim.time.l1_cache import FOUND_AGAIN, SOON, WAITING_LINES, CachedRequests, cached_requests
from memsim.time.l1_lookups import AccessKind
from memsim.time.launch_survey import FirstTouches

PATH = Path(__file__).resolve().parents[2] / "docs" / "validation" / "stores.json"
LAUNCHES: list[dict[str, Any]] = json.loads(PATH.read_text("utf-8"))["launches"]
LARGE = 1 << 18
NOBODY = FirstTouches(np.zeros(0, np.int64), np.zeros(0, np.int64))
#: From so many pauses on, of 31 cycles each, all that a warp stored before is there.
PASSED = 4


def again_by_one_warp() -> list[dict[str, Any]]:
    """Launches of one warp that stores twice, long after."""
    return [
        one
        for one in LAUNCHES
        if one["warps"] == 1 and one["times"] == 2 and not one["at_once"] and one["pauses"] >= PASSED
    ]


def cached(launch: dict[str, Any], between: int = 100) -> CachedRequests:
    """The requests of a launch, all warps' first ones before their second ones. between: instructions."""
    warps, times = launch["warps"], launch["times"]
    time, warp = np.divmod(np.arange(warps * times), warps)
    lanes = np.arange(32)
    at = warp * launch["warp"] + time * launch["step"]
    made = GlobalRequests(
        np.zeros(len(at), np.int64),
        warp,
        time,
        at[:, None] + lanes * launch["apart"],
        np.broadcast_to(lanes < launch["lanes"], (len(at), 32)),
        time * between,
    )
    return cached_requests(made, {0: AccessKind("store", launch["bytes"])}, LARGE, warps, NOBODY, {})


def test_a_warp_finds_all_lines_that_it_stored_to_a_while_ago() -> None:
    looked_at = [one for one in again_by_one_warp() if not one["loads"]]
    assert {one["lanes"] * one["apart"] // 128 for one in looked_at} >= {1, 2, 4, 8, 16, 32}
    for one in looked_at:
        assert one["found"] == (one["sectors"] - 1) // 2 == cached(one).hits


def test_what_was_loaded_is_found_by_the_first_store_too() -> None:
    looked_at = [one for one in again_by_one_warp() if one["loads"]]
    assert len(looked_at) == 3 * 12
    assert all(one["found"] == one["sectors"] - 1 for one in looked_at)


def test_28_lines_wait_for_the_stores_that_follow_at_once() -> None:
    """Eight stores of a column each: the first goes alone, as the code of the next ones has to come."""
    columns = {one["lanes"]: one for one in LAUNCHES if one["at_once"] == 8 and one["apart"] == 128}
    assert len(columns) == 13
    for lanes, one in columns.items():
        sent = one["written"] - 1
        assert sent <= 2 * lanes if lanes <= 4 * WAITING_LINES else sent > 5 * lanes


def test_stores_of_few_lines_that_follow_at_once_go_to_l2_together() -> None:
    for apart, is_together in ((4 * WAITING_LINES, True), (4 * WAITING_LINES + 4, False)):
        launch = {"warps": 1, "times": 2, "warp": 0, "step": 4, "apart": apart, "lanes": 32, "bytes": 4}
        found = cached(launch)
        assert found.written == found.sectors * (0.5 if is_together else 1), apart


def test_lines_that_do_not_wait_are_not_all_found_at_once_but_a_while_later() -> None:
    """Requests of eight lines, four sectors of each; progress: instructions between the two."""
    wide = {"warps": 1, "times": 2, "warp": 0, "step": 4, "apart": 32, "lanes": 32, "bytes": 4}
    for progress, share in ((1, FOUND_AGAIN), (SOON, FOUND_AGAIN), (SOON + 1, 1.0)):
        assert cached(wide, progress).hits == pytest.approx(32 * share)
