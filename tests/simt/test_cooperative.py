"""Cooperative launches: blocks that wait for the whole grid, as `cooperative_groups` compiles it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim import MemsimError
from memsim.api.loading import from_text, load
from memsim.api.running import run
from memsim.argument_types import ArrayArg
from memsim.captured.analyze_any import analyze
from memsim.compile.cuda_source import compile_cubin
from tests.simt.cuda import kernels_of

SOURCE = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void reduce(const float *in, float *parts, float *out, int n) {
    __shared__ float s[128];
    float sum = 0;
    int first = blockIdx.x + gridDim.x * blockIdx.y;
    for (int i = first * 128 + threadIdx.x; i < n; i += gridDim.x * gridDim.y * 128) sum += in[i];
    s[threadIdx.x] = sum;
    __syncthreads();
    for (int d = 64; d > 0; d /= 2) {
        if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
        __syncthreads();
    }
    if (threadIdx.x == 0) parts[first] = s[0];
    cg::this_grid().sync();
    if (first == 0 && threadIdx.x == 0) {
        float total = 0;
        for (int b = 0; b < gridDim.x * gridDim.y; b++) total += parts[b];
        *out = total;
    }
}

// Each block takes its neighbour's number, `rounds` times over; late blocks come to each barrier later.
extern "C" __global__ void pass_on(int *a, int *b, int rounds) {
    cg::grid_group grid = cg::this_grid();
    int me = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    for (int round = 0; round < rounds; round++) {
        int *from = round % 2 ? b : a, *to = round % 2 ? a : b;
        int late = 0;
        for (int i = 0; i < 7 * (int)(blockIdx.x + round) % 5; i++) late += from[(me + i) % n] & 0;
        to[me] = from[(me + blockDim.x) % n] + late;
        grid.sync();
    }
}

extern "C" __global__ void leave(int *x) {
    if (blockIdx.x == 1) return;
    cg::this_grid().sync();
    x[blockIdx.x] = 1;
}

extern "C" __global__ void alone(int *x) { x[blockIdx.x] = 1; }
"""


@pytest.fixture(scope="module", params=["sass", "ptx"])
def kernels(request: pytest.FixtureRequest) -> Any:
    return kernels_of(SOURCE, request.param)


@pytest.mark.some(1)
@pytest.mark.parametrize("grid", [1, 8, (4, 3)])
def test_a_sum_in_two_phases(kernels: Any, grid: Any) -> None:
    n, blocks = 5000, int(np.prod(grid))
    x = np.random.default_rng(1).integers(0, 100, n).astype(np.float32)
    parts, out = np.zeros(blocks, np.float32), np.zeros(1, np.float32)
    run(kernels["reduce"], grid, 128, (x, parts, out, n))
    strips = np.resize(np.arange(n) // 128 % blocks, n)
    assert (parts == [x[strips == block].sum() for block in range(blocks)]).all()
    assert out[0] == x.sum()


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_blocks_that_come_late_are_waited_for(kernels: Any, rounds: int) -> None:
    """More threads than run at once otherwise."""
    blocks, threads = 160, 256
    numbers = np.arange(blocks * threads, dtype=np.int32)
    a, b = numbers.copy(), np.zeros_like(numbers)
    run(kernels["pass_on"], blocks, threads, (a, b, rounds))
    assert ((b if rounds % 2 else a) == np.roll(numbers, -threads * rounds)).all()


def test_counts_and_what_is_not_certain_of_them(kernels: Any) -> None:
    analysis = analyze(kernels["reduce"], 8, 128, (ArrayArg((4096,)), ArrayArg((8,)), ArrayArg((1,)), 4096))
    of_barrier = [site for site in analysis.sites if site.array == "grid workspace"]
    assert {site.op: (site.requests, site.sectors) for site in of_barrier} == {
        "atomic": (8, 8),
        "load": (8, 8),
    }
    (loads,) = (site for site in analysis.sites if site.array == "in")
    assert (loads.requests, loads.sectors) == (128, 512)
    reasons = analysis.trace.uncertain
    assert any("the result of an atomic decides the branch" in reason for reason in reasons)


def test_other_kernels_are_no_cooperative_launches(kernels: Any) -> None:
    analysis = analyze(kernels["alone"], 4, 1, (np.zeros(4, np.int32),), blocks=2)
    assert analysis.trace.blocks_replayed == 2
    assert not analysis.trace.uncertain


def test_all_blocks_have_to_run(kernels: Any) -> None:
    arguments = (np.zeros(4, np.float32), np.zeros(8, np.float32), np.zeros(1, np.float32), 4)
    with pytest.raises(MemsimError, match="synchronizes its whole grid, but only 2 of 8 blocks are replayed"):
        analyze(kernels["reduce"], 8, 128, arguments, blocks=2)


def test_the_chip_has_to_hold_the_whole_grid(kernels: Any) -> None:
    with pytest.raises(
        MemsimError, match="its whole grid of 265 blocks; NVIDIA H100 80GB HBM3 holds 264 at once"
    ):
        a = np.zeros(265 * 1024, np.int32)
        run(kernels["pass_on"], 265, 1024, (a, a.copy(), 1))


def test_a_block_that_leaves_is_waited_for_without_end(kernels: Any) -> None:
    with pytest.raises(MemsimError, match=r"a loop that never ends: .* wait at (LD|ld)"):
        run(kernels["leave"], 4, 32, (np.zeros(4, np.int32),))


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
@pytest.mark.parametrize("arch", ["sm_100", "sm_120"])
def test_chips_whose_workspace_is_found_by_the_size_of_the_cluster(arch: str, tmp_path: Path) -> None:
    path = tmp_path / "k.cubin"
    path.write_bytes(compile_cubin(SOURCE, arch=arch, compiler="nvcc").cubin)
    kernel, x = load(path)["reduce"], np.arange(3000, dtype=np.float32) % 100
    parts, out = np.zeros(8, np.float32), np.zeros(1, np.float32)
    run(kernel, 8, 128, (x, parts, out, len(x)))
    assert out[0] == x.sum()
    with pytest.raises(MemsimError, match="only 2 of 8 blocks"):
        analyze(kernel, 8, 128, (x, parts, out, len(x)), blocks=2)
    alone = analyze(load(path)["alone"], 4, 1, (np.zeros(4, np.int32),), blocks=2)
    assert alone.trace.blocks_replayed == 2


@pytest.mark.parametrize(("arch", "place"), [("sm_80", "0x124"), ("sm_90", "0x6c")])
def test_groups_of_several_warps(arch: str, place: str) -> None:
    """What `thread_block_tile<64>` reads of the system is said in words."""
    text = 'extern "C" __global__ void k(int *x) { asm("mov.u32 %0, %%reserved_smem_offset_1;" : "=r"(*x)); }'
    kernel = from_text(text, arch=arch)["k"]
    message = rf"c\[0x0\]\[{place}\] is unknown, where the system keeps the barriers of cooperative groups"
    with pytest.raises(MemsimError, match=message):
        run(kernel, 1, 32, (np.zeros(1, np.int32),))
