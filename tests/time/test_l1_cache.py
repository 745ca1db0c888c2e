"""What requests cost in L1, beside plain counts and what was measured."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from lab.experiments import TIME
from lab.time.run_time import TimeRecording
from memsim.data import data_folder
from memsim.time.block_streams import GlobalRequests
from memsim.time.l1_cache import (
    FOUND_AGAIN,
    MOST_ROWS,
    CachedRequests,
    cached_requests,
    l1_bytes,
)
from memsim.time.l1_lookups import AccessKind
from memsim.time.latencies import Latencies
from memsim.time.launch_survey import FirstTouches
from memsim.time.timed_instructions import PARTS, CostSetting, TimedInstruction, with_cost

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


#: Instructions: two loads of global memory and a store; of local memory a store, a load and the last one.
KINDS = {
    0: AccessKind("load", 4),
    1: AccessKind("load", 4),
    2: AccessKind("store", 4),
    3: AccessKind("store", 4, is_local=True),
    4: AccessKind("load", 4, is_local=True),
    5: AccessKind("load", 4, is_local=True, is_last=True),
}


def costs(
    made: GlobalRequests,
    size: int = LARGE,
    touches: FirstTouches | None = None,
    kinds: dict[int, AccessKind] = KINDS,
) -> CachedRequests:
    return cached_requests(made, kinds, size, 8, touches or NOBODY, {})


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


def test_what_misses_is_in_lines_and_rows_of_dram() -> None:
    row = 4 * LANES
    side_by_side, again = (0, 0, 16 * LANES), (0, 1, 16 * LANES)
    in_eights = (1, 0, LANES // 4 * 4096 + LANES % 4 * 16 + (1 << 22))
    found = costs(
        requests(side_by_side, again, in_eights, (1, 0, 128 * LANES + (1 << 20)), (1, 0, row + 4096))
    )
    each = [found.costs[number] for number in found.number]
    assert [one.lines for one in each] == [4, 0, 8, 32, 1]
    assert [one.rows for one in each] == [0, 0, 3, 0, 0]  # eight rows are twice as many three times
    assert [one.moves for one in each] == [1, 0, 1, 1, 1]
    many = costs(requests((0, 0, 4096 * LANES)))
    assert many.costs[0].rows == MOST_ROWS


def test_what_is_not_kept_misses_as_often_as_what_is() -> None:
    """Of three requests of the first instruction one misses; ten times as many are made of it."""
    row = 4 * LANES
    made = requests((0, 0, row), (0, 1, row), (0, 0, row), (1, 0, row + 4096))
    found = cached_requests(made, KINDS, LARGE, 8, NOBODY, {0: 10.0})
    assert (found.misses(0), found.misses(1), found.misses(2)) == (1 / 3, 1.0, 1.0)
    assert (found.sectors, found.hits, found.read) == (10 * 12 + 4, 10 * 8, 10 * 4 + 4)


def test_l2_takes_longer_for_parts_of_sectors() -> None:
    row, apart = 4 * LANES, 8 * LANES
    kinds = {**KINDS, 1: AccessKind("reduction", 4)}
    made = requests(
        (2, 0, row), (2, 1, apart + 4096), (2, 2, apart + 8192), (2, 2, apart + 8196), (1, 3, row)
    )
    found = costs(made, kinds=kinds)
    each = [found.costs[number] for number in found.number]
    assert [one.partial for one in each] == [0, 8, 0, 0, 0]  # the third is filled by the fourth
    assert [one.turns for one in each] == [0, 0, 0, 0, 4]
    assert [one.missing for one in each] == [4, 8, 8, 0, 4]
    store = TimedInstruction(0, is_global=True, writes=True)
    setting = CostSetting(True, 1.0, 0.0, Latencies(partial=150, gap=25, alone=0, rows=0))
    whole, part, *_, added = (with_cost(store, one, False, setting).sectors for one in each)
    assert (part, added) == (3 * whole, 1.5 * whole)


def test_a_line_of_which_little_is_stored_takes_l2_longer() -> None:
    found = costs(requests((2, 0, 4 * LANES), (2, 0, 4096 + 128 * LANES), (2, 0, 64 * LANES + 8192)))
    each = [found.costs[number] for number in found.number]
    assert [one.gaps for one in each] == [0, 3 * 32, 2 * 16]
    store = TimedInstruction(0, is_global=True, writes=True)
    setting = CostSetting(True, 1.0, 0.0, Latencies(partial=140, gap=25, alone=0, rows=0))
    column = with_cost(store, each[1], False, setting)
    assert column.sectors == int(32 * (1.4 + 3 * 0.25) * PARTS)


def test_lanes_that_add_to_one_word_take_turns() -> None:
    row = 4 * LANES
    kinds = {**KINDS, 1: AccessKind("atomic", 4)}
    found = costs(
        requests((1, 0, 0 * LANES), (1, 0, row), (1, 0, row // 16 * 4), (1, 0, 32 * LANES)), kinds=kinds
    )
    each = [found.costs[number] for number in found.number]
    assert [one.turns for one in each] == [32, 4, 4, 32]
    atomic = TimedInstruction(0, is_global=True)
    setting = CostSetting(True, 1.0, 10.0, Latencies(partial=150, gap=25, alone=0, rows=0))
    made = with_cost(atomic, each[0], False, setting)
    assert (made.turns, made.sectors) == (320 * PARTS, 48 * PARTS)


def test_stores_write_through_and_loads_past_l1_miss() -> None:
    row = 4 * LANES
    past = {**KINDS, 1: AccessKind("load", 4, is_past=True)}
    found = costs(requests((0, 0, row), (2, 0, row), (1, 0, row)), kinds=past)
    assert [found.costs[number].missing for number in found.number] == [4, 4, 4]
    assert (found.read, found.written) == (8, 4)


def test_a_store_finds_lines_but_not_all_if_it_is_scattered() -> None:
    """Sectors of four lines, of eight, and a column of lines, by one warp and by two."""
    halves = [(2, 0, 2 * LANES), (2, 1, 2 * LANES + 64)]
    assert costs(requests(*halves), kinds={2: AccessKind("store", 2)}).hits == 2
    for apart, warp, share in (
        (16, 0, 1.0),
        (16, 1, 1.0),
        (32, 0, FOUND_AGAIN),
        (128, 0, 1.0),
        (32, 1, FOUND_AGAIN),
        (128, 1, FOUND_AGAIN),
    ):
        found = costs(requests((2, 0, apart * LANES), (2, warp, apart * LANES + 4)))
        assert abs(found.hits - share * min(apart, 32)) < 1


def test_a_line_that_was_brought_in_again_has_only_what_was_asked_for_since() -> None:
    """The two halves of a line, far apart; then the second request of each is for a line that is gone."""
    far = [(0, 0, 4096 * (2 + number) + 128 * LANES) for number in range(64)]
    halves = [(1, 0, np.zeros(32, np.int64)), (1, 0, 64 + np.zeros(32, np.int64))]
    found = costs(requests(*halves, *far, halves[0], halves[1], halves[0]), size=256 * 128)
    assert [found.costs[number].missing for number in found.number[-3:]] == [1, 1, 0]


def test_local_memory_is_beside_that_of_other_warps_and_goes_first_after_its_last_use() -> None:
    slot = np.full(32, 8)  # at the same offset in each lane: a line of the warp
    found = costs(requests((3, 0, slot), (4, 0, slot), (3, 1, slot), (4, 8, slot)))
    assert (found.hits, found.sectors, found.local) == (8, 16, 8)  # the ninth warp is where the first one was
    each = [found.costs[number] for number in found.number]
    assert [one.missing for one in each] == [4, 0, 4, 0]
    pair = costs(requests((3, 0, slot)), kinds={3: AccessKind("store", 8, is_local=True)})
    assert [(one.sectors, one.wavefronts, one.tags) for one in pair.costs] == [(8, 2, 1)]
    others = [(0, 0, 4096 * number + 128 * LANES) for number in range(16)]  # 512 lines of 1,024
    kept, gone = (
        costs(requests((3, 0, slot), (load, 0, slot), *others, (3, 0, slot)), 1024 * 128) for load in (4, 5)
    )
    assert (kept.hits, gone.hits) == (8, 4)


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


def test_what_a_warp_writes_again_at_once_is_combined() -> None:
    members = [(2, 0, 16 * LANES + 4 * member) for member in range(4)]
    found = costs(requests(*members))
    assert [found.costs[number].missing for number in found.number] == [16, 0, 0, 0]
    assert (found.written, found.hits) == (16, 48)

    by_two = costs(requests(members[0], (2, 1, members[1][2])))
    assert by_two.written == 32  # each warp writes its own
    loaded = (0, 0, 4 * LANES + (1 << 20))
    assert costs(requests(members[0], loaded, members[1])).written == 32


@pytest.mark.parametrize(("width", "written"), [(4, 4), (1, 8)])
def test_what_warps_write_at_the_same_time_is_combined_if_it_is_words(width: int, written: int) -> None:
    made = requests((2, 0, 4 * LANES), (2, 1, 4 * LANES))
    made.event[:] = 0
    assert costs(made, kinds={2: AccessKind("store", width)}).written == written


def test_what_is_scattered_is_not_combined() -> None:
    apart = costs(requests(*[(2, 0, 32 * LANES + 4 * member) for member in range(2)]))
    assert apart.written == 64  # eight lines take the tag stage two cycles
