"""Lanes of a warp that wait at different WARPSYNC.COLLECTIVE for the same shuffle."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.api.running import run
from memsim.captured.analyze_any import analyze
from memsim.compile.cuda_source import compile_cubin
from memsim.kernel import Kernel
from memsim.sass.disassemble import disassemble
from memsim.sass.machine_code import read_module
from tests.simt.cuda import machine_kernel

#: The compiler makes two loops of one, for the first lane and for the others, and both shuffle.
SUMS = """
__device__ float total(float v) { for (int m = 16; m; m >>= 1) v += __shfl_xor_sync(~0u, v, m); return v; }
extern "C" __global__ void k(const float *x, float *y, int rows, int columns) {
    __shared__ float sums[64];
    int lane; asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    for (int row = 0; row < rows; ++row) {
        float v = 0;
        for (int c = threadIdx.x; c < columns; c += blockDim.x) v += x[row * columns + c];
        v = total(v);
        if (lane == 0) sums[row * (blockDim.x / 32) + threadIdx.x / 32] = v;
    }
    __syncthreads();
    if (threadIdx.x < rows * (blockDim.x / 32)) y[threadIdx.x] = sums[threadIdx.x];
}
"""


def test_lanes_shuffle_together_on_two_ways_and_go_back_each_to_its_own() -> None:
    kernel = machine_kernel(SUMS)
    for blocks, threads in ((1, 64), (3, 96), (20, 32)):
        x = np.random.default_rng(1).integers(0, 99, (5, 70)).astype(np.float32)
        y = np.zeros(5 * threads // 32, np.float32)
        run(kernel, blocks, threads, [x, y, 5, 70])
        own = np.zeros((5, -(-70 // threads) * threads), np.float32)
        own[:, :70] = x
        of_warps = own.reshape(5, -1, threads // 32, 32).sum((1, 3))
        assert y.tolist() == of_warps.ravel().tolist()


def test_its_accesses_are_those_of_the_lanes_on_each_way() -> None:
    arguments = [np.ones((5, 70), np.float32), np.zeros(10, np.float32), 5, 70]
    found = analyze(machine_kernel(SUMS), 1, 64, arguments)
    assert not found.trace.uncertain
    stores = [site for site in found.sites if site.space == "shared" and site.op == "store"]
    assert [site.requests for site in stores] == [10]  # by the first lane of two warps, for each row


#: Lanes `i & a[0]` are elsewhere at the branch on a[1], which skips three stores.
SKIPS = """extern "C" __global__ void k(int *o, const int *a) {
    int i = threadIdx.x;
    if (!(i & a[0])) {
        if (a[1] != 5) for (int j = 0; j < a[2]; j++) o[j * 32 + i] = a[j];
        atomicAdd(o + i, 1);
    }
    o[i] = 2;
}"""


@pytest.fixture(scope="module")
def skips(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, str]:
    """The machine code, and its listing."""
    source = tmp_path_factory.mktemp("skips") / "skips.cu"
    source.write_text(SKIPS)
    code = compile_cubin(source).cubin
    return code, disassemble(code)


@pytest.mark.some(2)
@pytest.mark.parametrize("elsewhere", [0, 1, 16])
@pytest.mark.parametrize("threads", [32, 16])
def test_a_group_branches_by_whether_lanes_of_the_mask_are_elsewhere(
    elsewhere: int, threads: int, skips: tuple[bytes, str]
) -> None:
    code, text = skips
    branch = text[text.index("ISETP.NE.AND P0, PT, R0, 0x5") :].split("@", 1)[1].split("(", 1)[0]
    stores = {}
    for kind in ("CONV", "DIV"):
        changed = text.replace("@" + branch, f"BRA.{kind} 0xffffffff, `", 1)
        assert changed != text
        arguments = [np.zeros(128, np.int32), np.array([elsewhere, 4, 3, 0], np.int32)]
        found = analyze(Kernel("k", read_module(code, changed).kernels["k"]), 1, threads, arguments)
        stores[kind] = found.totals["l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"]
    is_whole = not elsewhere or elsewhere >= threads
    assert stores == ({"CONV": 1, "DIV": 4} if is_whole else {"CONV": 4, "DIV": 1})
