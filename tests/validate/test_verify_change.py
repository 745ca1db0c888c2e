"""`memsim suggest --verify`: both kernels measured by a profiler that counts what memsim predicts, or not."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memsim.cli import main
from memsim.job import Job
from memsim.validate import live
from memsim.validate.device import Device
from memsim.validate.profiler import Profiler
from memsim.validate.profiles import CodeProfile, Counted
from tests.suggest.kernels import transpose
from tests.validate.profiles import profiled

H100 = Device("NVIDIA H100 80GB HBM3", "9.0", "580.159.04", "13.0", "14.2.0")
LAUNCH = ("--grid", "1", "--block", "32,32", "--arg", "f32[1024]", "--arg", "f32[1024]=zeros")
LOADS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"

Counts = Callable[[CodeProfile, int], CodeProfile]


@pytest.fixture
def ncu(monkeypatch: pytest.MonkeyPatch) -> Callable[[Counts], list[int]]:
    """`ncu(wrong)`: a profiler whose profiles `wrong` may change; gives how many jobs each run had."""
    runs: list[int] = []

    def with_counts(changed: Counts) -> list[int]:
        def run(profiler: Profiler, jobs: Sequence[Job], what: Sequence[str], counter: Any) -> Any:
            runs.append(len(jobs))
            metrics = what[-1].split(",") if what[0] == "--metrics" else None
            return [None] * len(jobs), [changed(profiled(job, metrics), i) for i, job in enumerate(jobs)]

        monkeypatch.setattr(live, "run_jobs", run)
        return runs

    monkeypatch.setattr(live, "this_device", lambda: H100)
    monkeypatch.setattr(live, "find_profiler", lambda: Profiler(Path("ncu"), "2025.3.1.0"))
    return with_counts


def as_predicted(profile: CodeProfile, number: int) -> CodeProfile:
    time = {"gpu__time_duration.sum": Counted((2000, 1000)[number], "ns")}
    return replace(profile, counters=profile.counters | time)


@pytest.fixture
def tile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("tile.cu").write_text(transpose("float tile[32][32]").text)
    return Path("tile.cu")


@pytest.mark.slow
def test_predicted_and_measured_stand_side_by_side(
    tile: Path, ncu: Callable[[Counts], list[int]], capsys: pytest.CaptureFixture[str]
) -> None:
    runs = ncu(as_predicted)
    assert main(["suggest", str(tile), *LAUNCH, "--verify"]) == 0
    out = capsys.readouterr().out
    assert set(runs) == {2}  # both in each run
    assert "Measured on NVIDIA H100 80GB HBM3, Nsight Compute 2025.3.1.0:" in out
    (row,) = [line.split() for line in out.splitlines() if line.startswith(LOADS)]
    assert row[1:] == ["1,024", "1,024", "32", "32"]
    (row,) = [line.split() for line in out.splitlines() if line.startswith("gpu__time_duration.sum")]
    assert row[1:] == ["(ns)", "-", "2,000", "-", "1,000"]
    for label in ("as it is", "changed"):
        assert (
            f"{label} on NVIDIA H100 80GB HBM3: equal in every counter and all 4 memory instructions" in out
        )


@pytest.mark.slow
def test_it_is_in_the_json(
    tile: Path, ncu: Callable[[Counts], list[int]], capsys: pytest.CaptureFixture[str]
) -> None:
    ncu(as_predicted)
    assert main(["suggest", str(tile), *LAUNCH, "--verify", "--json"]) == 0
    verified = json.loads(capsys.readouterr().out)["verified"]
    assert verified["as_predicted"] is True
    loads = next(each for each in verified["counters"] if each["metric"] == LOADS)
    assert (loads["predicted_before"], loads["measured_after"]) == (1024, 32)


@pytest.mark.slow
def test_a_gpu_that_counts_something_else_is_an_error(
    tile: Path, ncu: Callable[[Counts], list[int]], capsys: pytest.CaptureFixture[str]
) -> None:
    """The changed kernel's loads take a wavefront more than predicted, and nothing is written."""
    before = tile.read_text()

    def one_more(profile: CodeProfile, number: int) -> CodeProfile:
        more = Counted((profile.counters[LOADS].value or 0) + number, "")
        return replace(profile, counters={**profile.counters, LOADS: more})

    ncu(lambda profile, number: one_more(profile, number) if LOADS in profile.counters else profile)
    assert main(["suggest", str(tile), *LAUNCH, "--verify", "--apply"]) == 1
    done = capsys.readouterr()
    assert "the GPU's counters differ from the prediction" in done.err
    (row,) = [line.split() for line in done.out.splitlines() if line.startswith(LOADS)]
    assert row[1:] == ["1,024", "1,024", "32", "33"]
    assert tile.read_text() == before


def test_there_is_something_to_verify(
    tile: Path, ncu: Callable[[Counts], list[int]], capsys: pytest.CaptureFixture[str]
) -> None:
    runs = ncu(as_predicted)
    tile.write_text(transpose("float tile[32][33]").text)
    assert main(["suggest", str(tile), *LAUNCH, "--verify"]) == 1
    assert "there is no proven change to apply or run" in capsys.readouterr().err
    assert runs == []


@pytest.mark.slow
def test_a_part_of_the_grid_is_not_measured(
    ncu: Callable[[Counts], list[int]], capsys: pytest.CaptureFixture[str]
) -> None:
    ncu(as_predicted)
    assert main(["suggest", "transpose_naive", "--size", "64,64", "--blocks", "1", "--verify"]) == 2
    assert "the GPU runs all blocks" in capsys.readouterr().err
