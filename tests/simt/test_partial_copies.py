"""cp.async of fewer bytes than it writes, from PTX and from machine code."""

from __future__ import annotations

import numpy as np
import pytest

from memsim import run
from tests.simt.cuda import kernels_of

SOURCE = """extern "C" __global__ void copy(const long long *x, long long *y, int n) {
    __shared__ long long s[32];
    s[threadIdx.x] = 7;
    unsigned to = (unsigned)__cvta_generic_to_shared(s + threadIdx.x);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2; cp.async.wait_all;"
                 :: "r"(to), "l"(x + threadIdx.x), "r"(n) : "memory");
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x];
}"""


@pytest.mark.parametrize("code", ["ptx", "sass"])
def test_bytes_that_are_not_read_are_zeros(code: str) -> None:
    kernel = kernels_of(SOURCE, code)["copy"]
    x = np.arange(1, 33, dtype=np.uint64) * 0x0102030405060708
    for size in range(9):
        y = np.zeros(32, np.uint64)
        run(kernel, 1, 32, [x, y, size])
        assert (y == x & np.uint64((1 << 8 * size) - 1)).all(), size
