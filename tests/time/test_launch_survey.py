"""Which blocks are followed in time, and which requests are the first for what they ask for."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.targets.target import catalogue_job
from memsim.time import replayed_launch
from memsim.time.hardware_units import Way
from memsim.time.l1_cache import CostOfRequest
from memsim.time.latencies import Latencies
from memsim.time.launch_survey import (
    BESIDE_FOUND,
    SLICES,
    FirstTouches,
    LaunchSurvey,
    Patience,
    busiest_blocks,
    part_of,
    slice_of,
)
from memsim.time.predict_time import PreparedTime
from memsim.time.timed_instructions import CostSetting, TimedInstruction, with_cost
from memsim.trace.record import Recorder
from tests.time.conftest import program, ran
from tests.time.test_l1_cache import LANES, costs, requests


@pytest.fixture(scope="module")
def launch() -> PreparedTime:
    return PreparedTime(catalogue_job("transpose_naive", {"size": "512,512"}))


def test_the_multiprocessor_with_most_work_is_followed() -> None:
    work = np.ones(12, np.int64)
    work[7] = 9
    assert busiest_blocks(work, 4, 1).tolist() == [3, 7]  # 3 is done when 4 to 6 are handed out
    assert busiest_blocks(np.ones(12, np.int64), 4, 2).tolist() == [0, 4, 8]
    work[:] = 0
    work[0] = 100
    assert busiest_blocks(work, 4, 1).tolist() == [0]  # the others are handed out meanwhile


def test_a_launch_is_surveyed_as_it_was_traced(launch: PreparedTime) -> None:
    survey, trace = launch.survey, launch.whole
    assert len(set(survey.work.tolist())) == 1
    assert survey.work.sum() == trace.executed.sum()
    touches = survey.touches()
    footprint = trace.footprint
    assert footprint is not None
    sectors = footprint.read + footprint.written
    assert len(touches.parts) == pytest.approx(sectors * (1 - BESIDE_FOUND / 2), rel=0.01)
    assert (np.diff(touches.parts) > 0).all()


def test_the_survey_reads_what_the_first_wave_reads() -> None:
    launch = PreparedTime(catalogue_job("transpose_padded", {"size": "1024,1024"}))
    wave = len(launch.survey.work)
    assert wave < launch.job.launch.blocks
    recorder = Recorder()
    launch.listen(recorder, np.arange(wave))
    assert launch.survey.marks.footprint == recorder.marks.footprint
    assert launch.new_sectors[0] == recorder.marks.footprint.read > 0


def test_who_asks_later_than_another_block_is_behind() -> None:
    touches = FirstTouches(np.array([0, 10]), np.array([3, 100]))
    address = np.array([0, 63, 64, 320, 320])
    assert touches.behind(address, np.array([3, 10, 500, 90, 160])).tolist() == [0, 7, 0, 0, 60]
    nobody = FirstTouches(np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert nobody.behind(address, address).tolist() == [0] * 5


@pytest.mark.parametrize("apart", (2, 32, 128, 130, 1024))
def test_some_sectors_come_with_their_neighbours_however_far_pairs_are_apart(apart: int) -> None:
    first = apart * np.arange(4096)
    assert (part_of(first) == first).all()
    beside = part_of(first + 1)
    found = beside == first
    assert (beside[~found] == first[~found] + 1).all()
    assert found.mean() == pytest.approx(BESIDE_FOUND, abs=0.01)


def test_a_slice_of_l2_takes_the_atomics_of_its_256_bytes() -> None:
    survey = LaunchSurvey(1, 1, Patience())
    assert survey.hottest == 0.0
    survey.take_turns(np.zeros(32, np.int64), 0 * LANES)
    survey.take_turns(np.zeros(32, np.int64), 128 + 4 * LANES)
    assert survey.hottest == 1.0
    survey.take_turns(np.zeros(32, np.int64), (1 << 20) + 256 * LANES)
    assert 36 / 68 <= survey.hottest <= 40 / 68
    spread = np.bincount(slice_of(np.arange(1 << 16)), minlength=SLICES)
    assert spread.max() < 1.3 * spread.mean()


def test_a_request_is_as_late_as_its_newest_sector_that_is_missing() -> None:
    row = 4 * LANES
    first = np.array([-1000] * 4 + [-3000] * 4)
    found = costs(
        requests((0, 0, row), (0, 1, row + 128), (0, 0, row + 64), (0, 0, row + 1024)),
        touches=(FirstTouches(np.arange(8), first)),
    )
    assert [found.costs[number].behind for number in found.number] == [512, 2048, 1, 1]


def test_what_the_first_wave_asked_for_is_there_in_later_waves() -> None:
    row = 4 * LANES
    touches = FirstTouches(np.arange(8), np.array([5000] * 8))
    found = costs(requests((0, 0, row), (0, 8, row + 128), (0, 8, row + 1024)), touches=touches)
    assert [found.costs[number].behind for number in found.number] == [1, 2048, 1]


def test_a_load_waits_the_less_the_more_it_is_behind() -> None:
    load = TimedInstruction(0, is_global=True, pipe="memory")
    setting = CostSetting(True, 100.0, 0.0, Latencies(partial=140, gap=25, alone=0, rows=0))
    late = [
        with_cost(load, CostOfRequest((-1, 0), 0, 1, 1, 4, 4, 0, 0, 0, behind, 1, 0, 1), False, setting).late
        for behind in (1, 2, 64, 128)
    ]
    assert late == [100, 100, 38, 0]
    way = Way(far=(600,), near=(200,), read_cost=1.0, bulk_cost=1.0)
    cycles = []
    for share in late:
        miss: dict[str, object] = {
            "pipe": "memory",
            "is_global": True,
            "wavefronts": 8,
            "tags": 8,
            "sectors": 32,
        }
        code = program({**miss, "late": share, "result": 0}, {"waits": (0,)})
        cycles.append(ran(code, [[0, 1]], way=way).cycles)
    assert cycles == [4 + 1 + 4 + latency + 1 for latency in (600, 600, 352, 200)]


def test_a_load_of_many_rows_waits_for_the_slowest() -> None:
    load = TimedInstruction(0, is_global=True, pipe="memory")
    setting = CostSetting(True, 100.0, 0.0, Latencies(alone=5, rows=10, line=90))

    def made(missing: int, lines: int, rows: int, behind: int = 1) -> TimedInstruction:
        cost = CostOfRequest((-1, 0), 0, 1, 1, 32, missing, 0, 0, 0, behind, lines, rows, 1)
        return with_cost(load, cost, False, setting)

    assert [made(*asked).late for asked in ((1, 1, 0), (4, 1, 0), (8, 8, 3))] == [95, 100, 130]
    assert made(8, 8, 3, 128).late == 0
    assert made(10, 10, 0).lines == 8 * 9


def test_nobody_is_ahead_of_a_block_that_shares_nothing(launch: PreparedTime) -> None:
    assert {cost.behind for cost in launch.cached.costs} == {1}


def test_a_wave_that_is_too_long_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then all of it waits for DRAM."""
    monkeypatch.setattr(replayed_launch, "MOST_OF_WAVE", 1000)
    found = PreparedTime(catalogue_job("transpose_naive", {"size": "512,512"}))
    assert not found.survey.is_whole
    assert found.survey.surveyed == 0
    assert {cost.behind for cost in found.cached.costs} == {1}
    assert found.predict().cycles > 0
