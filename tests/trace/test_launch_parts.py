"""A launch in parts: the trace of one process, whatever is cut, and by whom."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memsim
from memsim.analysis import analyze_trace
from memsim.api.launch_parts import CutLaunch, cut_launch, trace_shared
from memsim.api.loading import Module
from memsim.api.running import job_of, trace_job
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.kernels import catalog
from memsim.sanitizer.first_races import LIMIT
from memsim.trace import record, site_records
from memsim.trace.merge import RecordedBlocks, merge, recorded_blocks
from memsim.trace.record import Recorder
from memsim.trace.trace import Trace
from tests.benchmarks.irregular import SOURCE, case
from tests.few import few
from tests.trace.test_whole_kernels import NAMES, size_of

OWN = """
extern "C" __global__ void reduce(const int* key, float* sums, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&sums[key[i]], 1.0f);
}
extern "C" __global__ void append(const int* key, int* out, int* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && key[i] > 3) out[atomicAdd(count, 1)] = i;
}
extern "C" __global__ void flag(int* done, const float* x, float* y) {
    __shared__ int go;
    if (threadIdx.x == 0) {
        while (blockIdx.x && atomicAdd(&done[blockIdx.x - 1], 0) == 0) {}
        go = 1;
    }
    __syncthreads();
    y[blockIdx.x * blockDim.x + threadIdx.x] = x[threadIdx.x] + go;
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(&done[blockIdx.x], 1);
}
extern "C" __global__ void race(const int* key, float* y) {
    __shared__ float s[256];
    s[threadIdx.x] = key[blockIdx.x * 256 + threadIdx.x];
    y[blockIdx.x * 256 + threadIdx.x] = s[threadIdx.x ^ 32];
}
extern "C" __global__ void in_place(float* x, const int* key) {
    int i = key[blockIdx.x * blockDim.x + threadIdx.x];
    x[i] = x[i] + x[i ^ 1];
}
"""
GRID = """
#include <cooperative_groups.h>
extern "C" __global__ void together(float* x) {
    x[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f;
    cooperative_groups::this_grid().sync();
    x[blockIdx.x * blockDim.x + threadIdx.x] += 1.0f;
}
"""
KEYS = np.random.default_rng(3).integers(0, 64, 2048, dtype=np.int32)
FLOATS = np.zeros(2048, np.float32)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Module:
    path = tmp_path_factory.mktemp("own") / "own.cu"
    path.write_text(OWN)
    return memsim.load(path)


@pytest.fixture(scope="module")
def irregular() -> Module:
    return memsim.load(SOURCE)


def own_job(module: Module, name: str, grid: int = 8) -> Job:
    arguments: dict[str, tuple[Any, ...]] = {
        "reduce": (KEYS, FLOATS, 2048),
        "append": (KEYS, np.zeros(2048, np.int32), np.zeros(1, np.int32), 2048),
        "flag": (np.zeros(8, np.int32), FLOATS, FLOATS),
        "race": (KEYS, FLOATS),
        "in_place": (FLOATS, KEYS),
    }
    return job_of(module[name], grid, 256, arguments[name])


def in_parts(job: Job, most: int) -> Trace:
    """The trace of a launch that is cut, part by part in this process."""
    cut = cut_launch(job, most)
    assert isinstance(cut, CutLaunch), cut
    return cut.together([pickle.loads(pickle.dumps(cut(number))) for number in range(len(cut.ends))])


def told(trace: Trace, job: Job) -> Any:
    """All that is said of a trace: every row with its instructions, totals, verdict, bound, notes, doubts.

    But that it was not looked for races behind the first accesses: each part looks at as many as a launch.
    """
    facts = trace.executed.tolist(), trace.writers.tolist(), trace.footprint, trace.blocks_alike
    found = analyze_trace(trace, job.arch).to_dict(sass=True)
    return {**found, "notes": [note for note in found["notes"] if note != LIMIT]}, facts


def test_what_parts_say_of_a_launch_is_put_together() -> None:
    """Of the first block's threads that stored only the first part knows."""

    def part(number: int) -> RecordedBlocks:
        recorder = Recorder()
        recorder.uncertain_reasons.add(f"reason {number}")
        recorder.uncounted_requests["surface request"] += number
        recorder.writers.threads = np.array([number], np.int32)
        return recorded_blocks(recorder)

    whole = Recorder()
    merge(whole, [part(1), part(2), part(4)])
    assert whole.uncertain_reasons == {"reason 1", "reason 2", "reason 4"}
    assert whole.uncounted_requests == {"surface request": 7}
    assert whole.writers.threads.tolist() == [1]
    merge(whole, [])
    assert whole.writers.threads.tolist() == [1]


@pytest.mark.some(2)
@pytest.mark.parametrize("parts", [2, 3, 1000])
@pytest.mark.parametrize("name", few(NAMES))
def test_the_trace_of_a_kernel_is_that_of_one_process(name: str, parts: int) -> None:
    spec = catalog()[name]
    job = spec.job(size_of(spec, 70))
    whole = trace_job(job)
    cut = cut_launch(job, parts)
    if isinstance(cut, str):
        assert job.launch.blocks == 1 or "one cluster" in cut
    else:
        assert 2 <= len(cut.ends) <= min(parts, job.launch.blocks)
        assert told(in_parts(job, parts), job) == told(whole, job)


@pytest.mark.some(1)
@pytest.mark.parametrize("many", ["as many as ever", "few"])
@pytest.mark.parametrize("name", ["gather", "histogram", "lookup", "spmv", "join", "attention"])
def test_irregular_launches_too(
    name: str, many: str, irregular: Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where requests hardly repeat, so that one of each kind is kept."""
    if many == "few":
        monkeypatch.setattr(record, "MANY_ROWS", 64)
        monkeypatch.setattr(site_records, "MANY_OF_SITE", 16)
    made = case(name, 3000, seed=7)
    job = job_of(irregular[name], made.grid, made.block, made.arguments)
    assert told(in_parts(job, 3), job) == told(trace_job(job), job)


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["reduce", "race", "in_place"])
def test_atomics_races_and_sectors_that_several_blocks_touch(name: str, own: Module) -> None:
    job = own_job(own, name)
    whole = trace_job(job)
    assert told(in_parts(job, 3), job) == told(whole, job)
    assert bool(whole.races) == (name == "race")


def test_some_blocks_are_cut_too(own: Module) -> None:
    job = own_job(own, "reduce")
    some = job_of(own["reduce"], 8, 256, job.args, blocks=5)
    assert told(in_parts(some, 2), some) == told(trace_job(some), some)


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["append", "flag"])
def test_blocks_that_decide_what_others_access_stay_together(name: str, own: Module) -> None:
    job, why = own_job(own, name), list[str]()
    found = trace_shared(job, parts=2, jobs=2, tell=why.append)
    assert told(found, job) == told(trace_job(job), job)
    assert len(why) == 1 and "may decide what others access" in why[0]


def test_a_grid_that_synchronizes_stays_together(tmp_path: Path) -> None:
    (tmp_path / "grid.cu").write_text(GRID)
    job = job_of(memsim.load(tmp_path / "grid.cu")["together"], 4, 64, (np.zeros(256, np.float32),))
    assert cut_launch(job, 2) == "its blocks wait for each other"


def test_what_is_never_cut(own: Module, tmp_path: Path) -> None:
    assert cut_launch(own_job(own, "reduce", grid=1), 4) == "it is one block, or one cluster"

    def function(t: Any) -> None:
        memsim.SharedArray("s", (64,))[t.x].load()

    assert cut_launch(job_of(function, 4, 32, ()), 2) == "it has no machine code"


def test_blocks_that_do_the_same_at_once_are_not_cut_smaller(tmp_path: Path) -> None:
    (tmp_path / "copy.cu").write_text(
        'extern "C" __global__ void copy(const float* x, float* y) {\n'
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    y[i] = x[i];\n}\n"
    )
    copy = memsim.load(tmp_path / "copy.cu")["copy"]
    arrays = "f32[8388608]", "f32[8388608]"
    assert cut_launch(job_of(copy, 8192, 1024, arrays), 2) == "all blocks do the same, at once"
    two = job_of(copy, 32768, 256, arrays)
    cut = cut_launch(two, 8)
    assert isinstance(cut, CutLaunch) and cut.ends == (16384, 32768)
    assert told(in_parts(two, 8), two) == told(trace_job(two), two)


def test_processes_and_a_launch_that_is_sent(own: Module) -> None:
    """Forked processes have it; others, and workers of a cluster, prepare it again."""
    job, shares = own_job(own, "reduce"), list[float]()
    whole = told(trace_job(job), job)
    assert told(trace_shared(job, shares.append, parts=3, jobs=2), job) == whole
    assert shares[-1] == 1.0
    cut = cut_launch(job, 3)
    assert isinstance(cut, CutLaunch)
    sent = pickle.loads(pickle.dumps(CutLaunch(catalogued(), cut.ends, cut.at_once, apart=False)))
    assert "launch" not in vars(sent) and sent.launch is not cut.launch


def catalogued() -> Job:
    """A job that can be sent: its kernel is loaded where it arrives."""
    return catalog()["transpose_naive"].job((64, 64))


def test_an_error_in_a_part_is_that_of_the_launch(own: Module) -> None:
    good = own_job(own, "in_place")
    bad = job_of(own["in_place"], 8, 256, (FLOATS, np.full(2048, 5000, np.int32)))
    assert trace_shared(good, parts=2, jobs=2).blocks_replayed == 8
    with pytest.raises(MemsimError) as here:
        trace_job(bad)
    with pytest.raises(MemsimError) as apart:
        trace_shared(bad, parts=2, jobs=2)
    first, others = str(here.value).partition("(2048 threads")[::2]
    assert str(apart.value) == f"{first}(1024 threads{others}"  # those of the first half
