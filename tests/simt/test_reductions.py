"""Reductions by the engine beside the threads, and stores that complete at an mbarrier, within a cluster."""

# ruff: noqa: E501 (lines of PTX)
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from memsim import MemsimError, TensorMap
from memsim.api.running import run
from memsim.captured.analyze_any import analyze
from tests.simt.cuda import HOPPER, kernels_of

BF16 = ml_dtypes.bfloat16
TO_GLOBAL = """
extern "C" __global__ void NAME(void *out, const int *in, int n) {
    __shared__ __align__(128) int s[64]; s[threadIdx.x] = in[threadIdx.x]; __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.OPERATION [%0], [%1], %2;"
                     :: "l"(out), "r"(at(s)), "r"(n) : "memory");
        finish();
    }
}
"""
TENSOR = """
extern "C" __global__ void NAME(const __grid_constant__ Map m, const int *in, int x, int y) {
    __shared__ __align__(1024) int s[256];
    for (int i = threadIdx.x; i < 256; i += 64) s[i] = in[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.OPERATION.tile.bulk_group [%0, {%1, %2}], [%3];"
                     :: "l"(&m), "r"(x), "r"(y), "r"(at(s)) : "memory");
        finish();
    }
}
"""
IN_CLUSTER = """
// Each block combines its numbers into those of the next one.
extern "C" __global__ void __cluster_dims__(4, 1, 1) NAME(int *inout) {
    __shared__ __align__(128) int s[32], t[32]; __shared__ u64 b;
    u32 next = (rank() + 1) & 3;
    t[threadIdx.x] = inout[threadIdx.x + 32 * blockIdx.x];
    s[threadIdx.x] = inout[threadIdx.x + 32 * blockIdx.x];
    if (threadIdx.x == 0) { init(at(&b)); expect(at(&b), 128); }
    meet();
    if (threadIdx.x == 0)
        asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.OPERATION [%0], [%1], %2, [%3];"
                     :: "r"(of(at(s), next)), "r"(at(t)), "r"(128), "r"(of(at(&b), next)) : "memory");
    wait(at(&b));
    inout[threadIdx.x + 32 * blockIdx.x] = s[threadIdx.x];
    meet();
}
"""
ASYNC = """
extern "C" __global__ void __cluster_dims__(2, 1, 1) NAME(TYPE *inout) {
    __shared__ __align__(16) TYPE s[64]; __shared__ u64 b;
    s[threadIdx.x] = inout[threadIdx.x + 64 * blockIdx.x];
    if (threadIdx.x == 0) { init(at(&b)); expect(at(&b), 32 * sizeof(TYPE) * WIDE); }
    meet();
    if (threadIdx.x < 32) { TYPE v[4]; for (int i = 0; i < 4; i++) v[i] = inout[threadIdx.x + 32 * i % 64 + 64 * blockIdx.x];
        asm volatile("INSTRUCTION" :: "r"(of(at(s + PLACE), rank() ^ 1)), ARGUMENTS, "r"(of(at(&b), rank() ^ 1)) : "memory"); }
    wait(at(&b));
    meet();
    inout[threadIdx.x + 64 * blockIdx.x] = s[threadIdx.x];
}
"""
#: Kernel -> (operation of PTX, type of numpy, what it gives of (old, new)).
Work = Callable[[np.ndarray, np.ndarray], np.ndarray]


def up(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.where(old >= new, 0, old + 1)


def down(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.where((old == 0) | (old > new), new, old - 1)


BULK: dict[str, tuple[str, Any, Work]] = {
    "add_u32": ("add.u32", np.uint32, np.add),
    "add_s32": ("add.s32", np.int32, np.add),
    "add_u64": ("add.u64", np.uint64, np.add),
    "add_f32": ("add.f32", np.float32, np.add),
    "add_f64": ("add.f64", np.float64, np.add),
    "add_f16": ("add.noftz.f16", np.float16, np.add),
    "add_bf16": ("add.noftz.bf16", BF16, np.add),
    "min_s32": ("min.s32", np.int32, np.minimum),
    "max_u32": ("max.u32", np.uint32, np.maximum),
    "min_s64": ("min.s64", np.int64, np.minimum),
    "max_u64": ("max.u64", np.uint64, np.maximum),
    "min_f16": ("min.f16", np.float16, np.minimum),
    "max_bf16": ("max.bf16", BF16, np.maximum),
    "inc": ("inc.u32", np.uint32, up),
    "dec": ("dec.u32", np.uint32, down),
    "and_32": ("and.b32", np.uint32, np.bitwise_and),
    "or_64": ("or.b64", np.uint64, np.bitwise_or),
    "xor_32": ("xor.b32", np.uint32, np.bitwise_xor),
}
SHARED: dict[str, tuple[str, Any, Work]] = {
    "shared_add": ("add.u32", np.uint32, np.add),
    "shared_min": ("min.s32", np.int32, np.minimum),
    "shared_inc": ("inc.u32", np.uint32, up),
    "shared_and": ("and.b32", np.uint32, np.bitwise_and),
}
#: red.async: (operation of PTX, type of C, type of numpy, what it gives).
RED: dict[str, tuple[str, str, Any, Work]] = {
    "red_add": ("add.u32", "u32", np.uint32, np.add),
    "red_add_s": ("add.s32", "int", np.int32, np.add),
    "red_add_64": ("add.u64", "u64", np.uint64, np.add),
    "red_min": ("min.s32", "int", np.int32, np.minimum),
    "red_max": ("max.u32", "u32", np.uint32, np.maximum),
    "red_inc": ("inc.u32", "u32", np.uint32, up),
    "red_dec": ("dec.u32", "u32", np.uint32, down),
    "red_and": ("and.b32", "u32", np.uint32, np.bitwise_and),
    "red_or": ("or.b32", "u32", np.uint32, np.bitwise_or),
    "red_xor": ("xor.b32", "u32", np.uint32, np.bitwise_xor),
}
COMPLETES = "shared::cluster.mbarrier::complete_tx::bytes"
STORES = {
    "store_1": (1, "u32", "b32"),
    "store_2": (2, "u32", "v2.b32"),
    "store_64": (1, "u64", "b64"),
    "store_2x64": (2, "u64", "v2.b64"),
}
LETTERS = {"u32": "r", "int": "r", "u64": "l"}
TENSORS = ("add", "min", "xor")


def asynchronous(name: str, kind: str, instruction: str, wide: int) -> str:
    values = [f'"{LETTERS[kind]}"(v[{i}])' for i in range(wide)]
    place = "threadIdx.x" if wide == 1 else f"{wide} * threadIdx.x"
    text = ASYNC.replace("INSTRUCTION", instruction).replace("ARGUMENTS", ", ".join(values))
    return text.replace("NAME", name).replace("TYPE", kind).replace("WIDE", str(wide)).replace("PLACE", place)


def source() -> str:
    parts = [HOPPER]
    for template, table in ((TO_GLOBAL, BULK), (IN_CLUSTER, SHARED)):
        parts += [template.replace("NAME", name).replace("OPERATION", row[0]) for name, row in table.items()]
    parts += [TENSOR.replace("NAME", f"tensor_{name}").replace("OPERATION", name) for name in TENSORS]
    for name, (operation, kind, *_) in RED.items():
        instruction = f"red.async.relaxed.cluster.{COMPLETES}.{operation} [%0], %1, [%2];"
        parts.append(asynchronous(name, kind, instruction, 1))
    for name, (wide, kind, vector) in STORES.items():
        values = ", ".join(f"%{i + 1}" for i in range(wide))
        values = f"{{{values}}}" if wide > 1 else values
        instruction = f"st.async.weak.{COMPLETES}.{vector} [%0], {values}, [%{wide + 1}];"
        parts.append(asynchronous(name, kind, instruction, wide))
    return "".join(parts)


@pytest.fixture(scope="module")
def kernels() -> Any:
    return kernels_of(source(), "sass")


def numbers(dtype: Any, shape: Any, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


@pytest.mark.some(1)
@pytest.mark.parametrize("name", BULK)
def test_bulk_reductions_in_global_memory(kernels: Any, name: str) -> None:
    _, dtype, work = BULK[name]
    count = 192 // np.dtype(dtype).itemsize
    old, new = numbers(dtype, count + 8, 1), numbers(dtype, 256 // np.dtype(dtype).itemsize, 2)
    out = old.copy()
    run(kernels[name], 1, 64, (out, new.view(np.int32), 192))
    assert (out[:count] == work(old[:count], new[:count]).astype(dtype)).all()
    assert (out[count:] == old[count:]).all()


def test_sums_of_float32_flush_and_those_of_float16_do_not(kernels: Any) -> None:
    """PTX ISA: `.add.f32` flushes subnormal inputs and results; `.noftz` keeps them."""
    old, new = np.full(64, 3e-39, np.float32), np.full(64, 1.2e-38, np.float32)
    run(kernels["add_f32"], 1, 64, (old, new.view(np.int32), 256))
    assert (old == np.float32(1.2e-38)).all()
    half = np.full(128, 6e-8, np.float16)
    run(kernels["add_f16"], 1, 64, (half, half.copy().view(np.int32), 256))
    assert (half == 2 * np.float16(6e-8)).all()


@pytest.mark.parametrize("name", SHARED)
def test_bulk_reductions_in_another_block(kernels: Any, name: str) -> None:
    _, dtype, work = SHARED[name]
    given = numbers(dtype, (8, 32), 3)
    out = given.copy()
    run(kernels[name], 8, 32, [out.view(np.int32)])
    for block in range(8):
        before = block // 4 * 4 + (block - 1) % 4
        assert (out[block] == work(given[block], given[before])).all()


@pytest.mark.parametrize("name", RED)
def test_asynchronous_reductions(kernels: Any, name: str) -> None:
    _, _, dtype, work = RED[name]
    given = numbers(dtype, (2, 64), 4)
    out = given.copy()
    run(kernels[name], 2, 64, [out])
    for block in range(2):
        assert (out[block, :32] == work(given[block, :32], given[1 - block, :32])).all()
        assert (out[block, 32:] == given[block, 32:]).all()


@pytest.mark.parametrize("name", STORES)
def test_asynchronous_stores(kernels: Any, name: str) -> None:
    wide, kind, _ = STORES[name]
    given = numbers(np.uint64 if kind == "u64" else np.uint32, (2, 64), 5)
    out = given.copy()
    run(kernels[name], 2, 64, [out])
    for block in range(2):
        sent = given[1 - block].reshape(2, 32)[:wide].T.reshape(-1)
        assert (out[block, : len(sent)] == sent).all()
        assert (out[block, len(sent) :] == given[block, len(sent) :]).all()


@pytest.mark.parametrize(("name", "work"), [("add", np.add), ("min", np.minimum), ("xor", np.bitwise_xor)])
@pytest.mark.parametrize("swizzle", [0, 32])
@pytest.mark.parametrize(("x", "y"), [(0, 0), (8, 3), (24, 13)])
def test_boxes_of_tensors(kernels: Any, name: str, work: Work, swizzle: int, x: int, y: int) -> None:
    """What is outside of the tensor is dropped."""
    old, box = numbers(np.int32, (16, 32), 6), numbers(np.int32, (16, 8), 7)
    given = np.zeros(256, np.int32)
    given[: box.size] = box.reshape(-1)
    if swizzle:  # chunks of 16 bytes of every other line of 128 bytes change places
        chunks = np.arange(box.nbytes // 16)
        given[:128].reshape(-1, 4)[chunks ^ (chunks >> 3 & 1)] = box.reshape(-1, 4)
    out = old.copy()
    run(kernels[f"tensor_{name}"], 1, 64, [TensorMap(out, (16, 8), swizzle), given, x, y])
    inside = box[: 16 - y, : 32 - x]
    assert (out[y : y + 16, x : x + 8] == work(old[y : y + 16, x : x + 8], inside)).all()
    untouched = np.ones_like(old, bool)
    untouched[y : y + 16, x : x + 8] = False
    assert (out[untouched] == old[untouched]).all()


def test_what_is_not_said_of_reductions_of_tensors_is_not_known(kernels: Any) -> None:
    given = np.zeros(256, np.float32)
    tiny = np.full((16, 32), 3e-39, np.float32)
    with pytest.raises(MemsimError, match="whether sums of subnormal numbers are flushed"):
        run(kernels["tensor_add"], 1, 64, [TensorMap(tiny, (16, 8)), given.view(np.int32), 0, 0])
    plain = np.full((16, 32), 3.5, np.float32)
    run(kernels["tensor_add"], 1, 64, [TensorMap(plain, (16, 8)), (given + 1).view(np.int32), 0, 0])
    assert (plain[:, :8] == 4.5).all() and (plain[:, 8:] == 3.5).all()
    with pytest.raises(MemsimError, match=r"UTMAREDG.2D.XOR of float32 is not executed"):
        run(kernels["tensor_xor"], 1, 64, [TensorMap(plain, (16, 8)), given.view(np.int32), 0, 0])


def test_sectors_of_reductions_are_those_of_stores(kernels: Any) -> None:
    arguments = (np.zeros(64, np.uint32), np.zeros(64, np.int32), 256)
    analysis = analyze(kernels["add_u32"], 1, 64, arguments)
    (row,) = (site for site in analysis.sites if site.op == "bulk_reduction")
    assert (row.sectors, row.unresolved) == (8, None)
    assert analysis.totals["l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_red.sum"] == 8
    assert analysis.totals["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 8


def test_asynchronous_reductions_have_counters_of_their_own(kernels: Any) -> None:
    analysis = analyze(kernels["red_add"], 2, 64, [np.zeros((2, 64), np.uint32)])
    (row,) = (site for site in analysis.sites if site.op == "cluster_async_reduction")
    assert (row.requests, row.sectors, row.lines, row.wavefronts) == (2, 8, 2, None)
    assert analysis.totals["l1tex__t_sectors_pipe_lsu_mem_dshared_op_redas.sum"] == 8


def test_asynchronous_stores_count_like_stores_to_other_blocks(kernels: Any) -> None:
    analysis = analyze(kernels["store_1"], 2, 64, [np.zeros((2, 64), np.uint32)])
    (row,) = (site for site in analysis.sites if site.op == "cluster_async_store")
    assert (row.requests, row.sectors, row.lines, row.wavefronts) == (2, 8, 2, None)
    assert analysis.totals["l1tex__t_sectors_pipe_lsu_mem_dshared_op_st.sum"] == 8
    assert analysis.totals["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"] is not None
