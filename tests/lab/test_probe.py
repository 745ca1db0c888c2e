"""The probe: its patterns, its programs on the emulator, and what was recorded with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memsim
from lab.experiments import PROBE
from lab.probe import run_probe as measure
from lab.probe.instructions import ACTIVE_BIT, EMPTY, FILE, HARNESS_LINE, INSTRUCTIONS, program
from lab.probe.judge_probe import judge_probe
from lab.probe.patterns import ROOM, make_patterns, side_by_side
from lab.probe.run_probe import METRICS, ProbeRecording, never_runs, run_probe
from memsim.errors import MemsimError
from memsim.validate import profiler as ncu
from memsim.validate.device import Device
from memsim.validate.predict import accesses_of
from memsim.validate.profiler import Profiler
from memsim.validate.profiles import SOURCE_METRICS, CodeProfile, Counted
from tests.validate.conftest import H100, TRACES

GPUS = (H100, "nvidia-h200")
DEVICE = Device("NVIDIA H100 80GB HBM3", "9.0", "580", "13.0", "14.2.0")
EXECUTED_HERE = [i for i in INSTRUCTIONS.values() if not i.copies]


@given(st.integers(0, 2**32), st.sampled_from([1, 2, 4, 8, 16]), st.sampled_from([8, 16, 32]), st.booleans())
def test_patterns_are_aligned_and_somebody_asks(seed: int, width: int, lanes: int, every: bool) -> None:
    addresses, active = make_patterns(20, width, np.random.default_rng(seed), lanes, every)
    assert addresses.shape == active.shape == (20, 32)
    assert not (addresses % width).any() and addresses.min() >= 0 and addresses.max() <= ROOM - width
    assert active.any(axis=1).all() and not active[:, lanes:].any()
    assert not addresses[~active].any()
    assert active[:, :lanes].all() or not every


def test_patterns_are_many_and_of_many_kinds() -> None:
    addresses, active = make_patterns(1000, 4, np.random.default_rng(0))
    assert len(np.unique(addresses, axis=0)) > 900
    ways = memsim.shared_access(addresses, 4, active=active).ways
    assert {1, 2, 4, 8, 16, 32} <= set(ways.tolist())
    assert 300 < np.count_nonzero(active.all(axis=1)) < 800
    far = side_by_side(5, 16, np.random.default_rng(0))
    assert (np.diff(far, axis=1) == 16).all() and not (far[:, 0] % 128).any()


@pytest.mark.some(4)
@pytest.mark.parametrize("instruction", EXECUTED_HERE, ids=lambda instruction: instruction.name)
def test_each_pattern_has_its_line_and_its_addresses(instruction: Any) -> None:
    """The program on the emulator asks for what its table says, under the line of the pattern."""
    addresses, active = make_patterns(
        6, instruction.width, np.random.default_rng(1), instruction.lanes, instruction.matrices > 0
    )
    table = (addresses | active.astype(np.int64) << ACTIVE_BIT).astype(np.uint32)
    kernel = memsim.load(program(instruction, 6, "9.0"))["probe"]
    memory = np.zeros(2 * ROOM, np.uint8)
    analysis = memsim.analyze(
        kernel, 1, 32, [table, np.zeros((6, 32), np.uint32), memory, np.zeros(32, np.uint32)]
    )
    probed = [access for access in accesses_of(analysis.trace) if access.site.line != HARNESS_LINE]
    for line, (access, where) in enumerate(zip(probed, addresses, strict=True), 1):
        assert (access.site.file, access.site.line) == (FILE, line)
        assert access.site.op == instruction.op or instruction.counter == "atom"
        assert (access.site.space, access.site.width) == (instruction.space, instruction.width)
        on = access.active[0]
        assert np.array_equal(on, active[line - 1])
        moved = access.addresses[0] - where
        assert len(set(moved[on].tolist())) == 1 and moved[on][0] % 1024 == 0


def test_the_empty_program_makes_only_the_harness() -> None:
    kernel = memsim.load(program(EMPTY, 3, "9.0"))["probe"]
    table = np.zeros((3, 32), np.uint32)
    analysis = memsim.analyze(kernel, 1, 32, [table, table, np.zeros(64, np.uint8), np.zeros(32, np.uint32)])
    assert {(site.space, site.op, site.requests, site.sectors) for site in analysis.sites} == {
        ("global", "load", 3, 12),
        ("global", "store", 1, 4),
    }


@pytest.mark.parametrize("gpu", GPUS)
def test_the_rules_hold_on_what_was_recorded(gpu: str) -> None:
    recording = PROBE.newest(TRACES, gpu)
    found = judge_probe(recording)
    assert [held.name for held in found if not held.holds] == []
    assert {held.name for held in found} == set(INSTRUCTIONS)
    assert sum(compared for held in found for _, compared in held.figures.values()) > 40_000
    compared = {held.name: sum(n for _, n in held.counters.values()) for held in found}
    assert min(compared.values()) >= 2
    assert compared["CP128cg"] >= 3 * 2


def spoiled(recording: ProbeRecording, name: str, array: str, where: tuple[int, ...]) -> ProbeRecording:
    probed = recording.probed[name]
    values = getattr(probed, array).copy()
    values[where] += 1
    return replace(recording, probed={**recording.probed, name: replace(probed, **{array: values})})


@pytest.mark.parametrize(
    ("name", "array", "where"),
    [
        ("LDS128", "counters", (0, METRICS.index("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"))),
        ("STS8", "figures", (1, 7, SOURCE_METRICS.index("memory_l1_wavefronts_shared"))),
        ("CP32ca", "counters", (1, METRICS.index("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"))),
        ("LDG64", "figures", (0, 0, SOURCE_METRICS.index("memory_l1_tag_requests_global"))),
    ],
)
def test_a_wrong_number_is_found(name: str, array: str, where: tuple[int, ...]) -> None:
    recording = PROBE.newest(TRACES, H100)
    found = judge_probe(spoiled(recording, name, array, where))
    assert [held.name for held in found if not held.holds] == [name]


def test_an_unknown_chip_is_judged_by_the_rules_of_sm_90() -> None:
    recording = PROBE.newest(TRACES, H100)
    other = replace(recording, device=replace(recording.device, compute_capability="8.7"))
    assert judge_probe(other) == judge_probe(recording)


def test_a_recording_is_saved_whole_and_never_written_over(tmp_path: Path) -> None:
    recording = PROBE.newest(TRACES, "nvidia-h200")
    few = replace(recording, probed={name: recording.probed[name] for name in ("EMPTY", "LDS8")})
    first, second = PROBE.save(few, tmp_path), PROBE.save(few, tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in (first, second)] == [
        "nvidia-h200/probe.npz",
        "nvidia-h200/probe.run2.npz",
    ]
    loaded = PROBE.load(second)
    assert (loaded.device, loaded.date, loaded.metrics) == (few.device, few.date, few.metrics)
    assert np.array_equal(loaded.probed["LDS8"].figures, few.probed["LDS8"].figures)
    assert judge_probe(loaded) == judge_probe(few)
    later = replace(few, date="2030-01-01T00:00:00Z")
    PROBE.save(later, tmp_path)
    assert PROBE.newest(tmp_path).date == later.date


def test_what_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(MemsimError, match="No such file"):
        PROBE.load(tmp_path / "nothing.npz")
    (tmp_path / "text.npz").write_text("text")
    np.savez(tmp_path / "other.npz", head=np.array('{"schema": 9}'))
    np.savez(tmp_path / "half.npz", head=np.array('{"schema": 1}'))
    for name, says in (("text", "not a recording"), ("other", "schema 9"), ("half", "not a recording")):
        with pytest.raises(MemsimError, match=says):
            PROBE.load(tmp_path / f"{name}.npz")
    with pytest.raises(MemsimError, match="no recording of the probe on nvidia-a100") as caught:
        PROBE.newest(TRACES, "nvidia-a100")
    assert H100 in str(caught.value)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """A profiler that gives each pattern its number as every figure."""
    ran: list[list[str]] = []
    monkeypatch.setattr(measure, "PATTERNS", 4)
    monkeypatch.setattr(measure, "this_device", lambda: DEVICE)
    monkeypatch.setattr(measure, "find_profiler", lambda: Profiler(Path("ncu"), "2025.3.1.0"))

    def profile(
        profiler: Any, report: Path, what: Sequence[str], command: Sequence[str], launched: Any
    ) -> str:
        ran.append(sorted(path.stem for path in Path(command[-1]).glob("*.ptx")))
        for _ in range(measure.LAUNCHES * len(ran[-1])):
            launched()
        return ""

    def read(report: Path, lines: bool) -> list[CodeProfile]:
        rows = [(n, "LDS R0, [R1]", n) for n in (1, 2, 3, 3)]
        rows += [
            (HARNESS_LINE, "LDG.E R0, desc[UR4][R2.64]", 9),
            (1, "@!PT LDS RZ, [RZ]", 9),
            (2, "IADD3 R0, R1, R2, RZ", 9),
        ]
        one = CodeProfile(
            *("probe", None, None, 9, {METRICS[0]: Counted(5, "")}, tuple(range(0, 16 * len(rows), 16))),
            sass=tuple(sass for _, sass, _ in rows),
            figures=dict.fromkeys(SOURCE_METRICS, tuple(figure for *_, figure in rows)),
            lines=tuple(line for line, *_ in rows) if lines else (),
        )
        return [one] * (measure.LAUNCHES * len(ran[-1]))

    monkeypatch.setattr(ncu, "profile", profile)
    monkeypatch.setattr(ncu, "read_code_report", read)
    return ran


def test_measuring_goes_by_lines(machine: list[list[str]]) -> None:
    shares: list[float] = []
    recording = run_probe(shares.append)
    assert set(recording.probed) == {"EMPTY", *INSTRUCTIONS} and len(machine) == 2
    assert (
        "LDG32" in machine[1]
        and "LDG32" not in machine[0]
        and "CP32ca" in machine[0]
        and "CP32ca" in machine[1]
    )
    figures = recording.probed["LDS32"].figures
    assert figures.shape == (measure.LAUNCHES, 4, 7)
    # pattern 3 has two instructions, pattern 4 none: neither says anything
    assert figures[0, :, 0].tolist() == [1, 2, -1, -1]
    assert recording.probed["LDS32"].counters[0].tolist() == [5] + [-1] * (len(METRICS) - 1)
    assert shares[-1] == 1.0


def test_an_older_chip_is_probed_with_what_it_has(
    machine: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "this_device", lambda: replace(DEVICE, compute_capability="7.5"))
    probed = run_probe().probed
    assert "LDM4" in probed and "STM4" not in probed and "CP32ca" not in probed


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    assert all(held.holds for held in judge_probe(run_probe()))


def test_what_ptxas_inserts_never_runs() -> None:
    assert never_runs("@!PT LDS RZ, [RZ]") and not never_runs("@!P0 LDS R0, [R1]")
