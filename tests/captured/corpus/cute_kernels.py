"""Kernels of CuTe DSL that the corpus has compiled, and their launches."""

from __future__ import annotations

import cutlass
import numpy as np
from cutlass import cute
from cutlass.cute.nvgpu import cpasync
from cutlass.cute.runtime import from_dlpack

SIDE = 32  # of a tile that TMA copies


@cute.kernel
def scale_kernel(x: cute.Tensor, out: cute.Tensor, factor: cutlass.Float32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * 128 + thread
    out[i] = x[i * 2] * factor


@cute.jit
def scale(x: cute.Tensor, out: cute.Tensor, factor: cutlass.Float32):
    scale_kernel(x, out, factor).launch(grid=(cute.ceil_div(cute.size(out), 128), 1, 1), block=(128, 1, 1))


@cute.kernel
def transpose_kernel(a: cute.Tensor, out: cute.Tensor, stride: cutlass.Constexpr):
    tx, ty, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    memory = cutlass.memory.SmemAllocator()
    tile = memory.allocate_tensor(cutlass.Float32, cute.make_layout((32, 32), stride=(stride, 1)))
    tile[ty, tx] = a[by * 32 + ty, bx * 32 + tx]
    cute.arch.sync_threads()
    out[bx * 32 + ty, by * 32 + tx] = tile[tx, ty]


@cute.jit
def transpose(a: cute.Tensor, out: cute.Tensor, stride: cutlass.Constexpr):
    grid = (a.shape[1] // 32, a.shape[0] // 32, 1)
    transpose_kernel(a, out, stride).launch(grid=grid, block=(32, 32, 1))


@cute.kernel
def move_kernel(load: cute.CopyAtom, a: cute.Tensor, store: cute.CopyAtom, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    memory = cutlass.memory.SmemAllocator()
    full = memory.allocate_array(cutlass.Int64, 1)
    layout = cute.make_layout((SIDE, SIDE), stride=(SIDE, 1))
    tile = memory.allocate_tensor(cutlass.Float32, layout, byte_alignment=128)
    if thread == 0:
        cute.arch.mbarrier_init(full, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    whole, one = cute.group_modes(tile, 0, 2), cute.make_layout(1)
    source = cute.group_modes(cute.local_tile(a, (SIDE, SIDE), (by, bx)), 0, 2)
    target = cute.group_modes(cute.local_tile(out, (SIDE, SIDE), (bx, by)), 0, 2)
    to, of = cpasync.tma_partition(load, 0, one, whole, source)
    back, there = cpasync.tma_partition(store, 0, one, whole, target)
    warp = cute.arch.make_warp_uniform(thread // 32)
    if warp == 0:
        with cute.arch.elect_one():
            cute.arch.mbarrier_arrive_and_expect_tx(full, SIDE * SIDE * 4)
        cute.copy(load, of, to, tma_bar_ptr=full)
    cute.arch.mbarrier_wait(full, 0)
    tile[thread // SIDE, thread % SIDE] = tile[thread // SIDE, thread % SIDE] + 1
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    if warp == 0:
        cute.copy(store, back, there)
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0)


@cute.jit
def move(a: cute.Tensor, out: cute.Tensor):
    layout = cute.make_layout((SIDE, SIDE), stride=(SIDE, 1))
    shape = (SIDE, SIDE)
    load, of = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, layout, shape)
    store, to = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), out, layout, shape)
    grid = (a.shape[1] // SIDE, a.shape[0] // SIDE, 1)
    move_kernel(load, of, store, to).launch(grid=grid, block=(SIDE * SIDE, 1, 1))


def launch_all() -> None:
    """Makes each launch once; the first one is of a function that was compiled before."""
    x, out = np.arange(2048, dtype=np.float32), np.zeros(1024, np.float32)
    a, b = from_dlpack(x).mark_layout_dynamic(), from_dlpack(out).mark_layout_dynamic()
    cute.compile(scale, a, b, 2.0)(a, b, 3.0)
    matrix, turned = np.arange(4096, dtype=np.float32).reshape(64, 64), np.zeros((64, 64), np.float32)
    for stride in (32, 33):
        transpose(from_dlpack(matrix), from_dlpack(turned), stride)
    wide, tall = np.arange(6144, dtype=np.float32).reshape(64, 96), np.zeros((96, 64), np.float32)
    move(from_dlpack(wide, assumed_align=16), from_dlpack(tall, assumed_align=16))
