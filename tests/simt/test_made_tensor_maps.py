"""Tensor maps that a kernel makes or changes itself: in shared memory, then in global memory, where TMA reads them."""

# ruff: noqa: E501 (lines of PTX)
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim import MemsimError, TensorMap, TensorMaps
from memsim.api.running import job_of, run
from memsim.api.sanitizing import sanitize_job
from memsim.argument_types import ArrayArg
from memsim.captured.analyze_any import analyze
from memsim.sanitizer.hazards import RACE
from tests.simt.cuda import HOPPER, kernels_of

MAKING = r"""
#ifndef APART
#define APART 8
#endif
#define REPLACE(field, type, ...) \
    asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." type " [%0], " __VA_ARGS__ : "memory")
__device__ void fields(u32 m, const void *base, int rows, int columns) {
    u64 step = 4 * columns;
    REPLACE("global_address", "b64", "%1;" :: "r"(m), "l"(base));
    REPLACE("rank", "b32", "%1;" :: "r"(m), "n"(1));
    REPLACE("box_dim", "b32", "0, %1;" :: "r"(m), "r"(32));
    REPLACE("box_dim", "b32", "1, %1;" :: "r"(m), "r"(8));
    REPLACE("global_dim", "b32", "0, %1;" :: "r"(m), "r"(columns));
    REPLACE("global_dim", "b32", "1, %1;" :: "r"(m), "r"(rows));
#ifndef NO_STRIDE
    REPLACE("global_stride", "b64", "0, %1;" :: "r"(m), "l"(step));
#endif
    REPLACE("element_stride", "b32", "0, %1;" :: "r"(m), "r"(1));
    REPLACE("element_stride", "b32", "1, %1;" :: "r"(m), "r"(1));
    REPLACE("elemtype", "b32", "%1;" :: "r"(m), "n"(7));
    REPLACE("interleave_layout", "b32", "%1;" :: "r"(m), "n"(0));
    REPLACE("swizzle_mode", "b32", "%1;" :: "r"(m), "n"(0));
    REPLACE("fill_mode", "b32", "%1;" :: "r"(m), "n"(0));
}
__device__ void publish(Map *to, u32 of) {
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;"
                 :: "l"(to), "r"(of) : "memory");
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(to) : "memory");
}
__device__ void load(const Map *m, float *s, u64 *b, int x, int y) {
    if (threadIdx.x == 0) init(at(b));
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(at(b), 1024);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%2, %3}], [%4];"
                     :: "r"(at(s)), "l"(m), "r"(x), "r"(y), "r"(at(b)) : "memory");
    }
    wait(at(b));
}
__device__ void store(const Map *m, const float *s, int x, int y) {
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                     :: "l"(m), "r"(x), "r"(y), "r"(at(s)) : "memory");
        finish();
    }
}
extern "C" __global__ void made(const float *in, float *out, Map *maps, int rows, int columns) {
    __shared__ __align__(128) u32 m[32]; __shared__ __align__(128) float s[256]; __shared__ u64 b;
    for (int which = 0; which < 2; which++) {
#ifndef NO_ZEROS
        if (threadIdx.x < 32) m[threadIdx.x] = 0;
        __syncthreads();
#endif
        if (threadIdx.x == 0) fields(at(m), which ? out : in, rows, columns);
        __syncthreads();
        if (threadIdx.x < 32) publish(&maps[2 * blockIdx.x + which], at(m));
        __syncthreads();
    }
    load(&maps[2 * blockIdx.x], s, &b, 0, 8 * blockIdx.x);
    for (int i = threadIdx.x; i < 256; i += blockDim.x) s[i] += 1;
    store(&maps[2 * blockIdx.x + 1], s, 0, APART * blockIdx.x);
}
extern "C" __global__ void given(const __grid_constant__ Map in, const __grid_constant__ Map out) {
    __shared__ __align__(128) float s[256]; __shared__ u64 b;
    load(&in, s, &b, 0, 8 * blockIdx.x);
    for (int i = threadIdx.x; i < 256; i += blockDim.x) s[i] += 1;
    store(&out, s, 0, 8 * blockIdx.x);
}
extern "C" __global__ void moved(const __grid_constant__ Map given, const float *other, float *out, Map *map) {
    __shared__ __align__(128) u32 m[32]; __shared__ __align__(128) float s[256]; __shared__ u64 b;
    if (threadIdx.x < 32) m[threadIdx.x] = ((const u32 *)&given)[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) REPLACE("global_address", "b64", "%1;" :: "r"(at(m)), "l"(other));
    __syncthreads();
    if (threadIdx.x < 32) publish(map, at(m));
    __syncthreads();
    load(map, s, &b, 32, 8);
    for (int i = threadIdx.x; i < 256; i += blockDim.x) out[i] = s[i];
}
extern "C" __global__ void of_table(Map *maps, const float *other, float *out) {
    __shared__ __align__(128) float s[256]; __shared__ u64 b;
    if (threadIdx.x == 0) *(const float **)&maps[0] = other;
    __syncthreads();
    load(&maps[0], s, &b, 32, 8);
    for (int i = threadIdx.x; i < 256; i += blockDim.x) out[i] = s[i];
}
extern "C" __global__ void of_others(const float *in, float *out, Map *maps, int rows, int columns) {
    __shared__ __align__(128) u32 m[32]; __shared__ __align__(128) float s[256]; __shared__ u64 b;
    if (threadIdx.x < 32) m[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x == 0) fields(at(m), in, rows, columns);
    __syncthreads();
    if (threadIdx.x < 32) publish(&maps[blockIdx.x], at(m));
    __syncthreads();
    load(&maps[blockIdx.x / 2], s, &b, 0, 8 * blockIdx.x);
    for (int i = threadIdx.x; i < 256; i += blockDim.x) out[i] = s[i];
}
"""
ROWS, COLUMNS, BLOCKS = 32, 64, 4


def kernels(*options: str) -> Any:
    return kernels_of(HOPPER + MAKING, "sass", "-arch=sm_90a", *options)


def table(count: int) -> np.ndarray:
    return np.zeros(128 * count, np.uint8)


def numbers() -> np.ndarray:
    return np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)


def copies(analysis: Any) -> list[tuple[object, ...]]:
    """The rows of TMA."""
    rows = (site for site in analysis.sites if site.op.startswith("bulk"))
    return sorted((one.op, one.space, one.requests, one.sectors, one.wavefronts) for one in rows)


@pytest.mark.slow
def test_a_box_goes_through_maps_that_the_kernel_made() -> None:
    tensor, out = numbers(), np.zeros((ROWS, COLUMNS), np.float32)
    run(kernels()["made"], BLOCKS, 64, [tensor, out, table(2 * BLOCKS), ROWS, COLUMNS])
    assert (out[:, :32] == tensor[:, :32] + 1).all() and not out[:, 32:].any()


@pytest.mark.slow
def test_they_cost_what_maps_cost_that_the_host_made() -> None:
    tensors = [ArrayArg((ROWS, COLUMNS)) for _ in range(2)]
    made = analyze(kernels()["made"], BLOCKS, 64, [*tensors, table(2 * BLOCKS), ROWS, COLUMNS])
    given = analyze(kernels()["given"], BLOCKS, 64, [TensorMap(one, (8, 32)) for one in tensors])
    assert copies(made) == copies(given) != []
    assert not made.trace.uncertain and not any(site.unresolved for site in made.sites)
    arrays = {site.op: site.array for site in made.sites if site.op[:5] == "bulk_" and site.space == "global"}
    assert arrays == {"bulk_load": "in", "bulk_store": "out"}


@pytest.mark.slow
def test_a_map_with_a_field_that_nobody_wrote_is_not_known() -> None:
    half = kernels("-DNO_STRIDE", "-DNO_ZEROS")["made"]
    arguments = [numbers(), np.zeros((ROWS, COLUMNS), np.float32), table(2 * BLOCKS), ROWS, COLUMNS]
    with pytest.raises(MemsimError, match="shared memory that was never written"):
        run(half, BLOCKS, 64, arguments)


def test_an_address_that_is_in_no_array_is_told() -> None:
    analysis = analyze(kernels()["of_table"], 1, 64, [table(1), 0, np.zeros(256, np.float32)])
    (reason,) = {site.unresolved for site in analysis.sites if site.op == "bulk_load"}
    assert reason is not None and "a tensor map of an address that is in no array, 0x0" in str(reason)


def test_a_map_of_the_host_for_another_tensor() -> None:
    tensor, other, out = numbers(), -numbers(), np.zeros((8, 32), np.float32)
    run(kernels()["moved"], 1, 64, [TensorMap(tensor, (8, 32)), other, out, table(1)])
    assert (out == other[8:16, 32:]).all()


def test_a_map_in_a_table_that_the_kernel_changes() -> None:
    tensor, other, out = numbers(), -numbers(), np.zeros((8, 32), np.float32)
    run(kernels()["of_table"], 1, 64, [TensorMaps([TensorMap(tensor, (8, 32))]), other, out])
    assert (out == other[8:16, 32:]).all()


def test_a_map_that_another_block_makes_may_come_too_late() -> None:
    arguments = [numbers(), np.zeros((8, 32), np.float32), table(BLOCKS), ROWS, COLUMNS]
    for blocks, too_late in ((1, False), (BLOCKS, True)):
        analysis = analyze(kernels()["of_others"], blocks, 64, arguments)
        told = [reason for reason in analysis.trace.uncertain if "what the kernel itself writes" in reason]
        assert bool(told) is too_late


@pytest.mark.some(1)
@pytest.mark.parametrize(("apart", "arrays"), [(8, set()), (4, {"out"})])
def test_blocks_that_store_to_the_same_rows_race(apart: int, arrays: set[str]) -> None:
    arguments = [numbers(), np.zeros((ROWS, COLUMNS), np.float32), table(2 * BLOCKS), ROWS, COLUMNS]
    found = sanitize_job(job_of(kernels(f"-DAPART={apart}")["made"], BLOCKS, 64, arguments), tools=(RACE,))
    assert {one.array for one in found.findings} == arrays
