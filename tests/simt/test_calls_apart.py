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
