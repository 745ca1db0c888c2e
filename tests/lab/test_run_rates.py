"""The probe of rates: what it records, batch by batch, and launches that the profiler does not survive."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lab.experiments import RATES
from lab.rates import run_rates as measure
from lab.rates.judge_rates import RateRecording
from lab.rates.loops import Loop
from lab.rates.run_rates import (
    OF_KERNELS,
    OF_LOOPS,
    OF_STREAMS,
    LaunchBatch,
    Measured,
    NotMeasured,
    Progress,
    run_rates,
)
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.kernels import catalog
from memsim.validate.device import Device
from memsim.validate.profiles import CodeProfile, Counted

DEVICE = Device("NVIDIA H200", "9.0", "580", "13.0", "14.2.0")
NAMES = (("transpose_naive", "transpose_xor", "permuted_write"), ("permuted_write_fixed",))
ALL = (*NAMES[0], *NAMES[1])
Runs = list[tuple[str, ...]]


def recorded(fails: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> tuple[list[RateRecording], Runs]:
    """Recordings of two batches by a profiler that dies of the launches `fails`, and what it was asked."""
    runs: Runs = []

    def count(jobs: Sequence[Job], metrics: Sequence[str], progress: Progress) -> Any:
        names = tuple(job.loaded.name for job in jobs)
        runs.append(names)
        for number, name in enumerate(names):
            if name in fails:
                raise NotMeasured(MemsimError("ncu failed (exit code 9)"), number)
            if progress is not None:
                progress((number + 1) / len(names))
        counters = {metric: Counted(1, "") for metric in metrics}
        return DEVICE, "2025.3.1.0", [CodeProfile(name, None, None, 1, counters) for name in names]

    batches = [
        LaunchBatch(OF_KERNELS, [Measured(name, "", catalog()[name].job()) for name in names])
        for names in NAMES
    ]
    monkeypatch.setattr(measure, "count", count)
    monkeypatch.setattr(measure, "_batches", lambda folder: batches)
    shares: list[float] = []
    found = list(run_rates(shares.append))
    assert shares == sorted(shares) or fails
    return found, runs


def test_each_batch_adds_to_the_recording(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found, runs = recorded((), monkeypatch)
    assert runs == [*NAMES]
    assert [tuple(launch.name for launch in each.launches) for each in found] == [NAMES[0], ALL]
    path = None
    for each in found:
        path = RATES.save(each, tmp_path, path)
        assert RATES.load(path) == each
    assert RATES.save(found[-1], tmp_path).name == "rates.run2.json"
    assert sorted(file.name for file in tmp_path.glob("*/*/*")) == ["rates.json", "rates.run2.json"]


def test_a_launch_that_ends_the_profiler_is_named_and_harms_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    fails = ("transpose_xor", "permuted_write_fixed")
    found, runs = recorded(fails, monkeypatch)
    assert runs == [NAMES[0], ("transpose_naive", "permuted_write"), NAMES[1]]
    assert found[-1].failed == dict.fromkeys(fails, "ncu failed (exit code 9)")
    assert [launch.name for launch in found[-1].launches] == ["transpose_naive", "permuted_write"]


def test_what_no_launch_survives_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MemsimError, match="exit code 9"):
        recorded(("transpose_naive",), monkeypatch)


def test_what_is_counted_together() -> None:
    """Of streams their traffic, of loops their pipes, of kernels both."""
    assert set(OF_LOOPS) | set(OF_STREAMS) > set(OF_KERNELS) > set(OF_LOOPS)
    assert not any("pipe_alu" in metric for metric in OF_STREAMS)


def test_an_instruction_is_written_on_the_registers_that_it_is_given() -> None:
    word = Loop("add", "unsigned", "lop3.b32 $0,$0,$1,$2;", "ALU pipe")
    assert word.on_registers(["%c3"], "%x", "%y") == "lop3.b32 %c3,%c3,%x,%y;"
    many = Loop("mma", "float", "mma {$0,$1,$10},{$x};", "tensor pipe", accumulators=11)
    held = [f"r{number + 50}" for number in range(11)]
    assert many.on_registers(held, "%x", "") == "mma {r50,r51,r60},{%x};"
    assert (word.chains, many.chains) == (8, 4)
