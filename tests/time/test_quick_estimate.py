"""The estimated time in a line, as other verbs tell it: what it says, when it is not known, what is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memsim.arch import get_arch
from memsim.errors import MemsimError
from memsim.estimated_time import (
    NOT_MODELLED,
    EstimatedTime,
    StallShare,
    duration,
    rounded_cycles,
    time_change,
)
from memsim.targets.cache import time_of, trace_of
from memsim.targets.target import catalogue_job, read_job
from memsim.time import quick_estimate
from memsim.time.launch_time import PROJECTS_ERROR
from memsim.time.predict_time import PreparedTime
from memsim.time.quick_estimate import TAKES_LONG, estimate
from tests.cli.conftest import Run
from tests.cli.conftest import memsim as memsim

JOB = catalogue_job("transpose_naive", {"size": "256,256"})


def test_the_line_is_of_the_same_estimate() -> None:
    whole, line = PreparedTime(JOB).predict(), estimate(JOB)
    assert line is not None
    assert (line.cycles, line.elapsed, line.seconds) == (whole.cycles, whole.elapsed, whole.seconds)
    assert (
        line.error == PROJECTS_ERROR
        and f"typically within {PROJECTS_ERROR:.0%}".replace("%", " %") in line.verdict
    )
    assert line == estimate(JOB, effort="whole")
    assert sum(one.share for one in line.waiting) == pytest.approx(
        1 - whole.stalls["selected"] / sum(whole.stalls.values())
    )
    shares = [one.share for one in line.waiting]
    assert shares == sorted(shares, reverse=True)
    first = line.waiting[0]
    lines = {at: stalls.get(first.reason, 0) for (_, at), stalls in whole.stalls_by_line().items()}
    assert lines[first.line] == max(lines.values())
    assert first.of_line == lines[first.line] / whole.stalls[first.reason]


def test_what_the_line_says() -> None:
    time = EstimatedTime(
        cycles=361_234,
        elapsed=364_000,
        seconds=1.84e-4,
        clock=1.98e9,
        error=0.1,
        waiting=(
            StallShare("short_scoreboard", 0.41, 53, 0.95),
            StallShare("barrier", 0.22, 58, 0.6),
            StallShare("wait", 0.2, 0, 1.0),
        ),
    )
    assert time.verdict == (
        "about 361,000 cycles, 0.18 ms with the launch, at 1,980 MHz (an estimate, typically within 10 %); "
        "41 % of warp time waits for shared memory (line 53), 22 % at the barrier (most at line 58)"
    )
    lacking = replace(
        time,
        lacks=("texture units",),
        waiting=(StallShare("wait", 0.5, 0, 1.0), StallShare("new", 0.05, 1, 1)),
    )
    assert lacking.verdict.endswith(
        f"; {NOT_MODELLED}: texture units; 50 % of warp time waits for results of fixed latency"
    )
    assert EstimatedTime(unknown="no rates").verdict == "not estimated: no rates"


def test_digits() -> None:
    assert [duration(n) for n in (9.04e-6, 9.9e-5, 1.84e-4, 0.0121, 5, 150)] == [
        "9.0 us", "99 us", "0.18 ms", "12 ms", "5.0 s", "150 s",
    ]  # fmt: skip
    assert [rounded_cycles(n) for n in (7_244, 348_503, 8_685_585)] == ["7,240", "349,000", "8,690,000"]


def test_a_change_within_the_error_says_so() -> None:
    before, after = EstimatedTime(1, 1, 9e-6, error=0.1), EstimatedTime(1, 1, 5.3e-6, error=0.1)
    assert (
        time_change(before, after) == "about 9.0 us -> 5.3 us, 41 % less (estimates, typically within 10 %)"
    )
    assert "70 % more (" in time_change(after, before)
    assert "less (estimates; within their error of 10 %)" in time_change(
        before, replace(before, seconds=8.5e-6)
    )
    assert ", the same (estimates, typically within 10 %)" in time_change(before, before)
    assert time_change(before, None) == time_change(EstimatedTime(unknown="why"), after) == ""


def test_what_takes_long_is_left_to_the_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = trace_of(JOB, None)
    for name, few in (("MOST_LINES", 10), ("MOST_STRETCHES", 2)):
        with monkeypatch.context() as patched:
            patched.setattr(quick_estimate, name, few)
            assert estimate(JOB, trace) == EstimatedTime(unknown=TAKES_LONG)
            whole = estimate(JOB, trace, "whole")
            assert whole is not None and whole.cycles
    assert estimate(JOB, trace) == whole


def test_a_launch_that_is_not_run_to_its_end_is_estimated_nearly() -> None:
    launch = PreparedTime(catalogue_job("opt_3_shared", {"size": "256,256,512"}))
    whole, part = launch.predict(), launch.predict(most_issues=10_000, most_whole=0)
    assert whole.is_whole and not part.is_whole
    assert part.cycles == pytest.approx(whole.cycles, rel=0.1)
    assert part.issued == whole.issued
    assert [one.executed for one in part.instructions] == [one.executed for one in whole.instructions]
    with pytest.raises(MemsimError, match="too long to be followed"):
        launch.predict(skips=False, most_issues=10_000)


def test_a_chip_that_nobody_measured_and_code_that_is_none() -> None:
    found = estimate(replace(JOB, arch=get_arch("sm_80")))
    assert found is not None and found.cycles is None and "not known on sm_80" in found.unknown
    function = read_job("docs/index_math/transpose.py:transpose", {"block": (32, 32)})
    assert estimate(function) is None


def test_it_is_kept_with_the_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = trace_of(JOB, tmp_path)
    first = time_of(JOB, tmp_path, trace)

    def never(*how: Any) -> None:
        raise AssertionError("it was kept")

    monkeypatch.setattr(quick_estimate, "estimate", never)
    assert time_of(JOB, tmp_path, trace) == first is not None
    with pytest.raises(AssertionError):
        time_of(JOB, None, trace)
    with pytest.raises(AssertionError):
        time_of(catalogue_job("transpose_naive", {"size": "256,128"}), tmp_path, trace)


def test_traces_and_index_math_have_none(tmp_path: Path, memsim: Run) -> None:
    saved = tmp_path / "run.npz"
    trace = trace_of(JOB, None)
    trace.save(saved)
    assert time_of(read_job(str(saved), {}), tmp_path, trace) is None
    lines = memsim("analyze", saved).fine()
    assert lines[1].startswith("Bound: ")
    assert memsim("analyze", saved, "--json").document()["time"] is None
    assert memsim("analyze transpose_naive --size 256,256").fine()[1].startswith("Time: about ")


def test_a_sweep_ranks_by_time_if_asked_to(memsim: Run) -> None:
    by_time = memsim("sweep transpose_* --size 128,128 -j 1 --time").fine()
    assert by_time[2].split()[-2:] == ["cycles,", "about"]
    assert any("fewer estimated cycles" in line for line in by_time)
    assert any("are estimates, typically within" in line for line in by_time)
    made = memsim("sweep transpose_* --size 128,128 -j 1 --time --json").document()
    cycles = [one["counts"]["elapsed"] for one in made["variants"]]
    assert made["cost"] == "elapsed" and len(set(cycles)) == 3
    assert cycles == [int(line.split()[-1].replace(",", "")) for line in by_time[3:6]]
    assert by_time[3 + cycles.index(min(cycles))].startswith("*")
    counted = memsim("sweep transpose_* --size 128,128 -j 1").fine()
    assert not any("cycles" in line for line in counted)
    memsim("sweep transpose_* --size 128,128 --time --cut 2").refused("--cut")
