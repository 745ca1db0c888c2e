"""Copies by the engine beside the threads (TMA): bytes, swizzle, what is outside of a tensor, completion."""

# ruff: noqa: E501 (lines of PTX)
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim import MemsimError, TensorMap, TensorMaps
from memsim.api.running import run
from memsim.argument_types import ArrayArg
from memsim.captured.analyze_any import analyze
from memsim.isa.tensor_copy import store_box
from memsim.state.space_bytes import SpaceBytes
from memsim.state.tensors import tensor_of
from tests.simt.cuda import HOPPER, kernel, kernels_of

KERNELS = """
__device__ void load(const Map *m, unsigned char *s, u64 *b, int x, int y, int n) {
    if (threadIdx.x == 0) init(at(b));
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(at(b), n);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%2, %3}], [%4];"
                     :: "r"(at(s)), "l"(m), "r"(x), "r"(y), "r"(at(b)) : "memory");
    }
    wait(at(b));
}
extern "C" __global__ void from_tensor(const __grid_constant__ Map m, unsigned char *out, int x, int y, int n) {
    __shared__ __align__(1024) unsigned char s[4096]; __shared__ u64 b;
    for (int i = threadIdx.x; i < 4096; i += blockDim.x) s[i] = 0xEE;
    load(&m, s, &b, x, y + (int)blockIdx.x, n);
    for (int i = threadIdx.x; i < 4096; i += blockDim.x) out[i + 4096 * blockIdx.x] = s[i];
}
extern "C" __global__ void to_tensor(const __grid_constant__ Map m, const unsigned char *in, int x, int y) {
    __shared__ __align__(1024) unsigned char s[4096];
    for (int i = threadIdx.x; i < 4096; i += blockDim.x) s[i] = in[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                     :: "l"(&m), "r"(x), "r"(y), "r"(at(s)) : "memory");
        finish();
    }
}
extern "C" __global__ void bulk(unsigned char *out, const unsigned char *in, int from, int to, int n) {
    __shared__ __align__(128) unsigned char s[2048]; __shared__ u64 b;
    if (threadIdx.x == 0) init(at(&b));
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(at(&b), n);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     :: "r"(at(s + to)), "l"(in + from), "r"(n), "r"(at(&b)) : "memory");
    }
    wait(at(&b));
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                     :: "l"(out), "r"(at(s + to)), "r"(n) : "memory");
        finish();
    }
}
"""
ELSEWHERE = """
struct Params { int first; Map maps[2]; unsigned char *out; int bytes; };
__device__ void fetch(const Map *m, unsigned char *out, int y, int n, int block) {
    __shared__ __align__(1024) unsigned char s[4096]; __shared__ u64 b;
    load(m, s, &b, 0, y, n);
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i + n * block] = s[i];
}
extern "C" __global__ void from_struct(const __grid_constant__ Params p) {
    fetch(&p.maps[blockIdx.x], p.out, p.first, p.bytes, blockIdx.x);
}
extern "C" __global__ void from_table(const Map *maps, unsigned char *out, int y, int n) {
    fetch(maps + blockIdx.x, out, y, n, blockIdx.x);
}
extern "C" __global__ void from_copy(const Map *maps, unsigned char *out, Map *copy, int n) {
    for (int i = 0; i < 128; i++) copy->bytes[i] = maps->bytes[i];
    fetch(copy, out, 0, n, 0);
}
"""
READS = "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum"
WRITES = "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st.sum"


@pytest.fixture(scope="module")
def kernels() -> Any:
    return kernels_of(HOPPER + KERNELS + ELSEWHERE, "sass")


def place(row: int, chunk: int, width: int, swizzle: int) -> int:
    """Where 16 bytes of a row of a box lie, by NVIDIA's tables: chunk XOR the number of the line, or half of it."""
    linear = row * width + chunk * 16
    lines = {0: 0, 32: 1, 64: 3, 128: 7}[swizzle]
    return linear ^ ((linear // 128 & lines) * 16)


@pytest.mark.some(2)
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize(("x", "y"), [(0, 0), (8, 3), (-8, -2), (40, 28), (64, 5)])
def test_a_box_of_a_tensor(kernels: Any, swizzle: int, x: int, y: int) -> None:
    columns = (swizzle or 64) // 2
    tensor = np.arange(1, 32 * 64 + 1, dtype=np.uint16).reshape(32, 64)
    out = np.zeros((2, 4096), np.uint8)
    run(kernels["from_tensor"], 2, 64, [TensorMap(tensor, (16, columns), swizzle), out, x, y, 32 * columns])
    for block in range(2):
        want = np.full(4096, 0xEE, np.uint8)
        for row in range(16):
            for chunk in range(columns // 8):
                where = place(row, chunk, columns * 2, swizzle)
                for i in range(8):
                    inside = 0 <= y + block + row < 32 and 0 <= x + chunk * 8 + i < 64
                    value = tensor[y + block + row, x + chunk * 8 + i] if inside else np.uint16(0)
                    want[where + 2 * i : where + 2 * i + 2] = np.array([value]).view(np.uint8)
        assert (out[block] == want).all()


def test_rows_narrower_than_their_swizzle_keep_its_pitch(kernels: Any) -> None:
    tensor, out = np.arange(1, 32 * 64 + 1, dtype=np.uint16).reshape(32, 64), np.zeros((1, 4096), np.uint8)
    run(kernels["from_tensor"], 1, 64, [TensorMap(tensor, (8, 8), 32), out, 0, 0, 128])
    chunks = [i for i in range(256) if (out[0, 16 * i : 16 * i + 16] != 0xEE).any()]
    assert chunks == [0, 2, 4, 6, 9, 11, 13, 15]  # on an H200


def test_a_store_writes_units_of_16_bytes_whole() -> None:
    to = SpaceBytes(np.zeros((1, 8192), np.uint8), 0, (1, 32), "one")
    of = SpaceBytes(np.arange(1, 257, dtype=np.uint32).view(np.uint8)[None], 0, (1, 32), "block")
    tensor = tensor_of(TensorMap(ArrayArg((29, 61), "uint32", strides=(256, 4)), (8, 16)), 0)
    store_box(to, of, 0, 0, tensor, (48, 25))
    written = to.data.view(np.uint32).reshape(32, 64)
    assert (written[25:29, 48:] == np.arange(1, 65).reshape(4, 16)).all()  # 3 elements behind the row's end
    assert np.count_nonzero(written) == 64


def test_a_box_goes_back_and_what_is_outside_is_dropped(kernels: Any) -> None:
    tensor, given = np.zeros((32, 64), np.uint16), np.arange(2048, dtype=np.uint16).view(np.uint8)
    run(kernels["to_tensor"], 1, 64, [TensorMap(tensor, (16, 32), 64), given, 40, 28])
    want = np.zeros((32, 64), np.uint16)
    for row in range(4):
        for column in range(24):
            where = place(row, column // 8, 64, 64) + 2 * (column % 8)
            want[28 + row, 40 + column] = where // 2
    assert (tensor == want).all()


def test_bulk_copies_both_ways(kernels: Any) -> None:
    given, out = np.arange(2048, dtype=np.uint16).view(np.uint8), np.zeros(4096, np.uint8)
    run(kernels["bulk"], 1, 32, [out, given, 48, 16, 400])
    assert (out[:400] == given[48:448]).all()
    assert not out[400:].any()


def sectors(analysis: Any) -> tuple[int | None, int | None]:
    return analysis.totals[READS], analysis.totals.get(WRITES, 0)


def test_sectors_are_counted_by_lines_of_shared_memory(kernels: Any) -> None:
    """What an H200 counted for such copies."""
    arrays = [ArrayArg((4096,), "uint8"), ArrayArg((4096,), "uint8")]
    for (source, to, size), reads in {
        (0, 16, 128): 5,
        (16, 0, 144): 6,
        (0, 0, 128): 4,
        (48, 112, 16): 1,
    }.items():
        analysis = analyze(kernels["bulk"], 1, 32, [*arrays, source, to, size])
        assert analysis.totals[READS] == reads
        assert not [site for site in analysis.sites if site.unresolved]
        assert analysis.totals["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == 0


@pytest.mark.parametrize(("x", "y", "reads"), [(8, 3, 48), (-8, -2, 46), (248, 60, 36), (320, 100, 32)])
def test_sectors_of_boxes_as_a_chip_counted_them(kernels: Any, x: int, y: int, reads: int) -> None:
    tensor, out = ArrayArg((64, 256), "uint16"), ArrayArg((4096,), "uint8")
    analysis = analyze(kernels["from_tensor"], 1, 64, [TensorMap(tensor, (16, 32)), out, x, y, 1024])
    assert sectors(analysis) == (reads, 0)


def test_a_map_that_does_not_say_its_box_makes_the_copy_unknown(kernels: Any) -> None:
    tensor, out = ArrayArg((64, 256), "uint16"), ArrayArg((4096,), "uint8")
    analysis = analyze(kernels["from_tensor"], 1, 64, [TensorMap(tensor), out, 0, 0, 1024])
    lost = {site.op: site.unresolved for site in analysis.sites if site.unresolved}
    assert set(lost) == {"bulk_load", "bulk_store"}
    assert "has no box" in lost["bulk_load"]
    assert sectors(analysis)[0] is None
    with pytest.raises(MemsimError, match="has no box"):
        run(kernels["from_tensor"], 1, 64, [TensorMap(np.zeros((64, 256), np.uint16)),
                                            np.zeros(4096, np.uint8), 0, 0, 1024])  # fmt: skip


def test_copies_that_a_chip_refuses_are_errors(kernels: Any) -> None:
    tensor, out = np.zeros((64, 256), np.uint16), np.zeros(4096, np.uint8)
    for x in (3, -4):
        with pytest.raises(MemsimError, match="an H200 rejects") as error:
            run(kernels["from_tensor"], 1, 64, [TensorMap(tensor, (16, 32)), out, x, 0, 1024])
        assert error.value.line
    with pytest.raises(MemsimError, match="an H200 rejects"):
        run(kernels["to_tensor"], 1, 64, [TensorMap(tensor, (16, 32)), out, -8, 0])
    with pytest.raises(MemsimError, match="out-of-bounds"):
        run(kernels["bulk"], 1, 32, [out, out[:64].copy(), 0, 0, 1024])
    with pytest.raises(MemsimError, match=r"not a multiple of 16"):
        run(kernels["from_tensor"], 1, 64, [TensorMap(tensor, (16, 33)), out, 0, 0, 1024])
    with pytest.raises(MemsimError, match="swizzles over"):
        TensorMap(tensor, (16, 32), 256)


@pytest.mark.slow
def test_a_byte_that_is_not_known_stays_so() -> None:
    text = (
        HOPPER
        + """
extern "C" __global__ void k(int *out) {
    __shared__ __align__(128) int s[32];
    if (threadIdx.x < 16) s[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                     :: "l"(out), "r"(at(s)), "r"(N) : "memory");
        finish();
    }
}"""
    )
    out = np.zeros(32, np.int32)
    run(kernel(text, code="sass", N=64), 1, 32, [out])
    assert out[:16].all()
    with pytest.raises(MemsimError, match="shared memory that was never written"):
        run(kernel(text, code="sass", N=128), 1, 32, [out])


def two_tensors() -> tuple[list[np.ndarray], list[TensorMap]]:
    tensors = [np.arange(i, i + 32 * 64, dtype=np.uint16).reshape(32, 64) for i in (1, 7000)]
    return tensors, [TensorMap(tensor, (8, 16)) for tensor in tensors]


def test_maps_in_a_struct(kernels: Any) -> None:
    tensors, maps = two_tensors()
    out, bytes = np.zeros((2, 256), np.uint8), 256
    run(kernels["from_struct"], 2, 32, [[np.int32(3), *maps, out, np.int32(bytes)]])
    for block, tensor in enumerate(tensors):
        assert (out[block].view(np.uint16).reshape(8, 16) == tensor[3:11, :16]).all()
    analysis = analyze(kernels["from_struct"], 2, 32, [[np.int32(3), *maps, out, np.int32(bytes)]])
    (row,) = (site for site in analysis.sites if site.op == "bulk_load" and site.space == "global")
    assert row.sectors == 2 * 8


def test_maps_in_global_memory(kernels: Any) -> None:
    tensors, maps = two_tensors()
    out = np.zeros((2, 256), np.uint8)
    run(kernels["from_table"], 2, 32, [TensorMaps(maps), out, 5, 256])
    for block, tensor in enumerate(tensors):
        assert (out[block].view(np.uint16).reshape(8, 16) == tensor[5:13, :16]).all()


def test_a_copy_of_a_map(kernels: Any) -> None:
    tensors, maps = two_tensors()
    out = np.zeros(256, np.uint8)
    run(kernels["from_copy"], 1, 32, [TensorMaps(maps), out, np.zeros(128, np.uint8), 256])
    assert (out.view(np.uint16).reshape(8, 16) == tensors[0][:8, :16]).all()


def test_what_is_no_table_of_maps(kernels: Any) -> None:
    tensors, maps = two_tensors()
    with pytest.raises(MemsimError, match="a table of tensor maps holds tensor maps"):
        TensorMaps(tensors)  # type: ignore[arg-type]
    with pytest.raises(MemsimError, match="must be an array") as caught:
        run(kernels["from_table"], 2, 32, [maps[0], np.zeros(512, np.uint8), 0, 256])
    assert "memsim.TensorMaps" in (caught.value.hint or "")
    with pytest.raises(MemsimError, match=r"argument maps: .*not a multiple of 16 bytes"):
        run(
            kernels["from_table"],
            1,
            32,
            [TensorMaps([TensorMap(tensors[0], (8, 3))]), np.zeros(512, np.uint8), 0, 48],
        )


@pytest.mark.parametrize(("start", "certain"), [(0, False), (32, True)])
def test_a_copy_of_what_the_kernel_stores_has_no_certain_order(start: int, certain: bool) -> None:
    text = """
extern "C" __global__ void k(int *p, int *out, int start) {
    __shared__ __align__(128) int s[32]; __shared__ u64 b;
    p[threadIdx.x] = threadIdx.x;
    if (threadIdx.x == 0) init(at(&b));
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(at(&b), 128);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"
                     :: "r"(at(s)), "l"(p + start), "r"(at(&b)) : "memory");
    }
    wait(at(&b));
    out[s[threadIdx.x]] = 1;
}"""
    arguments = [np.arange(64, dtype=np.int32), np.zeros(64, np.int32), start]
    found = analyze(kernel(HOPPER + text, code="sass"), 1, 32, arguments).trace.uncertain
    assert (not any("what the kernel itself writes" in reason for reason in found)) is certain
