"""The probe by clock: its programs, the file that is exported, and what its recordings say of a chip."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memsim
from lab.clock.clock_programs import ACCESSES, PIPES, data
from lab.clock.judge_clock import (
    ClockRecording,
    cycles_of_a_wavefront,
    cycles_to_registers,
    judge_clock,
    run_clock,
)
from lab.experiments import CLOCK
from lab.rules_file import fastest_of_each, write_clock_rules
from memsim.arch import ARCHS, ASSUMED, BY_CLOCK, MEASURED, PUBLISHED
from memsim.arch.contributed import with_contributed
from memsim.errors import MemsimError
from memsim.model.pipes import pipe_use
from memsim.validate.device import check_record, program_data, program_text
from memsim.validate.standalone import Gpu, text_of, words_of
from tests.lab.fake_driver import FakeDriver
from tests.validate.conftest import H100, H200, TRACES

DATA = program_data()
OF_ACCESSES = [program for program in DATA["programs"] if program["name"] in ACCESSES]


def recorded(**about: Any) -> ClockRecording:
    return run_clock(lambda: Gpu(FakeDriver(**about)))


@pytest.mark.some(2)
@pytest.mark.parametrize("program", OF_ACCESSES, ids=lambda program: program["name"])
def test_a_loop_makes_the_requests_of_its_patterns(program: dict[str, Any]) -> None:
    """On the emulator: each of a round's accesses costs what the pattern itself does."""
    one, count = ACCESSES[program["name"]], 4
    words = words_of(DATA["tables"][program["table"]][:count])
    table = np.array(words, np.uint32).reshape(count, 32)
    kernel = memsim.load(text_of(program))["probe"]
    found = memsim.analyze(kernel, 1, 32, [table, np.zeros(count, np.uint64), count, 1, 0])
    sites = [site for site in found.sites if site.space == "shared"]
    cost = memsim.shared_access(table & 0x7FFF_FFFF, one.width, op=one.op, active=table >> 31 > 0)
    assert len(sites) == program["repeats"]
    assert {(site.width, site.requests) for site in sites} == {(one.width, count)}
    assert {site.wavefronts for site in sites} == {int(cost.wavefronts.sum())}


@pytest.mark.slow
def test_every_pattern_is_asked_and_every_instruction_measured() -> None:
    recording = recorded()
    assert set(recording.measured) == {
        program["name"] for program in DATA["programs"] if program["since"] <= 80
    }
    assert {held.name for held in judge_clock(recording) if held.holds} == set(recording.measured)
    addresses, active = recording.patterns("LDS128")
    assert addresses.shape == active.shape == (128, 32)
    assert not (addresses % 16).any() and active.any(axis=1).all()
    assert set(PIPES) == {held.name for held in judge_clock(recording) if held.key is None}


def test_a_chip_may_take_two_cycles_for_a_wavefront() -> None:
    recording = recorded(wavefront=2)
    assert cycles_of_a_wavefront(recording) == 2
    assert all(held.holds for held in judge_clock(recording))


def test_what_differs_is_found() -> None:
    found = judge_clock(recorded(slower={"STS64": 1, "popc": 2}))
    assert [held.name for held in found if not held.holds] == ["STS64", "popc"]
    stores = next(held for held in found if held.name == "STS64")
    assert stores.equal == 0 and stores.measured == tuple(count + 1 for count in stores.predicted)


def test_what_the_driver_refuses_is_told() -> None:
    recording = recorded(refuses=("LDM4",))
    assert recording.refused == {"LDM4": "cuModuleLoadData: CUDA_ERROR_UNSUPPORTED_PTX_VERSION"}
    assert "LDM4" not in recording.measured and "LDM2" in recording.measured


def test_no_gpu_is_an_error_for_people() -> None:
    with pytest.raises(MemsimError, match="cuInit: CUDA_ERROR_NO_DEVICE"):
        recorded(devices=0)


def test_an_older_chip_is_measured_with_what_it_has() -> None:
    found = {held.name for held in judge_clock(recorded(name="NVIDIA T4", chip=(7, 5)))}
    assert "LDM4" in found and "ffma" in found
    assert not {"STM4", "imma_16832"} & found


def test_what_ships_is_what_is_made_here() -> None:
    assert {"memsim": memsim.__version__, **data()} == DATA


def test_the_exported_file_needs_nothing(tmp_path: Path) -> None:
    """Without the site's packages, and without a driver: it says so."""
    file = tmp_path / "memsim_probe.py"
    file.write_text(program_text(), "utf-8")
    done = subprocess.run([sys.executable, "-I", "-S", file], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 2)
    assert done.returncode == 0 or done.stderr.startswith("memsim probe: ")


@pytest.mark.slow
def test_the_exported_file_records_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "exported"}
    exec(compile(program_text(), "memsim_probe.py", "exec"), names)
    assert names["DATA"] == DATA
    monkeypatch.setitem(names, "load_driver", FakeDriver)
    assert names["main"]([]) == 0
    assert judge_clock(CLOCK.load(tmp_path / "memsim-probe-nvidia-a100.json")) == judge_clock(recorded())


@pytest.mark.parametrize("gpu", [H100, H200])
def test_a_clock_shows_the_wavefronts_of_the_model(gpu: str) -> None:
    """Counters equal the model there, too, on other patterns (`test_probe.py`)."""
    recording = CLOCK.newest(TRACES, gpu)
    found = judge_clock(recording)
    assert {held.name for held in found} == {*ACCESSES, *PIPES} and not recording.refused
    assert [held.name for held in found if not held.holds] == []
    assert cycles_of_a_wavefront(recording) == 1
    assert sum(len(held.predicted) for held in found if held.key) == 2693


@pytest.mark.parametrize("name", ["LDS64", "LDS128", "EXCHS64", "CASS64"])
def test_what_is_left_out_takes_no_longer_than_the_way_to_the_registers(name: str) -> None:
    recording, one = CLOCK.newest(TRACES, H200), ACCESSES[name]
    addresses, active = recording.patterns(name)
    wavefronts = memsim.shared_access(addresses, one.width, op=one.op, active=active).wavefronts
    least = cycles_to_registers(one)
    left_out = wavefronts < least
    measured = np.rint(recording.cycles_each(name)).astype(int)[left_out]
    assert len(measured) >= 13
    assert (wavefronts[left_out] <= measured).all() and (measured <= least).all()


def contributed(recording: ClockRecording, folder: Path) -> Any:
    path = CLOCK.save(recording, folder)
    write_clock_rules(recording, judge_clock(recording), path.parent)
    return with_contributed(ARCHS["sm_80"], folder)


def test_rules_that_hold_are_measured_by_clock(tmp_path: Path) -> None:
    chip = contributed(recorded(), tmp_path)
    assert (tmp_path / "nvidia-a100" / "rules.clock.json").is_file()
    assert chip.basis("shared", "load", 16) == chip.basis("shared", "ldmatrix", 16) == BY_CLOCK
    assert chip.basis("shared", "cp_async", 16) == ASSUMED
    assert chip.basis("global", "load", 4) == PUBLISHED
    assert chip.rates == BY_CLOCK and not chip.is_measured
    assert CLOCK.newest(tmp_path).gpu == "NVIDIA A100"


def test_a_rule_that_a_clock_does_not_show_stays_what_it_was(tmp_path: Path) -> None:
    chip = contributed(recorded(slower={"LDS128": 1, "shfl": 1}), tmp_path)
    assert chip.basis("shared", "load", 16) == ASSUMED
    assert chip.basis("shared", "load", 8) == BY_CLOCK
    assert chip.rates == ASSUMED and chip.clocked == ()  # shuffles go through the data stage


def test_rates_of_another_chip_are_those_that_its_clock_shows(tmp_path: Path) -> None:
    """Four cycles more of a partition; a single slow loop of several on a pipe does not make it slow."""
    slower = {"ffma": 1, "fadd": 1, "fmul": 1, "lop3": 1, "hmma_16816_f32": 1, "hmma_16816_f16": 1}
    chip = contributed(recorded(slower=slower), tmp_path)
    assert chip.rates == BY_CLOCK
    executed = dict.fromkeys(("FFMA", "LOP3.LUT", "MUFU.EX2", "HMMA.16816.F32", "HMMA.1688.F32"), 100)
    ours, its = pipe_use(executed), pipe_use(executed, chip.clocked)
    assert (ours.cycles["fma"], its.cycles["fma"]) == (100, 500)
    assert its.cycles["tensor"] == ours.cycles["tensor"] + 400
    assert (its.cycles["alu"], its.cycles["xu"]) == (ours.cycles["alu"], ours.cycles["xu"])
    assert its.counters == ours.counters


@pytest.mark.parametrize(("chip", "is_known"), [((8, 0), True), ((8, 7), False)])
def test_a_chip_that_memsim_does_not_have_is_told(
    chip: tuple[int, int], is_known: bool, tmp_path: Path
) -> None:
    recording = recorded(chip=chip)
    told = [note for note in CLOCK.report(recording).notes if "memsim has no chip" in note]
    assert bool(told) != is_known
    assert all("no chip sm_87: " in note and "sm_86, sm_89" in note for note in told)
    assert (contributed(recording, tmp_path) is ARCHS["sm_80"]) != is_known


@pytest.mark.slow
def test_rates_that_differ_are_said_to_be_used() -> None:
    for slower, is_told in (
        ({"ffma": 1}, True),
        ({"ffma": 1, "shfl": 1}, False),
        ({"LDS32": 1}, False),
        ({}, False),
    ):
        recording = recorded(slower=slower)
        notes = list(CLOCK.report(recording).notes)
        assert any("used for this chip as they were measured" in note for note in notes) == is_told


@pytest.mark.parametrize("gpu", [H100, H200])
def test_the_fastest_of_each_kind_are_the_rates_of_sm_90(gpu: str) -> None:
    """Whole cycles of the recordings, as another chip's would be taken."""
    found = [held for held in judge_clock(CLOCK.newest(TRACES, gpu)) if held.key is None]
    clocked = tuple(fastest_of_each(found).items())
    executed = dict.fromkeys([*PIPES.values(), "IMAD.WIDE", "HFMA2", "ISETP", "UIADD3"], 1000)
    assert pipe_use(executed, clocked) == pipe_use(executed)


def test_counters_go_before_a_clock(tmp_path: Path) -> None:
    rules = [{"space": "shared", "op": "load", "width": 16, "holds": True, "compared": 512}]
    record = {"schema": 1, "arch": "sm_80", "gpu": "NVIDIA A100", "rules": rules}
    (tmp_path / "nvidia-a100").mkdir()
    (tmp_path / "nvidia-a100" / "rules.a.json").write_text(json.dumps(record))
    chip = contributed(recorded(), tmp_path)
    assert chip.basis("shared", "load", 16) == MEASURED
    assert chip.basis("shared", "load", 8) == BY_CLOCK


@pytest.mark.slow
def test_what_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(MemsimError, match="no recording by clock on nvidia-t4"):
        CLOCK.newest(tmp_path, "nvidia-t4")
    recording = recorded()
    record = json.loads(CLOCK.save(recording, tmp_path).read_text())
    assert judge_clock(check_record(record, 1, ClockRecording)) == judge_clock(recording)
    short: dict[str, Any] = json.loads(json.dumps(record))
    short["measured"]["LDS32"]["cycles"][0].pop()
    other = {**record, "schema": 9}
    for damaged, says in ((short, "cycles are missing"), (other, "schema 9"), ({**record, "gpu": 1}, "gpu")):
        with pytest.raises(MemsimError, match=says):
            check_record(damaged, 1, ClockRecording)


def test_reports_say_that_a_clock_was_read(tmp_path: Path) -> None:
    chip = contributed(recorded(), tmp_path)
    tile = memsim.SharedArray("tile", (32, 32), "f32")

    def read(t: memsim.Thread) -> None:
        tile[t.x, t.y].load()

    found, assumed = (memsim.analyze(read, block=(32, 32), arch=arch) for arch in (chip, "sm_80"))
    assert found.verdict.endswith("; rules of sm_80 were measured by clock")
    assert not any("rates" in reason for reason in found.bound.lacks)
    assert assumed.verdict.endswith("; rules of sm_80 are published, not measured")
    assert any("rates were not measured on sm_80" in reason for reason in assumed.bound.lacks)
