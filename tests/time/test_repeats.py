"""What repeats is gone over in one step, exactly; what does not is extrapolated."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pytest

from memsim.time.hardware_units import NEVER
from memsim.time.multiprocessor import Multiprocessor
from memsim.time.repeated_states import is_landmark, periods_ahead, run_to_end
from memsim.time.steady_state import Loop, SteadyState, longest_loop
from tests.time.conftest import PLAIN, processor, program

#: Issues whose pace goes for the rest of launches that are a tenth as long as those which are extrapolated.
AVERAGED = 15_000
LOAD = {"pipe": "memory", "wavefronts": 8 * 3, "latency": 20, "result": 0, "operands": 1, "stall": 2}
CODE = program(
    {"stall": 3}, LOAD, {"waits": (0,), "stall": 2}, {"pipe": "alu", "busy": 2}, {"barrier": 0}, {"stall": 5}
)


def looped(times: int) -> list[int]:
    return [0, *[1, 2, 3, 4] * times, 5]


@pytest.mark.some(2)
@pytest.mark.parametrize(("blocks", "resident"), [(1, 1), (2, 2), (7, 1), (40, 2), (41, 3)])
@pytest.mark.parametrize("off", [frozenset(), frozenset({"greedy", "memory queue"})])
@pytest.mark.parametrize(("spare", "later"), [(False, 0), (True, 0), (True, 1000)])
def test_a_run_with_steps_over_repetitions_is_the_run_without(
    blocks: int, resident: int, off: frozenset[str], spare: bool, later: int
) -> None:
    set_to = replace(PLAIN, next_start=later)
    runs = []
    for skips in (True, False):
        made = processor(CODE, [looped(50)] * 5, blocks, resident, off, set_to, spare=spare)
        assert run_to_end(made, skips, NEVER)
        runs.append(made)
    quick, slow = runs
    assert quick.skipped > slow.skipped
    assert (quick.cycles, quick.issued, quick.waits) == (slow.cycles, slow.issued, slow.waits)
    assert [stage.served for stage in quick.memory.stages] == [stage.served for stage in slow.memory.stages]


@pytest.mark.parametrize("resident", [1, 2])
def test_cycles_in_which_no_block_is_there_are_not_repeated(resident: int) -> None:
    """Between two blocks a multiprocessor that holds one at a time is not active."""
    quick, slow = (processor(CODE, [looped(1)] * 2, 40, resident) for _ in range(2))
    assert run_to_end(quick, True, NEVER) and run_to_end(slow, False, NEVER)
    assert quick.now < slow.now  # whole blocks were gone over
    assert (quick.cycles, quick.issued, quick.waits) == (slow.cycles, slow.issued, slow.waits)


def test_a_long_loop_takes_as_long_as_a_short_one() -> None:
    made = processor(CODE, [looped(200_000)] * 2)
    assert run_to_end(made, True, 5_000)
    assert made.issued == 2 * (200_000 * 4 + 2)
    assert not run_to_end(processor(CODE, [looped(200_000)] * 2), False, 5_000)


@pytest.mark.parametrize(("blocks", "resident"), [(1, 1), (10, 2)])
def test_what_is_left_after_enough_issues_is_counted_at_their_pace(blocks: int, resident: int) -> None:
    """The instructions exactly, the cycles nearly."""
    whole, part = (processor(CODE, [looped(300)] * 3, blocks, resident) for _ in range(2))
    assert run_to_end(whole, False, NEVER)
    steady = SteadyState(np.arange(len(CODE)), AVERAGED, skips=False)
    assert run_to_end(part, False, 1_000, steady) and steady.has_skipped
    assert part.issued == whole.issued
    assert [waits[0] for waits in part.waits] == [waits[0] for waits in whole.waits]
    assert part.cycles == pytest.approx(whole.cycles, rel=0.05)
    assert np.sum(part.waits) == pytest.approx(np.sum(whole.waits), rel=0.05)
    enough = SteadyState(np.arange(len(CODE)), AVERAGED, skips=False)
    again = processor(CODE, [looped(300)] * 3, blocks, resident)
    assert run_to_end(again, False, NEVER, enough) and not enough.has_skipped
    assert again.cycles == whole.cycles


def test_how_often_a_period_follows() -> None:
    stream = np.array([9, 1, 2, 1, 2, 1, 2, 1, 2, 1, 3])
    assert periods_ahead(stream, 3, 2) == 3  # up to, and with, the last 1
    assert periods_ahead(stream, 5, 4) == 1
    assert periods_ahead(stream, 7, 4) == 0
    assert periods_ahead(stream, 9, 2) == 0


@pytest.mark.parametrize(
    ("stream", "loop"),
    [
        ([0, 1, 2, 3], Loop(0, 0, 0)),
        ([0, 1, 2, 1, 2, 1, 2, 3], Loop(1, 2, 2)),
        ([0, *[1, 2, 2, 2, 3] * 9, 4], Loop(1, 5, 8)),
        ([0, *[1, 2] * 3, *[5, 6, 7] * 20, 8], Loop(7, 3, 19)),
    ],
)
def test_the_longest_loop_of_a_stream(stream: list[int], loop: Loop) -> None:
    assert longest_loop(np.array(stream)) == loop


@pytest.mark.slow
def test_a_long_launch_that_never_repeats_is_near_the_whole_one() -> None:
    """Warps whose loops have lengths of their own meet in a new way each time."""
    rng = np.random.default_rng(5)
    stalls = [{"stall": int(stall)} for stall in rng.integers(1, 9, 40)]
    code = program({"pipe": "memory", "wavefronts": 13, "latency": 19, "result": 0}, {"waits": (0,)}, *stalls)
    bodies = [[0, 1, *range(2, 2 + length)] for length in (11, 17, 23, 31, 37, 40)]
    stream = [[*body * 600] for body in bodies]

    made = []
    for steady in (SteadyState(np.arange(len(code)), AVERAGED), None):
        made.append(processor(code, stream, 2, 2))
        assert run_to_end(made[-1], steady is not None, NEVER, steady)
        assert steady is None or steady.has_skipped
    short, whole = made
    assert short.skipped > 0 == whole.skipped
    assert short.issued == whole.issued == 2 * sum(map(len, stream))
    assert [waits[0] for waits in short.waits] == [waits[0] for waits in whole.waits]
    assert abs(short.cycles / whole.cycles - 1) < 0.02


@pytest.mark.slow
def test_many_waves_of_blocks_are_near_all_of_them() -> None:
    rng = np.random.default_rng(6)
    stalls = [{"stall": int(stall)} for stall in rng.integers(1, 9, 40)]
    code = program({"pipe": "memory", "wavefronts": 13, "latency": 19, "result": 0}, {"waits": (0,)}, *stalls)
    stream = [[*[0, 1, *range(2, 2 + length)] * 4] for length in (11, 17, 23, 31, 37, 40)]
    short, whole = (processor(code, stream, 400, 3) for _ in range(2))
    steady = SteadyState(np.arange(len(code)), 4 * AVERAGED)  # waves differ: the oldest goes first
    assert run_to_end(short, True, NEVER, steady) and run_to_end(whole, False, NEVER)
    assert steady.has_skipped
    assert short.issued == whole.issued
    assert [waits[0] for waits in short.waits] == [waits[0] for waits in whole.waits]
    assert abs(short.cycles / whole.cycles - 1) < 0.02


@pytest.mark.slow
def test_waves_whose_iterations_are_skipped_are_as_long_as_all_of_them() -> None:
    """What was skipped of a wave is a part of its time."""
    rng = np.random.default_rng(7)
    stalls = [{"stall": int(stall)} for stall in rng.integers(1, 9, 40)]
    code = program({"pipe": "memory", "wavefronts": 13, "latency": 19, "result": 0}, {"waits": (0,)}, *stalls)
    stream = [[*[0, 1, *range(2, 2 + length)] * 250] for length in (11, 17, 23, 31)]
    short, whole = (processor(code, stream, 40, 2) for _ in range(2))
    steady = SteadyState(np.arange(len(code)), AVERAGED)
    counts = {"_skip_iterations": 0, "_skip_blocks": 0}
    for name in counts:
        skip = getattr(steady, name)

        def counted(*how: Any, skip: Any = skip, name: str = name) -> None:
            counts[name] += 1
            skip(*how)

        setattr(steady, name, counted)
    assert run_to_end(short, True, NEVER, steady) and run_to_end(whole, False, NEVER)
    assert all(counts.values()), counts
    assert short.issued == whole.issued
    assert abs(short.cycles / whole.cycles - 1) < 0.02


def iterations_gone_over(
    made: Multiprocessor, steady: SteadyState, monkeypatch: pytest.MonkeyPatch
) -> list[list[int]]:
    """Runs a multiprocessor to its end; of each step over iterations, how many each warp went over."""
    seen: list[list[int]] = []
    skip = steady._skip_iterations

    def noted(*how: Any) -> None:
        seen.append(how[3])
        skip(*how)

    monkeypatch.setattr(steady, "_skip_iterations", noted)
    while made.running:
        warp = made.step()
        if warp is not None and is_landmark(made, warp):
            steady.consider(made, made.warps, made.issued)
    return seen


def test_warps_of_a_block_go_over_as_many_iterations_and_a_pace_is_measured_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else some of them would be alone at a block's barriers at its end."""
    rng = np.random.default_rng(8)
    stalls = [{"stall": int(stall)} for stall in rng.integers(1, 9, 20)]
    code = program({"pipe": "memory", "wavefronts": 13, "latency": 19, "result": 0}, *stalls, {"barrier": 0})
    stream = [[*[0, *range(1, 1 + length), 21] * 900] for length in (20, 20, 20)]
    made = processor(code, stream, 6, 2)
    steady = SteadyState(np.arange(len(code)), AVERAGED)
    seen = iterations_gone_over(made, steady, monkeypatch)
    monitored = (range(3), range(3, 6))
    assert len(seen) >= 2
    assert all(len({times[number] for number in block}) == 1 for times in seen for block in monitored)
    assert 1 <= len(steady.known) < len(seen)
    assert made.issued == 6 * sum(map(len, stream))


@pytest.mark.parametrize("seed", range(3))
def test_blocks_that_are_in_step_go_over_as_many_iterations(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is somewhere in an iteration when a stretch begins and ends, so they seem to differ by a part."""
    rng = np.random.default_rng(seed)
    body: list[dict[str, object]] = [{"stall": int(stall)} for stall in rng.integers(1, 9, 121)]
    for place, wavefronts in zip(range(0, 121, 10), rng.integers(1, 5, 13)):
        load = {"pipe": "memory", "wavefronts": 8 * int(wavefronts), "latency": 20, "result": 0, "stall": 2}
        body[place] = load
        body[min(place + 6, 120)]["waits"] = (0,)
    code = program(*body, {"barrier": 0})
    made = processor(code, [[*range(len(code))] * 150] * 4, 2, 2)
    steady = SteadyState(np.arange(len(code)), AVERAGED)
    seen = iterations_gone_over(made, steady, monkeypatch)
    assert len(seen) == 1 and len({*seen[0]}) == 1


@pytest.mark.parametrize(("later", "blocks"), [(0, 4), (2000, 3)])
def test_of_a_launch_that_is_not_run_to_its_end_the_last_blocks_are_counted(later: int, blocks: int) -> None:
    """They are as many as if blocks that are as far as each other had been seen to end together."""
    code = program({"stall": 4}, {"stall": 3})
    made = processor(code, [[0, 1] * 800], 3, 2, set_to=replace(PLAIN, next_start=later), spare=True)
    assert run_to_end(made, False, 1500, SteadyState(np.arange(len(code)), AVERAGED))
    assert made.issued == blocks * 1600


def test_equal_neighbours_make_one_loop_of_length_one() -> None:
    stream = np.array([7] * 12)
    assert [len(list(each)) for _, each in groupby(stream.tolist())] == [12]
    assert longest_loop(stream) == Loop(0, 1, 11)
