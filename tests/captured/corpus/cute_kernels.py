"""Kernels of CuTe DSL that the corpus has compiled, and their launches."""

from __future__ import annotations

import cutlass
import numpy as np
from cutlass import cute
from cutlass.cute.runtime import from_dlpack


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


def launch_all() -> None:
    """Makes each launch once; the first one is of a function that was compiled before."""
    x, out = np.arange(2048, dtype=np.float32), np.zeros(1024, np.float32)
    a, b = from_dlpack(x).mark_layout_dynamic(), from_dlpack(out).mark_layout_dynamic()
    cute.compile(scale, a, b, 2.0)(a, b, 3.0)
    matrix, turned = np.arange(4096, dtype=np.float32).reshape(64, 64), np.zeros((64, 64), np.float32)
    for stride in (32, 33):
        transpose(from_dlpack(matrix), from_dlpack(turned), stride)
