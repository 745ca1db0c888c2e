"""What requests cost in L1, beside plain counts and what was measured."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from lab.experiments import TIME
from lab.time.run_time import TimeRecording
from memsim.data import data_folder
from memsim.time.block_streams import GlobalRequests
from memsim.time.l1_cache import CachedRequests, cached_requests, l1_bytes
from memsim.time.launch_survey import FirstTouches

BOARDS = ("nvidia-h200", "nvidia-h100-80gb-hbm3")
LANES = np.arange(32)
LARGE = 1 << 20
NOBODY = FirstTouches(np.zeros(0, np.int64), np.zeros(0, np.int64))


def requests(*made: tuple[int, int, np.ndarray]) -> GlobalRequests:
    """Of (instruction, warp, addresses), each an execution of its own."""
    op, warp, addresses = zip(*made)
    return GlobalRequests(
        np.array(op),
        np.array(warp),
        np.arange(len(made)),
        np.array([np.broadcast_to(one, 32) for one in addresses]),
        np.ones((len(made), 32), np.bool_),
        np.arange(len(made)),
    )


@cache
def recorded(board: str) -> TimeRecording:
    return TIME.newest(data_folder("traces"), board)


def costs(
    made: GlobalRequests, size: int = LARGE, past: tuple[int, ...] = (), touches: FirstTouches | None = None
) -> CachedRequests:
    kinds = {0: ("load", 4), 1: ("load", 4), 2: ("store", 4)}
    return cached_requests(made, kinds, past, size, 8, touches or NOBODY)


def test_a_sector_misses_once() -> None:
    row = 4 * LANES
    found = costs(requests((0, 0, row), (0, 1, row), (0, 0, row + 64), (1, 0, row + 4096)))
    each = [found.costs[number] for number in found.number]
    assert [one.sectors for one in each] == [4, 4, 4, 4]
    assert [one.missing for one in each] == [4, 0, 2, 4]
    assert (found.hits, found.sectors) == (6, 16)
    assert found.nth.tolist() == [0, 0, 1, 0]
    assert each[1].follows == (0, 0)  # the same instruction's, by the other warp
    assert each[3].follows == (-1, 0)


def test_stores_write_through_and_loads_past_l1_miss() -> None:
    row = 4 * LANES
    found = costs(requests((0, 0, row), (2, 0, row), (1, 0, row)), past=(1,))
    assert [found.costs[number].missing for number in found.number] == [4, 4, 4]


@pytest.mark.parametrize(
    ("stride", "wavefronts", "tags"),
    [(4, 1, 1), (32, 8, 2), (64, 16, 4), (128, 32, 8), (132, 1, 8), (4096, 32, 8)],
)
def test_a_request_passes_the_stages_as_often_as_was_measured(
    stride: int, wavefronts: int, tags: int
) -> None:
    """Cycles for a load of sixteen warps (lab/time/sequences.cu), which may be a little more."""
    (cost,) = costs(requests((0, 0, stride * LANES))).costs
    assert (cost.wavefronts, cost.tags) == (wavefronts, tags)
    if stride > 4:
        how = {"op": "ldg4b", "warps": 16, "width": 4, "group": 1, "stride": stride}
        for recording in map(recorded, BOARDS):
            more, less = (recording.value("sequence", 1, k=k, **how) for k in (16, 8))
            assert max(wavefronts, tags) <= (more - less) / (8 * 16) <= 1.15 * max(wavefronts, tags) + 0.5


def test_a_cache_that_is_too_small_keeps_little() -> None:
    rows = [(0, 0, 128 * 32 * number + 128 * LANES) for number in range(16)]  # 512 lines
    fits, small = (costs(requests(*rows, *rows), size) for size in (1024 * 128, 256 * 128))
    assert fits.hits == 512
    assert small.hits < 64


@pytest.mark.parametrize("board", BOARDS)
def test_the_size_of_l1_is_what_shared_memory_leaves(board: str) -> None:
    """The share of hits of a second pass over so many bytes, beside the size."""
    recording = recorded(board)
    for shared in (64, 100, 132, 164, 196):
        resident = (228 << 10) // ((shared + 1) << 10)
        size = l1_bytes(shared << 10, resident)
        for line in recording.lines:
            if line.what == "size" and line.how["shared"] == str(shared) and line.how["shuffled"] == "0":
                held, hits = int(line.how["kilobytes"]) << 10, line.values[0] / line.values[1]
                assert hits > 0.95 or held > 0.7 * size
                assert hits < 0.3 or held < 1.4 * size
    assert l1_bytes(0, 8) == 256 << 10


@pytest.mark.parametrize("board", BOARDS)
def test_the_constants_are_as_measured(board: str) -> None:
    report = TIME.report(recorded(board))
    assert len(report.found) >= 12
    others = [one.name for one in report.found if not one.holds]
    assert others == (["fence"] if "h100" in board else [])  # takes 668 cycles on the H100 that was measured
