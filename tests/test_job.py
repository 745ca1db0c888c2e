"""A `Job` is the same however it is written: by options, in a configuration, by a test, by keywords."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memsim
from memsim.analysis import analyze_trace
from memsim.api import kernel_file, loading, running
from memsim.arch import ARCHS, SM_90
from memsim.argument_types import ArrayArg
from memsim.cli import launch_options as options
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.kernels import catalog
from memsim.launch import Launch
from memsim.targets.cache import key_of
from memsim.targets.project import read_project
from memsim.targets.target import CATALOGUE, FILES, PYTHON, SAVED, read_job, vary

SCALE = """\
extern "C" __global__ void scale(float *data, float by) {
    extern __shared__ float tile[];
    tile[threadIdx.x * STRIDE % 64] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = tile[threadIdx.x] * by;
}
"""
SAID: dict[str, Any] = {
    "grid": (2,),
    "block": (64, 1),
    "args": ["f32[64]", "2.0"],
    "shared_bytes": 256,
    "options": ["-DSTRIDE=2"],
    "blocks": 1,
    "max_steps": 100_000,
    "allow_out_of_bounds": True,
    "compiler": "nvrtc",
}
WORDS = (
    *("--grid", "2", "--block", "64,1", "--arg", "f32[64]", "--arg", "2.0", "--shared-bytes", "256"),
    *("-DSTRIDE=2", "--blocks", "1", "--max-steps", "100000", "--compiler", "nvrtc"),
    "--allow-out-of-bounds",
)
ENTRY = """
[[targets]]
file = "scale.cu"
grid = 2
block = [64, 1]
args = ["f32[64]", 2.0]
shared_bytes = 256
options = ["-DSTRIDE=2"]
blocks = 1
max_steps = 100_000
allow_out_of_bounds = true
compiler = "nvrtc"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scale.cu").write_text(SCALE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Job]:
    """The job that `memsim analyze` makes of words."""

    def job(*words: str) -> Job:
        from memsim.cli import cli

        found: list[Job] = []

        def made(job: Job, *_: object, **__: object) -> None:
            found.append(job)
            pytest.skip("made")

        monkeypatch.setattr(options, "trace_of", made)
        with pytest.raises(pytest.skip.Exception):
            cli.main(["analyze", *words], standalone_mode=False)
        return found[0]

    return job


@pytest.mark.slow
def test_one_launch_in_three_ways_is_one_job(folder: Path, typed: Callable[..., Job]) -> None:
    said = read_job("scale.cu", SAID, folder=folder)
    (folder / "memsim.toml").write_text(ENTRY)
    (configured,) = read_project(folder / "memsim.toml").targets
    assert configured == said
    words = typed("scale.cu", *WORDS)
    assert words == replace(said, kernel=replace(said.kernel, folder=Path()))  # type: ignore[type-var]
    launch, args = Launch((2, 1, 1), (64, 1, 1), 256), [ArrayArg((64,)), 2.0]
    by_keywords = Job(words.loaded, launch, args, blocks=1, allow_out_of_bounds=True)
    assert key_of(words) == key_of(said) == key_of(by_keywords)
    assert key_of(replace(by_keywords, allow_out_of_bounds=False)) != key_of(said)


def test_what_is_only_a_default_is_not_said(typed: Callable[..., Job]) -> None:
    job = typed("kernel_v4")
    assert job == catalog()["kernel_v4"].job()
    assert (job.launch.shared_bytes, job.blocks, job.given) == (0, None, "M 1024, N 1024, K 1024")


def test_every_key_of_every_kind_can_be_typed() -> None:
    """What can be said of a target has its option, and each option is a key of some kind."""
    kinds = [CATALOGUE, PYTHON, SAVED, *FILES.values()]
    assert {key for kind in kinds for key in kind.keys} - {"name"} == set(options.KEYS.values())


@pytest.mark.parametrize(
    ("target", "said", "message"),
    [
        ("kernel_v4", {"grid": 8}, "grid does not apply to a catalogue kernel"),
        ("kernel_v4", {"block": 8}, "did you mean blocks?"),
        ("kernel_v44", {}, "did you mean kernel_v4"),
        ("scale.cu", {**SAID, "size": "64"}, "size does not apply to a CUDA file"),
        ("scale.cubin", {**SAID, "code": None}, "options does not apply to a file of machine code"),
        ("scale.cu", {"grid": 8}, "scale.cu: there is no such file"),
        ("scale.cu", {"grid": 8, "block": True}, "block must be one to three positive integers"),
        ("scale.cu", {**SAID, "shared_bytes": True}, "dynamic shared memory cannot be True bytes"),
        ("scale.cu", {**SAID, "max_steps": 0}, "max_steps must be an integer of at least 1, not 0"),
        ("scale.cu", {**SAID, "allow_out_of_bounds": 1}, "allow_out_of_bounds must be true or false, not 1"),
        ("scale.cu", {**SAID, "blocks": True}, "blocks must be an integer of at least 1, not True"),
        ("scale.cu", {**SAID, "arch": "sm_50"}, "no rules for architecture 'sm_50'"),
    ],
)
def test_what_is_no_job(target: str, said: dict[str, Any], message: str) -> None:
    with pytest.raises(MemsimError) as caught:
        read_job(target, said)
    assert message in str(caught.value)
    assert read_job("scale.cu", SAID) and read_job("kernel_v4", {})


def test_a_variant_changes_only_what_is_said() -> None:
    job = read_job("scale.cu", SAID)
    assert vary(job, {}) == job
    varied = vary(job, {"blocks": None, "arch": SM_90})
    assert (varied.blocks, varied.max_steps) == (None, 100_000)
    assert varied.kernel == job.kernel


def test_texts_are_arguments_of_the_python_functions_too(folder: Path) -> None:
    kernel = memsim.load(folder / "scale.cu", ["-DSTRIDE=1"])["scale"]
    found = [
        memsim.analyze(kernel, 1, 64, args, shared_bytes=256).to_dict()
        for args in (["f32[64]", "2.0"], [ArrayArg((64,)), 2.0], ("f32[64]", 2.0))
    ]
    assert found[0] == found[1] == found[2]
    with pytest.raises(MemsimError, match="an array for by, which is f32, not a pointer"):
        memsim.analyze(kernel, 1, 64, ["f32[64]", "f32[64]"], shared_bytes=256)
    data = np.arange(64, dtype=np.float32)
    memsim.run(kernel, 1, 64, [data, "0.5"], shared_bytes=256)
    assert data.tolist() == [i / 2 for i in range(64)]


def test_a_kernel_is_loaded_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = read_job("scale.cu", SAID)
    loads: list[Any] = []
    real = loading.load
    monkeypatch.setattr(
        kernel_file, "load", lambda *args, **named: loads.append(args) or real(*args, **named)
    )
    assert not loads
    assert job.loaded is job.loaded
    assert [*job.values] == [ArrayArg((64,)), 2.0]
    assert len(loads) == 1


def test_a_launch_of_the_catalogue_has_its_size() -> None:
    job = catalog()["kernel_v4"].job((128, 128, 64))
    assert job.size == {"M": 128, "N": 128, "K": 64}
    assert (job.kernel.file, job.name) == ("kernels/kernel_v4.cu", "kernel_v4")
    assert read_job("kernel_v4", {"size": "128,128,64"}) == job


def test_another_chip_is_another_file_of_data(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a chip decides comes from the `Arch` that is passed along."""
    job = catalog()["transpose_naive"].job((64, 64))
    trace = running.trace_job(job)

    def counts(**change: Any) -> dict[str, int | None]:
        return analyze_trace(trace, replace(SM_90, **change)).totals

    sectors, ways = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "memory_l2_theoretical_sectors_global"
    assert counts()[sectors] == 2 * (counts(sector_bytes=64)[sectors] or 0) > 0
    assert counts()[ways] != counts(sector_bytes=64)[ways]
    assert counts(rules=()) != counts()
    assert analyze_trace(trace, replace(SM_90, name="sm_91")).to_dict()["arch"] == "sm_91"

    small = replace(job, arch=replace(SM_90, shared_block_bytes=1024))
    with pytest.raises(MemsimError, match="the limit is 1024"):
        running.trace_job(small)
    with pytest.raises(MemsimError, match="which sm_88 cannot run"):
        running.trace_job(replace(job, kernel=job.loaded, arch=replace(SM_90, name="sm_88")))
    monkeypatch.setitem(ARCHS, "sm_90a", replace(SM_90, name="sm_90a"))
    assert read_job("scale.cu", {**SAID, "arch": "sm_90a"}).loaded.origin.arch == "sm_90a"


def test_a_job_that_ran_goes_to_another_process(tmp_path: Path) -> None:
    """Whether it names its kernel or holds it loaded, and whatever executes its opcodes."""
    (tmp_path / "rest.cu").write_text(
        'extern "C" __global__ void rest(int *m, int n) {\n'
        "    m[threadIdx.x] = m[abs(n - __popc(threadIdx.x)) % n];\n}\n"
    )
    named = Job(
        kernel_file.KernelFile(tmp_path, "rest.cu"),
        Launch((1, 1, 1), (64, 1, 1)),
        ["i32[64]", "7"],
    )
    for job in (named, replace(named, kernel=named.loaded)):
        counts = analyze_trace(running.trace_job(job)).totals
        carried = pickle.loads(pickle.dumps(job))
        assert "loaded" not in vars(carried)
        assert analyze_trace(running.trace_job(carried)).totals == counts
