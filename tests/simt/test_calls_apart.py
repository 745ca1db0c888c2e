"""Divisions that call the same slow path: what one call leaves in registers does not return to the other."""

from __future__ import annotations

import numpy as np
import pytest

import memsim
from tests.simt.cuda import kernels_of

#: Points to bins, as codes for particles in cells do; `in` is where a point's second coordinate comes from.
BINS = """
extern "C" __global__ void k(const float *x, const float *y, int *bins, int *order, int n, float p, float q)
{
    for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x) {
        int a = floorf(x[i] / p), b = floorf(%s[i] / q);
        a = a >= 8 ? a - 1 : a;
        b = b >= 8 ? b - 1 : b;
        order[i] = atomicAdd(&bins[a + 8 * b & 511], 1);
    }
}
"""


@pytest.mark.parametrize(("second", "is_certain"), [("y", True), ("bins", False)])
def test_what_is_counted_decides_an_address_only_where_it_is_read(second: str, is_certain: bool) -> None:
    points = [np.random.default_rng(seed).random(512, np.float32) * 500 for seed in (1, 2)]
    arguments = [*points, "i32[512]", "i32[512]", 512, 70.0, 66.0]
    found = memsim.analyze(kernels_of(BINS % second, None)["k"], 2, 64, arguments).trace.uncertain
    assert is_certain == (not found)
    assert all("what the kernel itself writes" in reason for reason in found)


#: Lanes below `at` call themselves; those above wait meanwhile where the lanes of the inner call meet.
RECURSIVE = """
__device__ __noinline__ float weight(float x, const float *t) {
    float found;
    if (x < 0) found = -weight(-x, t);
    else if (x > 5) { found = 1; for (int i = 0; i < (int)x; i++) found += t[i] / x; }
    else found = x / t[3];
    return found * x;
}
extern "C" __global__ void k(const float *t, float *out, int at) {
    float found = 1;
    if (t[threadIdx.x]) found = weight((int)threadIdx.x - at, t);
    out[threadIdx.x] = found;
}
"""


@pytest.mark.parametrize("at", [0, 3, 20, 31])
def test_lanes_of_an_outer_call_wait_for_those_of_an_inner_one(at: int) -> None:
    def weight(x: int) -> float:
        if x < 0:
            return -weight(-x) * x
        return (1 + sum(range(x)) / x if x > 5 else x / 3) * x

    table, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    kernel = kernels_of(RECURSIVE, None)["k"]
    memsim.run(kernel, 1, 32, [table, out, at])
    np.testing.assert_allclose(out, [1, *(weight(lane - at) for lane in range(1, 32))], rtol=1e-5)
