"""`memsim probe`: what was recorded, and exit codes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memsim.validate.clock.clock_programs import exported
from memsim.validate.clock.run_clock import run_clock
from memsim.validate.probe.probe_recording import newest_probe
from memsim.validate.standalone import Gpu
from tests.cli.conftest import Run
from tests.validate.conftest import H100, TRACES
from tests.validate.fake_driver import FakeDriver


def test_the_newest_recording(memsim: Run) -> None:
    lines = memsim("probe --gpu", H100).fine()
    assert lines[0] == "NVIDIA H100 80GB HBM3: the rules hold for 44 of 44 instructions"
    row = next(line.split() for line in lines if line.startswith("LDS32 "))
    assert " ".join(row) == "LDS32 shared load 4 B 1,024 of 1,024 4 of 4 holds"


def test_json(memsim: Run) -> None:
    record = memsim("probe --json --gpu", H100).document()
    assert record["device"]["compute_capability"] == "9.0" and len(record["instructions"]) == 44
    assert record["instructions"][0]["figures"]["memory_l1_wavefronts_shared"] == [512, 512]


def test_live_and_record(memsim: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recording = newest_probe(TRACES, H100)
    names = ("EMPTY", "LDS8", "STS8")
    few = replace(recording, probed={name: recording.probed[name] for name in names})
    from memsim.cli import probe

    monkeypatch.setattr(probe, "run_probe", lambda progress: few)
    assert memsim("probe --live --traces", tmp_path).code == 0
    assert not list(tmp_path.iterdir())
    done = memsim("probe --live --record --traces", tmp_path)
    files = [tmp_path / H100 / name for name in ("probe.npz", "rules.json")]
    assert done.err.splitlines() == [f"recorded: {file}" for file in files]
    assert all(file.is_file() for file in files)
    assert memsim("probe --traces", tmp_path).out == done.out

    counters = few.probed["STS8"].counters + 1
    wrong: Any = {**few.probed, "STS8": replace(few.probed["STS8"], counters=counters)}
    monkeypatch.setattr(probe, "run_probe", lambda progress: replace(few, probed=wrong))
    done = memsim("probe --live")
    assert done.code == 1
    assert done.out.splitlines()[0].endswith("the rules hold for 1 of 2 instructions, not for STS8")
    assert "STS8: l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum: 0 of 2 equal" in done.out


def test_bad_input(memsim: Run, tmp_path: Path) -> None:
    for arguments, says in (
        (("--record",), "--record needs --live"),
        (("--live", "--gpu", "x"), "--gpu selects among recordings"),
        (("--traces", tmp_path), "memsim probe --live --record makes one"),
    ):
        memsim("probe", *arguments).refused(says)


def test_hopper(memsim: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done = memsim("probe --hopper")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "NVIDIA H200: 17 of 17 rules for Hopper's own instructions hold"
    rows = {" ".join(line.split()) for line in lines}
    assert "operands of wgmma 296 of 296 holds" in rows
    assert "boxes of tensors 703 of 703 holds" in rows  # of two recordings
    record = memsim("probe --hopper --json").document()
    assert {about["gpu"] for about in record["about"]} == {"NVIDIA H200"}
    assert [rule["holds"] for rule in record["rules"]] == [True] * 17

    from memsim.cli import probe
    from memsim.validate.hopper.hopper_recording import STEMS

    monkeypatch.setattr(probe, "run_hopper", lambda models, progress: models)
    made = memsim("probe --hopper --live --record --traces", tmp_path)
    assert made.err.splitlines() == [
        f"recorded: {tmp_path / 'nvidia-h200' / 'hopper' / f'{name}.npz'}" for name in STEMS
    ]
    assert memsim("probe --hopper --traces", tmp_path).out == made.out == done.out


def test_a_rule_of_hopper_that_fails(memsim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from memsim.cli import probe
    from memsim.validate.hopper.hopper_recording import newest_hopper

    recording, *others = newest_hopper(TRACES)
    wgmma = tuple(
        replace(one, counters={name: value + 1 for name, value in one.counters.items()})
        for one in recording.parts["wgmma"]
    )
    wrong = replace(recording, parts={**recording.parts, "wgmma": wgmma})
    monkeypatch.setattr(probe, "run_hopper", lambda models, progress: [wrong, *others])
    done = memsim("probe --hopper --live")
    assert done.code == 1
    headline = "16 of 17 rules for Hopper's own instructions hold, not for operands of wgmma"
    assert done.out.splitlines()[0].endswith(headline)
    conflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_gmma.sum"
    assert f"operands of wgmma: w_f16_8_00: {conflicts}: 1 and not 0" in done.out
    assert "operands of wgmma: and 582 more" in done.out


@pytest.mark.parametrize("pair", [("--hopper", "--rates"), ("--clock", "--rates"), ("--hopper", "--clock")])
def test_one_probe_at_a_time(memsim: Run, pair: tuple[str, str]) -> None:
    memsim("probe", *pair).refused("run one at a time")


def test_by_clock(memsim: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the exported program writes, on a chip without counters, is judged and added to the recordings."""
    from memsim.cli import probe

    recording = run_clock(lambda: Gpu(FakeDriver(wavefront=2, refuses=("LDM1",))))
    (tmp_path / "own").mkdir()
    file = recording.save(tmp_path / "own")
    done = memsim("probe", file)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "NVIDIA A100: by clock, the rules and rates hold for 45 of 45 instructions"
    row = next(line.split() for line in lines if line.startswith("LDS128 "))
    assert " ".join(row) == "LDS128 shared load 16 B 83 of 83 4 to 16 4 to 16 holds"
    assert "LDM1: not measured: cuModuleLoadData: CUDA_ERROR_UNSUPPORTED_PTX_VERSION" in done.out
    record = memsim("probe", file, "--json").document()
    assert record["cycles_of_a_wavefront"] == 2
    assert all(one["holds"] for one in record["instructions"])

    folder = tmp_path / "recordings"
    added = memsim("probe", file, "--record --traces", folder)
    files = [folder / "nvidia-a100" / name for name in ("clock.json", "rules.clock.json")]
    assert added.err.splitlines() == [f"recorded: {path}" for path in files]
    assert memsim("probe --clock --traces", folder).out == done.out
    monkeypatch.setattr(probe, "run_clock", lambda: recording)
    assert memsim("probe --clock --live").out == done.out


def test_by_clock_what_differs(memsim: Run, tmp_path: Path) -> None:
    file = run_clock(lambda: Gpu(FakeDriver(slower={"ex2": 1}))).save(tmp_path)
    done = memsim("probe", file)
    assert done.code == 1
    assert done.out.splitlines()[0].endswith("hold for 45 of 46 instructions, not for ex2")
    assert "ex2: 12.0 and not 8 (pattern 0)" in done.out


def test_the_program_by_clock_is_one_file(memsim: Run, tmp_path: Path) -> None:
    file = tmp_path / "memsim_probe.py"
    done = memsim("probe --export", file)
    assert (done.code, done.out) == (0, f"written: {file}; on the GPU's machine: python3 memsim_probe.py\n")
    assert file.read_text("utf-8") == exported()
    assert memsim("probe --clock --export", file).out == done.out


@pytest.mark.parametrize("other", ["--hopper", "--rates", "--live", "--gpu=x"])
def test_exporting_measures_nothing(memsim: Run, tmp_path: Path, other: str) -> None:
    file = tmp_path / "memsim_probe.py"
    done = memsim("probe", other, "--export", file)
    assert (done.code, done.out) == (2, "")
    assert "--export writes the probe by clock, and measures or judges nothing" in done.err
    assert not file.exists()


def test_by_clock_bad_input(memsim: Run, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    for arguments, says in (
        ((tmp_path / "none.json",), "No such file"),
        ((tmp_path / "x.json",), "a recording of schema None"),
        ((tmp_path / "x.json", "--rates"), "RECORDING is by clock"),
        ((tmp_path / "x.json", "--live"), "RECORDING is by clock"),
        (("--clock", "--traces", tmp_path), "memsim probe --clock --live --record makes one"),
    ):
        memsim("probe", *arguments).refused(says)
