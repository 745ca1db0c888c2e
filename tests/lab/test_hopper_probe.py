"""The microbenchmarks of Hopper: rules against what was recorded, and a run on a GPU that is not there."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import memsim
from lab.experiments import HOPPER
from lab.hopper import run_hopper as measure
from lab.hopper.hopper_launch import HopperLaunch, HopperRecording
from lab.hopper.judge_hopper import judge_hopper
from lab.hopper.run_hopper import CODE, PLAN, SHARED_BYTES, TABLES, encode, run_hopper
from memsim import ArrayArg, TensorMap
from memsim.compile.cuda_source import compile_cubin
from memsim.errors import MemsimError
from memsim.sass.cubin import read_cubin
from memsim.validate import profiler as ncu
from memsim.validate.device import Device
from memsim.validate.profiler import Profiler
from memsim.validate.profiles import CodeProfile, Counted
from tests.validate.conftest import TRACES

#: Of each recording the launches of each rule.
RULES = {
    "probe": {
        "operands of wgmma": 296,
        "boxes of tensors": 271,
        "bulk copies": 100,
        "copies to several blocks": 14,
        "shared memory of other blocks": 88,
        "atomics on shared memory of other blocks": 33,
        "asynchronous stores": 8,
        "copies between blocks": 4,
        "a block's own memory by an address of the cluster": 24,
        "mbarriers: no load, store or atomic": 62,
        "local memory": 110,
        "constants at an index": 39,
    },
    "clusters": {
        "copies to several blocks": 208,
        "atomics on shared memory of other blocks": 173,
        "asynchronous stores": 206,
        "copies between blocks": 27,
        "mbarriers wherever they lie": 78,
    },
    "lanes": {
        "copies between blocks": 92,
        "shared memory of several blocks": 356,
        "atomics on local memory": 48,
        "atomics on global memory": 176,
        "instructions without an access": 48,
    },
    "multicast_rows": {"copies to several blocks": 144},
    "rows": {"boxes of tensors": 432},
}
RECORDED = {recording.name: recording for recording in HOPPER.newest_of_each(TRACES, "nvidia-h200")}
DEVICE = Device("NVIDIA H100 80GB HBM3", "9.0", "580", "13.0", "14.2.0")
READS = "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum"


@pytest.fixture(scope="module")
def recording() -> HopperRecording:
    return RECORDED["probe"]


@pytest.fixture(scope="module")
def code(recording: HopperRecording) -> bytes:
    try:
        return compile_cubin(recording.source, arch="sm_90a").cubin
    except MemsimError as error:
        if "not installed" not in error.message:
            raise
        pytest.skip(error.message)


@pytest.mark.some(1)
@pytest.mark.parametrize("name", RULES)
def test_every_rule_holds_for_every_launch(name: str) -> None:
    found = judge_hopper(RECORDED[name].parts)
    assert {held.name: held.compared for held in found} == RULES[name]
    assert all(held.holds and held.equal == held.compared and not held.different for held in found)


def test_every_recording_has_its_rules() -> None:
    assert RECORDED.keys() == RULES.keys()


def test_a_counter_that_differs_is_told(recording: HopperRecording) -> None:
    launches = list(recording.parts["bulk_and_clusters"])
    at = next(i for i, launch in enumerate(launches) if launch.kernel == "bl")
    more = launches[at].counters[READS] + 1
    launches[at] = replace(launches[at], counters={**launches[at].counters, READS: more})
    wrong = replace(recording, parts={**recording.parts, "bulk_and_clusters": tuple(launches)})
    (fails,) = (held for held in judge_hopper(wrong.parts) if not held.holds)
    assert (fails.name, fails.equal) == ("bulk copies", 99)
    assert fails.different == (("bl", READS, more - 1, more),)


def test_a_rule_without_counters_is_not_told(recording: HopperRecording) -> None:
    """Nothing is compared, which is not the same as equal."""
    blank = {
        part: [replace(one, counters={}) for one in launches] for part, launches in recording.parts.items()
    }
    assert judge_hopper(blank) == []
    without = {part: launches for part, launches in recording.parts.items() if part != "wgmma"}
    assert [held.name for held in judge_hopper(without)] == list(RULES["probe"])[1:]


def test_what_is_saved_is_what_is_read(recording: HopperRecording, tmp_path: Path) -> None:
    path = HOPPER.save(recording, tmp_path)
    assert path == tmp_path / "nvidia-h200" / "hopper" / "probe.npz"
    again = HOPPER.load(path)
    assert (again.name, again.head, again.source) == (recording.name, recording.head, recording.source)
    for part, launches in recording.parts.items():
        for one, other in zip(launches, again.parts[part], strict=True):
            assert (one.table == other.table).all()
            assert replace(one, table=other.table) == other
    assert HOPPER.save(recording, tmp_path).name == "probe.run2.npz"
    assert [one.head for one in HOPPER.newest_of_each(tmp_path)] == [recording.head]


def test_files_that_are_no_recordings(tmp_path: Path) -> None:
    with pytest.raises(MemsimError, match="there is no recording of Hopper's probe"):
        HOPPER.newest_of_each(tmp_path)
    path = tmp_path / "probe.npz"
    path.write_bytes(b"nothing")
    with pytest.raises(MemsimError, match="not a recording of Hopper's probe"):
        HOPPER.load(path)
    np.savez(path, head=np.array(json.dumps({"schema": 3})))
    with pytest.raises(MemsimError, match="schema 3"):
        HOPPER.load(path)


@pytest.mark.slow
def test_the_source_has_every_kernel(recording: HopperRecording, code: bytes) -> None:
    launched = {launch.kernel for launches in recording.parts.values() for launch in launches}
    assert not launched - set(read_cubin(code).kernels)


def some(recording: HopperRecording, part: str, kernel: str) -> list[HopperLaunch]:
    found = [launch for launch in recording.parts[part] if launch.kernel == kernel]
    return found[:: max(1, len(found) // 3)]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("part", "kernel"),
    [
        *(
            ("tensors", "tl_2d"),
            ("tensors", "ts_3d"),
            ("bulk_and_clusters", "bl"),
            ("bulk_and_clusters", "bs"),
            ("bulk_and_clusters", "blm"),
            ("tensors", "tlm_2d"),
        ),
        *(("bulk_and_clusters", "d_ld32"), ("bulk_and_clusters", "d_st128"), ("wgmma", "w_f16_64_01")),
        ("constants_and_local_memory", "l_ld64"),
    ],
)
def test_the_kernels_on_the_emulator_count_what_was_recorded(
    recording: HopperRecording, code: bytes, part: str, kernel: str, tmp_path: Path
) -> None:
    """All counters that memsim gives for the whole kernel, harness and all."""
    (tmp_path / "k.cubin").write_bytes(code)
    loaded = memsim.load(tmp_path / "k.cubin")[kernel]
    for launch in some(recording, part, kernel):
        table, out = launch.table, ArrayArg((1 << 18,), "uint8")
        given: Any = bytes(128)
        memory: Any = np.zeros(1 << 18, np.uint8)
        if launch.map is not None:
            shape, steps = launch.map["dims"][::-1], (launch.map["e"], *launch.map["strides"])[::-1]
            whole = np.ndarray(shape, f"u{launch.map['e']}", memory, launch.map["base"], steps)
            given = TensorMap(whole, tuple(launch.map["box"][::-1]), (0, 32, 64, 128)[launch.map["swz"]])
        arguments = [given, memory, table, out, *launch.numbers]
        analysis = memsim.analyze(loaded, launch.grid, launch.block, arguments, SHARED_BYTES)
        told = {metric: count for metric, count in analysis.totals.items() if metric in launch.counters}
        known = {metric: count for metric, count in told.items() if count is not None}
        assert known and known == {metric: launch.counters[metric] for metric in known}


# --- a run on a GPU ---------------------------------------------------------------------------


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, recording: HopperRecording) -> list[list[str]]:
    """A profiler that counts what was recorded; what it was asked for."""
    asked: list[list[str]] = []
    answers: list[list[CodeProfile]] = []

    def profile(
        profiler: Profiler, report: Path, what: Any, command: list[str], launched: Callable[[], None]
    ) -> str:
        folder = Path(command[-1])
        launches = json.loads((folder / PLAN).read_text("utf-8"))
        assert (folder / CODE).is_file() and len(np.load(folder / TABLES)) == len(launches)
        asked.append(list(what))
        metrics = what[-1].split(",")
        part = next(part for part, names in recording.parts.items() if len(names) == len(launches))
        assert set(metrics) < {name for one in recording.parts[part] for name in one.counters}
        answers.append(
            [
                CodeProfile(
                    *(one.kernel, None, None, 1),
                    {name: Counted(value, "") for name, value in one.counters.items() if name in metrics},
                )
                for one in recording.parts[part]
            ]
        )
        for _ in launches:
            launched()
        return ""

    monkeypatch.setattr(measure, "this_device", lambda: DEVICE)
    monkeypatch.setattr(measure, "find_profiler", lambda: Profiler(Path("ncu"), "2025.3.1.0"))
    monkeypatch.setattr(ncu, "profile", profile)
    monkeypatch.setattr(ncu, "read_code_report", lambda report, lines: answers.pop())
    monkeypatch.setattr(
        measure, "compile_cubin", lambda source, arch: SimpleNamespace(cubin=b"code", compiler="nvcc")
    )
    return asked


@pytest.mark.slow
def test_a_run_repeats_the_launches(recording: HopperRecording, gpu: list[list[str]]) -> None:
    shares: list[float] = []
    (made,) = run_hopper([recording], shares.append)
    assert made.gpu == DEVICE.gpu and made.head["driver"] == "580"
    assert len(gpu) == len(recording.parts)
    assert all(what[:3] == ["--cache-control", "none", "--metrics"] for what in gpu)
    assert shares[-1] == 1.0 and shares == sorted(shares)
    assert [held.compared for held in judge_hopper(made.parts)] == list(RULES["probe"].values())
    assert all(held.holds for held in judge_hopper(made.parts))


def test_a_run_that_fails_says_why(
    recording: HopperRecording, gpu: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(profiler: Any, report: Any, what: Any, command: list[str], launched: Any) -> str:
        (Path(command[-1]) / ncu.ANSWER).write_text(
            json.dumps({"error": "bl does not run", "hint": None}), "utf-8"
        )
        raise MemsimError("ncu failed")

    monkeypatch.setattr(ncu, "profile", fails)
    with pytest.raises(MemsimError, match="bl does not run"):
        next(run_hopper([recording]))
    monkeypatch.setattr(measure, "this_device", lambda: replace(DEVICE, compute_capability="8.0"))
    with pytest.raises(MemsimError, match=r"has compute capability 8\.0"):
        next(run_hopper([recording]))


class FakeDriver:
    """Notes what a tensor map is made of."""

    def __init__(self, answer: int = 0) -> None:
        self.answer = answer
        self.asked: tuple[Any, ...] = ()

    def cuTensorMapEncodeTiled(self, room: Any, *asked: Any) -> int:  # noqa: N802 (the driver's name)
        address = ctypes.cast(room, ctypes.c_void_p).value or 1
        assert address % 64 == 0
        ctypes.memset(address, 7, 128)
        self.asked = asked
        return self.answer


def test_tensor_maps_are_made_as_they_were_recorded(recording: HopperRecording) -> None:
    launch = next(one for one in recording.parts["tensors"] if one.kernel == "tl_3d")
    assert launch.map is not None
    driver = FakeDriver()
    assert encode(driver, launch.map, 4096) == bytes([7]) * 128
    kind, rank, base, dims, strides, box, ones, *rest = driver.asked
    assert (kind.value, rank.value, base.value) == (launch.map["dt"], 3, 4096 + launch.map["base"])
    assert (list(dims), list(strides), list(box)) == (
        launch.map["dims"],
        launch.map["strides"],
        launch.map["box"],
    )
    assert list(ones) == [1, 1, 1] and [one.value for one in rest] == [
        0,
        launch.map["swz"],
        0,
        launch.map["fill"],
    ]
    with pytest.raises(MemsimError, match="CUDA error 1"):
        encode(FakeDriver(1), launch.map, 4096)
