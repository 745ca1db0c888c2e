"""Tensors of torch itself as arguments: on the CPU, of the device `meta`, and fake ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import memsim
from memsim.argument_types import ArrayArg
from memsim.argument_types.foreign_arrays import as_argument
from memsim.errors import MemsimError
from tests.simt.cuda import kernels_of

torch = pytest.importorskip("torch")

SOURCE = """
#include <cuda_bf16.h>
extern "C" __global__ void scale(const float *x, float *y, int n, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i * stride];
}
extern "C" __global__ void widen(const __nv_bfloat16 *x, float *y) {
    y[threadIdx.x] = __bfloat162float(x[threadIdx.x]);
}
extern "C" __global__ void gather(const long long *index, const float *x, float *y) {
    y[threadIdx.x] = x[index[threadIdx.x]];
}
"""


@pytest.fixture(scope="module")
def kernels() -> Any:
    return kernels_of(SOURCE)


def sectors(kernels: Any, x: Any, stride: int = 1) -> int | None:
    analysis = memsim.analyze(kernels["scale"], 8, 128, (x, torch.zeros(1024), 1024, stride))
    (row,) = (site for site in analysis.sites if site.op == "load")
    return row.sectors


def test_views_lie_where_they_begin(kernels: Any) -> None:
    x = torch.arange(2048, dtype=torch.float32)
    assert sectors(kernels, x) == 128
    assert sectors(kernels, x[1:]) == 160
    assert sectors(kernels, x[::2], 2) == 256
    assert sectors(kernels, torch.empty(2048, device="meta")[1:]) == 160
    assert sectors(kernels, torch.nn.Parameter(x)) == 128


def test_kernels_write_in_place(kernels: Any) -> None:
    x, y = torch.arange(2048, dtype=torch.float32), torch.zeros(1024)
    memsim.run(kernels["scale"], 8, 128, (x[3:], y, torch.tensor(1024), torch.tensor(1)))
    assert bool((y == 2 * x[3:1027]).all())
    wide = torch.zeros(32)
    memsim.run(kernels["widen"], 1, 32, (torch.arange(32, dtype=torch.bfloat16), wide))
    assert wide.tolist() == list(range(32))
    index, out = torch.randperm(32), torch.zeros(32)
    memsim.run(kernels["gather"], 1, 32, (index, x, out))
    assert bool((out == x[index]).all())


def test_tensors_without_content_are_described() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        turned = torch.empty(64, 32).t()
        there = torch.empty(8, device="cuda:0", dtype=torch.float16)
    assert as_argument(turned) == ArrayArg((32, 64), strides=(4, 128), offset=0)
    assert as_argument(there) == ArrayArg((8,), "float16", strides=(2,), offset=0)
    meta = torch.empty(4, 6, device="meta", dtype=torch.int64)[1:, 2:]
    assert as_argument(meta) == ArrayArg((3, 4), "int64", strides=(48, 8), offset=64)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "bfloat16", "uint16", "bool", "complex64"])
def test_types(name: str) -> None:
    assert as_argument(torch.zeros(4, dtype=getattr(torch, name))).dtype.name == name


def test_a_broadcast_tensor_has_strides_of_zero() -> None:
    found = as_argument(torch.arange(4.0).expand(3, 4))
    assert found.strides == (0, 4) and np.array_equal(found, [[0, 1, 2, 3]] * 3)


def test_a_sparse_tensor_is_no_array() -> None:
    assert as_argument(torch.eye(3)).shape == (3, 3)
    with pytest.raises(MemsimError, match=r"layout torch.sparse_coo is several arrays"):
        as_argument(torch.eye(3).to_sparse())
