"""Histograms whose threads add to copies of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memsim.job import Job
from memsim.suggest import suggest
from memsim.suggest.other_values import SAME, at_other_values
from memsim.suggest.prove import differing_results
from memsim.suggest.threads import Remapped
from memsim.views.suggest.terminal import render
from tests.suggest.kernels import analyzed, launched

COUNT = 8192
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
LOOP = "for (; i < n; i += gridDim.x * blockDim.x)"
OF_BLOCK = """__shared__ unsigned int local[64];
    if (threadIdx.x < 64) local[threadIdx.x] = 0;
    __syncthreads();
    for (int k = 0; k < 8; ++k) atomicAdd(&local[data[(threadIdx.x + k * 1024) % n]], 1);
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);"""


def job_of(
    folder: Path, body: str, kind: str = "unsigned int", block: tuple[int, int, int] = (256, 1, 1)
) -> Job:
    """Values below 64, added up by four blocks."""
    head = f"#define BINS 64\n__global__ void k(const unsigned char *data, {kind} *bins, int n)"
    values = np.random.default_rng(1).integers(0, 64, COUNT).astype(np.uint8)
    bins = np.zeros(64, np.float32 if kind == "float" else np.uint32)
    return launched(folder, f"{head} {{\n    {body}\n}}\n", [values, bins, COUNT], block, grid=(4,))


def copies(job: Job) -> list[Remapped]:
    found = suggest(analyzed(job), job)
    ways = [each for each in found.remapped if "copy of each" in each.name]
    turns = any("copy of each block" in each.name for each in ways)
    assert ("the turns that atomics take at the L2 cache" in render(found)) == turns
    return ways


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "body",
    [
        f"{INDEX}\n    {LOOP} atomicAdd(&bins[data[i]], 1);",
        f"{INDEX}\n    if (i >= n) return;\n    for (; i < n; i += 1024) atomicAdd(&(bins[data[i]]), 2u);",
        f"{INDEX}\n    {LOOP} {{\n        int b = data[i] ^ 1;\n        if (b < BINS)\n"
        "            atomicAdd(&bins[b], 1);\n    }",
    ],
)
def test_bins_in_global_memory_are_added_up_in_each_block(body: str, tmp_path: Path) -> None:
    job = job_of(tmp_path, body)
    (done,) = copies(job)
    assert done.name == "bins added up in a copy of each block"
    before, after = done.sectors
    assert before > COUNT // 32 * (1 + 4)  # a sector of values, and several of bins
    assert after == COUNT // 32 + 4 * 64 // 8  # and of each block all bins once
    assert differing_results(job, done.job) == ()


@pytest.mark.parametrize("kind", ["unsigned int", "uint"])
def test_bins_in_shared_memory_are_added_up_by_each_lane(kind: str, tmp_path: Path) -> None:
    job = job_of(tmp_path, OF_BLOCK.replace("unsigned int", kind), kind)
    (done,) = copies(job)
    assert done.name == "local added up in a copy of each lane"
    assert done.before.conflicts > 0 == done.analysis.conflicts
    assert f"__shared__ {kind} local_copy[64 * 32];" in done.edit.new
    assert differing_results(job, done.job) == ()


@pytest.mark.slow
def test_blocks_of_two_dimensions_and_other_sizes_compute_the_same(tmp_path: Path) -> None:
    index = "int i = (blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;"
    body = f"{index}\n    for (; i < n; i += 1024) if (data[i] < BINS) atomicAdd(&bins[data[i]], 1);"
    job = job_of(tmp_path, body, block=(32, 8, 1))
    (done,) = copies(job)
    assert differing_results(job, done.job) == ()
    tried = list(at_other_values(job, done))
    assert {each.name for each in tried} == {"blockDim.x", "BINS"}
    assert {each.outcome for each in tried} <= {SAME, ""}
    assert sum(each.outcome == SAME for each in tried) >= 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (f"{INDEX}\n    {LOOP} atomicAdd(&bins[data[i]], 1.0f);", "float"),  # in another order, another sum
        (f"{INDEX}\n    {LOOP} if (atomicAdd(&bins[data[i]], 1) == 5) bins[0] = 1;", "unsigned int"),
        (f"{INDEX}\n    {LOOP} if (bins[data[i]] < 9) atomicAdd(&bins[data[i]], 1);", "unsigned int"),
        (
            f"{INDEX}\n    {LOOP} {{ if (data[i] == 3) return; atomicAdd(&bins[data[i]], 1); }}",
            "unsigned int",
        ),
        (f"{INDEX}\n    {LOOP} {{ int bins_at = data[i]; atomicAdd(&bins[bins_at], 1); }}", "unsigned int"),
        (f"{INDEX}\n    {LOOP} atomicAdd(&bins[data[i]], 1);\n    atomicMax(&bins[0], 1);", "unsigned int"),
        (OF_BLOCK.replace("1);\n    __sync", "1);\n    local[0] = 0; __sync"), "unsigned int"),
        (
            OF_BLOCK.replace(
                "__syncthreads();\n    if (threadIdx.x < 64) atomic", "if (threadIdx.x < 64) atomic"
            ),
            "int",
        ),
    ],
)
def test_what_copies_would_change_is_left(body: str, kind: str, tmp_path: Path) -> None:
    assert copies(job_of(tmp_path, body, kind)) == []
