"""`memsim validate`: comparisons, recordings, and exit codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memsim.api import loading
from memsim.argument_types import ArrayArg
from memsim.job import Job
from memsim.launch import Launch
from memsim.validate.code_recording import (
    CodeLaunchRecord,
    CodeOrigin,
    CodeRecording,
    load_code_recording,
    new_code_path,
)
from memsim.validate.live import recorded_name
from memsim.validate.profiles import ONE_PASS, CodeProfile
from tests.cli.conftest import Run
from tests.validate.conftest import H200, recorded
from tests.validate.profiles import profiled
from tests.validate.test_report import reader

DEFAULT = (1024, 1024, 1024)


def shelf(folder: Path, *recordings: CodeRecording) -> Path:
    for recording in recordings:
        recording.save(new_code_path(folder, recording, DEFAULT[: len(recording.extents)]))
    return folder


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("", "name one kernel or file, or give --all"),
        ("kernel_v4 --all", "name one kernel or file, or give --all"),
        ("kernel_v4 --record", "--record needs --live"),
        ("kernel_v4 --live --gpu x", "--gpu selects among recordings"),
        ("kernel_v4 --gpu nvidia-a100", "no recording of kernel_v4 at 1024,1024,1024 on nvidia-a100"),
        ("kernel_v4 --size 8,8,8", "no recording of kernel_v4 at 8,8,8"),
        ("kernel_v4 --size 8,8", "takes a size M,N,K"),
        ("kernel_v44", "did you mean"),
        ("--all --gpu nvidia-a100", "there are: nvidia-h100-80gb-hbm3, nvidia-h200"),
        ("--all --size 8,8", "takes a size"),
    ],
)
def test_bad_input(arguments: str, says: str, memsim: Run) -> None:
    memsim("validate", arguments).refused(says)


def with_figure(recording: CodeRecording, address: int, metric: str, value: int) -> CodeRecording:
    """A copy with one figure of an instruction changed."""
    first, *others = recording.profiles
    column = list(first.figures[metric])
    column[first.addresses.index(address)] = value
    figures = {**first.figures, metric: tuple(column)}
    return replace(recording, profiles=(replace(first, figures=figures), *others))


def test_a_recording(memsim: Run) -> None:
    lines = memsim("validate transpose_xor --gpu", H200).fine()
    assert (
        lines[0]
        == "transpose_xor 1024,1024 on NVIDIA H200: equal but for arbitration (31 exact, 2 arbitration)"
    )
    assert lines[2].split()[:3] == ["ncu", "metric", "predicted"]
    assert "Equal: the memory instructions (4); --instructions shows them all." in lines
    assert not any("STS" in line for line in lines)
    assert "machine code of sm_90, made by NVRTC" in lines[-2] and lines[-1].startswith("Result: right")
    whole = memsim("validate transpose_xor --instructions --gpu", H200)
    (row,) = (line for line in whole.out.splitlines() if " STS " in line)
    assert row.split()[-4:] == ["inst_executed", "32,768", "32,768", "exact"]
    assert "shows them all" not in whole.out


def test_json(memsim: Run) -> None:
    record = memsim("validate transpose_xor --json --gpu", H200).document()
    assert record["passed"] and (record["title"], record["where"]) == (
        "transpose_xor 1024,1024",
        "NVIDIA H200",
    )
    assert record["form"] == "machine code" and len(record["instructions"]) == 4
    (store,) = (row for row in record["instructions"] if " STS " in f" {row['sass']}")
    assert store["figures"][0]["metric"] == "inst_executed" and store["figures"][0]["verdict"] == "exact"


def test_an_instruction_that_differs_fails_and_is_named(memsim: Run, tmp_path: Path) -> None:
    good = recorded("transpose_xor")
    row = next(i for i, text in enumerate(good.profiles[0].sass) if " STS " in f" {text}")
    address = good.profiles[0].addresses[row]
    wrong = with_figure(good, address, "memory_l1_wavefronts_shared", 32_769)
    done = memsim("validate transpose_xor --traces", shelf(tmp_path, wrong))
    assert done.code == 1
    head = done.out.splitlines()[0]
    assert head.startswith(f"transpose_xor 1024,1024 on NVIDIA H200: differs: {address:#06x} @")
    shown = [line for line in done.out.splitlines() if line.endswith("difference")]
    assert any("memory_l1_wavefronts_shared" in line and "32,769" in line for line in shown)
    assert memsim("validate transpose_xor --traces", shelf(tmp_path / "good", good)).code == 0


def test_a_changed_counter_fails(memsim: Run, tmp_path: Path) -> None:
    metric = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
    first, *others = recorded("transpose_xor").profiles
    assert first.counters[metric].value == 131_072
    counters = {**first.counters, metric: replace(first.counters[metric], value=131_073)}
    wrong = replace(recorded("transpose_xor"), profiles=(replace(first, counters=counters), *others))
    done = memsim("validate transpose_xor --traces", shelf(tmp_path, wrong))
    assert done.code == 1
    assert done.out.startswith(f"transpose_xor 1024,1024 on NVIDIA H200: differs: {metric} (")
    (row,) = (line.split() for line in done.out.splitlines() if line.startswith(metric))
    assert row[1:3] == ["131,072", "131,073"] and row[-1] == "difference"


@pytest.mark.slow
def test_a_size_of_a_kernel(memsim: Run) -> None:
    done = memsim("validate kernel_v4 --size ragged --gpu", H200)
    assert done.code == 0 and done.out.startswith("kernel_v4 331,269,147 on NVIDIA H200: equal")
    assert memsim("validate kernel_v4 --size 331,269,147 --gpu", H200).out == done.out


@pytest.mark.slow
def test_everything(memsim: Run, tmp_path: Path) -> None:
    xor, ragged = recorded("transpose_xor"), recorded("kernel_v4", "ragged")
    folder = shelf(tmp_path, xor, recorded("kernel_v4"), ragged)
    lines = memsim("validate --all --traces", folder).fine()
    assert lines[-1].startswith("3 of 3 launches as predicted, by instruction: ")
    assert [line.split()[0] for line in lines[:-1]] == ["kernel_v4", "kernel_v4", "transpose_xor"]
    assert len(memsim("validate --all --size ragged --traces", folder).out.splitlines()) == 2
    assert len(memsim("validate --all --json --traces", folder).document()) == 3
    stale = replace(xor, code=replace(xor.code, digest="0" * 64), date="2030-01-01T00:00:00Z")
    done = memsim("validate --all --traces", shelf(folder, stale))
    assert done.code == 2 and "transpose_xor has changed since it was recorded" in done.err
    assert done.out.splitlines()[-1].startswith("2 of 2 launches")


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A machine that measures what was recorded, and of a file what memsim predicts."""
    settings: dict[str, Any] = {"right": True, "launches": [], "profiles": lambda profiles: profiles}

    def measure(launches: Sequence[Job], progress: Any) -> list[CodeRecording]:
        settings["launches"] = [(recorded_name(job), tuple(job.size.values())) for job in launches]
        found = []
        for job in launches:
            if job.size:
                one = recorded(recorded_name(job), ",".join(map(str, job.size.values())))
                assert one.result is not None
                found.append(replace(one, result=replace(one.result, right=settings["right"])))
            else:
                origin, shape = job.loaded.origin, job.launch
                made = CodeLaunchRecord(job.loaded.name, shape.grid, shape.block, shape.shared_bytes, ())
                code = CodeOrigin(origin.compiler, origin.arch, origin.digest)
                profiles = settings["profiles"]((profiled(job),))
                like = recorded("kernel_v1")
                changes = {"name": recorded_name(job), "size": None, "result": None}
                found.append(replace(like, profiles=profiles, code=code, launch=made, **changes))
        return found

    from memsim.cli import validate

    monkeypatch.setattr(validate, "measure", measure)
    return settings


@pytest.mark.slow
def test_live_and_record(memsim: Run, measured: dict[str, Any], tmp_path: Path) -> None:
    assert memsim("validate kernel_v4 --live --traces", tmp_path).code == 0
    assert not list(tmp_path.iterdir())  # without --record, nothing is kept
    first = memsim("validate kernel_v4 --live --record --traces", tmp_path)
    second = memsim("validate kernel_v4 --live --record --traces", tmp_path)
    home = tmp_path / "nvidia-h200" / "code"
    assert first.err == f"recorded: {home / 'kernel_v4.json'}\n"
    assert second.err == f"recorded: {home / 'kernel_v4.run2.json'}\n"
    assert load_code_recording(home / "kernel_v4.run2.json") == recorded("kernel_v4")
    memsim("validate kernel_v4 --live --record --size ragged --traces", tmp_path)
    assert (home / "kernel_v4.331x269x147.json").is_file()
    assert measured["launches"] == [("kernel_v4", (331, 269, 147))]


def test_a_wrong_result_is_not_recorded(memsim: Run, measured: dict[str, Any], tmp_path: Path) -> None:
    measured["right"] = False
    done = memsim("validate kernel_v4 --live --record --traces", tmp_path)
    assert done.code == 1 and "computed a wrong result on this GPU: kernel_v4" in done.err
    assert not list(tmp_path.iterdir())


SCALE = """
extern "C" __global__ void scale(float *x, float factor) {
    __shared__ float tile[64];
    tile[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
    __syncthreads();
    x[blockIdx.x * 64 + threadIdx.x] = tile[threadIdx.x ^ 1] * factor;
}
extern "C" __global__ void other(float *x) { x[threadIdx.x] = 1; }
"""
OPTIONS = "--kernel scale --grid 4 --block 64 --arg 'f32[256]' --arg 2.0"


@pytest.fixture
def scale(tmp_path: Path) -> Path:
    path = tmp_path / "scale.cu"
    path.write_text(SCALE)
    return path


def launch_of(path: Path, grid: int = 4, kernel: str = "scale") -> Job:
    args = [ArrayArg((256,)), 2.0][: 2 if kernel == "scale" else 1]
    return Job(loading.load(path)[kernel], Launch((grid, 1, 1), (64, 1, 1)), args)


def test_a_file_live(memsim: Run, measured: dict[str, Any], scale: Path, tmp_path: Path) -> None:
    done = memsim("validate", scale, OPTIONS, "--live --record --traces", tmp_path / "traces")
    assert done.code == 0, done.err
    head = done.out.splitlines()[0]
    assert head.startswith("scale on NVIDIA H200: equal in every counter and all 4 memory instructions")
    recording = load_code_recording(tmp_path / "traces" / "nvidia-h200" / "code" / "scale.json")
    assert (recording.name, recording.size, recording.launch.grid) == ("scale", None, (4, 1, 1))

    def add_one(profiles: tuple[CodeProfile, ...]) -> tuple[CodeProfile, ...]:
        metric = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
        counted = profiles[0].counters[metric]
        return (replace(profiles[0], counters={**profiles[0].counters, metric: replace(counted, value=33)}),)

    measured["profiles"] = add_one
    done = memsim("validate", scale, OPTIONS, "--live")
    assert done.code == 1
    assert "differs: l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum (" in done.out.splitlines()[0]


def report(folder: Path, *profiles: CodeProfile, name: str = "run.ncu-rep") -> Path:
    path = folder / name
    path.write_bytes(msgspec.json.encode(profiles))
    return path


@pytest.fixture
def ncu_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module ncu_report that reads the reports that `report` writes."""
    reader(tmp_path, "from tests.validate.fakes import load_profiles as load_report\n", monkeypatch)


@pytest.mark.slow
@pytest.mark.usefixtures("ncu_report")
def test_a_report_that_the_user_has(memsim: Run, scale: Path, tmp_path: Path) -> None:
    launch = launch_of(scale)
    good = profiled(launch)
    path = report(tmp_path, profiled(launch_of(scale, kernel="other")), profiled(launch_of(scale, 2)), good)
    done = memsim("validate", scale, OPTIONS, "--ncu-rep", path)
    assert (done.code, done.err) == (0, "")
    head = done.out.splitlines()[0]
    assert head.startswith(
        "scale on the GPU of run.ncu-rep: equal in every counter and all 4 memory instructions"
    )

    column = tuple(
        None if value is None else value + 1 for value in good.figures["memory_l1_tag_requests_global"]
    )
    wrong = replace(good, figures={**good.figures, "memory_l1_tag_requests_global": column})
    done = memsim("validate", scale, OPTIONS, "--ncu-rep", report(tmp_path, wrong))
    assert done.code == 1 and " LDG" in done.out.splitlines()[0]


@pytest.mark.slow
@pytest.mark.usefixtures("ncu_report")
def test_two_reports_prove_arbitration(memsim: Run, scale: Path, tmp_path: Path) -> None:
    launch = launch_of(scale)
    metrics = next(metrics for accesses, metrics in ONE_PASS.items() if "shared store" in accesses)
    alone = profiled(launch, metrics)
    busy = {name: replace(one, value=one.value + 3) for name, one in alone.counters.items()}
    whole = profiled(launch)
    first = report(tmp_path, replace(whole, counters={**whole.counters, **busy}))
    done = memsim("validate", scale, OPTIONS, "--ncu-rep", first)
    assert done.code == 1 and "differs: l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum" in done.out
    second = report(tmp_path, replace(alone, counters=busy), name="alone.ncu-rep")
    done = memsim("validate", scale, OPTIONS, "--ncu-rep", first, "--ncu-rep", second)
    assert done.code == 0
    assert done.out.startswith("scale on the GPU of run.ncu-rep and alone.ncu-rep: equal but for arbitration")


@pytest.mark.some(1)
@pytest.mark.usefixtures("ncu_report")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kernel": "stretch"}, "there is no launch of scale in the report"),
        ({"grid": (8, 1, 1)}, "no launch of scale in the report has grid 4,1,1 and block 64,1,1"),
        ({"sass": ("NOP",)}, "scale has other machine code in the report"),
        (
            {"counters": {}, "figures": {}, "addresses": (), "sass": ()},
            "the reports have no metric that memsim predicts",
        ),
    ],
)
def test_a_report_of_something_else(
    change: dict[str, Any], says: str, memsim: Run, scale: Path, tmp_path: Path
) -> None:
    good = profiled(launch_of(scale))
    assert memsim("validate", scale, OPTIONS, "--ncu-rep", report(tmp_path, good)).code == 0
    if change.get("sass"):
        change = {"sass": change["sass"] * len(good.sass)}
    memsim("validate", scale, OPTIONS, "--ncu-rep", report(tmp_path, replace(good, **change))).refused(says)


def test_bad_input_of_files(memsim: Run, measured: dict[str, Any], scale: Path, tmp_path: Path) -> None:
    assert memsim("validate", scale, OPTIONS, "--live").code == 0
    for arguments, says in (
        ((scale, OPTIONS), "give --live or --ncu-rep"),
        ((scale, OPTIONS, "--live", "--ncu-rep", "x"), "replaces --live"),
        ((scale, OPTIONS, "--live", "--blocks", "2"), "--blocks does not apply here"),
        ((scale, OPTIONS, "--live", "--size", "8,8"), "--size does not apply to a CUDA file"),
        (("kernel_v4", "--grid", "8"), "--grid does not apply to a catalogue kernel"),
        ((scale, "--live"), "it has 2 kernels; choose one by --kernel"),
        ((tmp_path / "none.cu", OPTIONS, "--live"), "no such file"),
        ((scale, OPTIONS, "--ncu-rep", tmp_path / "none.ncu-rep"), "no such report"),
        (("trace.npz", "--live"), "a saved trace cannot be run"),
    ):
        memsim("validate", *arguments).refused(says)
