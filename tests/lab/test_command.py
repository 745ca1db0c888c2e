"""`python -m lab`: what was recorded, and exit codes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from lab import experiment, experiments
from lab.clock.judge_clock import run_clock
from lab.experiments import CLOCK, HOPPER, PROBE
from lab.hopper.hopper_launch import SOURCES
from memsim.validate.standalone import Gpu
from memsim.version import __version__
from tests.cli.conftest import Run
from tests.cli.test_missing_parts import SAYS, Machine, check_missing
from tests.lab.fake_driver import FakeDriver
from tests.schema import validate
from tests.validate.conftest import H100, TRACES
from tests.validate.fake_gpu import FakeGpu

SCHEMA = json.loads(Path(experiment.__file__).with_name("report.schema.json").read_text("utf-8"))


def test_the_newest_recording(lab: Run) -> None:
    lines = lab("probe --gpu", H100).fine()
    assert lines[0] == "NVIDIA H100 80GB HBM3: the rules hold for 44 of 44 instructions"
    row = next(line.split() for line in lines if line.startswith("LDS32 "))
    assert " ".join(row) == "LDS32 shared load 4 B 1,024 of 1,024 4 of 4 holds"


def test_json(lab: Run) -> None:
    record = lab("probe --json --gpu", H100).document()
    assert record["device"]["compute_capability"] == "9.0" and len(record["instructions"]) == 44
    assert record["instructions"][0]["figures"]["memory_l1_wavefronts_shared"] == [512, 512]


def test_live_and_record(lab: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recording = PROBE.newest(TRACES, H100)
    names = ("EMPTY", "LDS8", "STS8")
    few = replace(recording, probed={name: recording.probed[name] for name in names})
    monkeypatch.setattr(experiments, "run_probe", lambda progress: few)
    assert lab("probe --live --traces", tmp_path).code == 0
    assert not list(tmp_path.iterdir())
    done = lab("probe --live --record --traces", tmp_path)
    files = [tmp_path / H100 / name for name in ("probe.npz", "rules.json")]
    assert done.err.splitlines() == [f"recorded: {file}" for file in files]
    assert all(file.is_file() for file in files)
    assert lab("probe --traces", tmp_path).out == done.out

    counters = few.probed["STS8"].counters + 1
    wrong: Any = {**few.probed, "STS8": replace(few.probed["STS8"], counters=counters)}
    monkeypatch.setattr(experiments, "run_probe", lambda progress: replace(few, probed=wrong))
    done = lab("probe --live")
    assert done.code == 1
    assert done.out.splitlines()[0].endswith("the rules hold for 1 of 2 instructions, not for STS8")
    assert "STS8: l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum: 0 of 2 equal" in done.out


def test_bad_input(lab: Run, tmp_path: Path) -> None:
    for arguments, says in (
        (("--record",), "--record needs --live"),
        (("--live", "--gpu", "x"), "--gpu selects among recordings"),
        (("--traces", tmp_path), "python -m lab probe --live --record makes one"),
    ):
        lab("probe", *arguments).refused(says)


@pytest.mark.slow
def test_hopper(lab: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done = lab("hopper")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "NVIDIA H200: 17 of 17 rules for Hopper's own instructions hold"
    rows = {" ".join(line.split()) for line in lines}
    assert "operands of wgmma 296 of 296 holds" in rows
    assert "boxes of tensors 703 of 703 holds" in rows  # of two recordings
    record = lab("hopper --json").document()
    assert {about["gpu"] for about in record["about"]} == {"NVIDIA H200"}
    assert [rule["holds"] for rule in record["rules"]] == [True] * 17

    monkeypatch.setattr(experiments, "run_hopper", lambda models, progress: models)
    made = lab("hopper --live --record --traces", tmp_path)
    assert made.err.splitlines() == [
        f"recorded: {tmp_path / 'nvidia-h200' / 'hopper' / f'{name}.npz'}" for name in SOURCES
    ]
    assert lab("hopper --traces", tmp_path).out == made.out == done.out


@pytest.mark.slow
def test_a_rule_of_hopper_that_fails(lab: Run, monkeypatch: pytest.MonkeyPatch) -> None:

    recording, *others = HOPPER.newest_of_each(TRACES)
    wgmma = tuple(
        replace(one, counters={name: value + 1 for name, value in one.counters.items()})
        for one in recording.parts["wgmma"]
    )
    wrong = replace(recording, parts={**recording.parts, "wgmma": wgmma})
    monkeypatch.setattr(experiments, "run_hopper", lambda models, progress: [wrong, *others])
    done = lab("hopper --live")
    assert done.code == 1
    headline = "16 of 17 rules for Hopper's own instructions hold, not for operands of wgmma"
    assert done.out.splitlines()[0].endswith(headline)
    conflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_gmma.sum"
    assert f"operands of wgmma: w_f16_8_00: {conflicts}: 1 and not 0" in done.out
    assert "operands of wgmma: and 582 more" in done.out


@pytest.mark.slow
def test_by_clock(lab: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the exported program writes, on a chip without counters, is judged and added to the recordings."""
    recording = run_clock(lambda: Gpu(FakeDriver(wavefront=2, refuses=("LDM1",))))
    (tmp_path / "own").mkdir()
    file = CLOCK.save(recording, tmp_path / "own")
    done = lab("clock", file)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "NVIDIA A100: by clock, the rules and rates hold for 45 of 45 instructions"
    row = next(line.split() for line in lines if line.startswith("LDS128 "))
    assert " ".join(row) == "LDS128 shared load 16 B 83 of 83 4 to 16 4 to 16 holds"
    assert "LDM1: not measured: cuModuleLoadData: CUDA_ERROR_UNSUPPORTED_PTX_VERSION" in done.out
    record = lab("clock", file, "--json").document()
    assert record["cycles_of_a_wavefront"] == 2
    assert all(one["holds"] for one in record["instructions"])

    folder = tmp_path / "recordings"
    added = lab("clock", file, "--record --traces", folder)
    files = [folder / "nvidia-a100" / name for name in ("clock.json", "rules.clock.json")]
    assert added.err.splitlines() == [f"recorded: {path}" for path in files]
    assert lab("clock --traces", folder).out == done.out
    monkeypatch.setattr(experiments, "run_clock", lambda: recording)
    assert lab("clock --live").out == done.out


def test_by_clock_what_differs(lab: Run, tmp_path: Path) -> None:
    file = CLOCK.save(run_clock(lambda: Gpu(FakeDriver(slower={"ex2": 1}))), tmp_path)
    done = lab("clock", file)
    assert done.code == 1
    assert done.out.splitlines()[0].endswith("hold for 45 of 46 instructions, not for ex2")
    assert "ex2: 12.0 and not 8 (pattern 0)" in done.out


def test_by_clock_bad_input(lab: Run, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    for arguments, says in (
        (("clock", tmp_path / "none.json"), "no such file"),
        (("clock", tmp_path / "x.json"), "a recording of schema None"),
        (("rates", tmp_path / "x.json"), "a recording of schema None"),
        (("clock", tmp_path / "x.json", "--live"), "RECORDING is judged alone"),
        (("clock", "--traces", tmp_path), "python -m lab clock --live --record makes one"),
    ):
        lab(*arguments).refused(says)


def test_rates_are_compared_with_the_recording(lab: Run) -> None:
    assert "the bounds hold for 117 of 117 launches" in lab("rates").fine()[0]


def test_rates_without_a_recording_say_how_to_make_one(lab: Run, tmp_path: Path) -> None:
    lab("rates --traces", tmp_path).refused(
        "python -m lab rates --live --record makes one, on a machine with a GPU"
    )


@pytest.mark.some(1)
@pytest.mark.parametrize("experiment", ["probe", "hopper"])
def test_a_document_fits_its_schema(lab: Run, experiment: str) -> None:
    document: dict[str, Any] = lab(experiment, "--json").document()
    validate(document, SCHEMA)
    assert (document["schema"], document["memsim"]) == (1, __version__)
    with pytest.raises(jsonschema.ValidationError):
        validate({**document, "another": 1}, SCHEMA)


@pytest.mark.skipif(os.name == "nt", reason="a program by its first line")
@pytest.mark.parametrize("take_away", [part for part in SAYS if part is not Machine.unknown_chip])
def test_a_missing_part(
    take_away: Callable[[Machine], None],
    lab: Run,
    gpu: FakeGpu,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One sentence with a way out; an unknown chip is none, since the probe tells which rules hold there."""
    take_away(Machine(gpu, tmp_path, monkeypatch))
    check_missing(lab("probe --live --record --traces", tmp_path / "traces"), take_away)
    assert not (tmp_path / "traces").exists()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="a program by its first line")
def test_with_all_parts_it_gets_further(
    lab: Run, gpu: FakeGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Machine(gpu, tmp_path, monkeypatch)
    lab("probe --live").refused("error: ncu failed (exit code 9): this ncu measures nothing\n")
