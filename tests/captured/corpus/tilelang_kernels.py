"""A product of matrices in TileLang, which `tilelang_matmul.cubin.xz` has compiled for sm_90a.

With TileLang 0.1.15 and no GPU, `python tilelang_kernels.py matmul.cu` writes the CUDA source that
TileLang makes; nvcc 13.0 compiles it with `-cubin -arch=sm_90a -std=c++17` and the include folders of
TileLang's wheel, `src` and `3rdparty/cutlass/include`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tilelang.language as T  # noqa: N812
from tilelang import tvm
from tilelang.engine import lower

M = N = K = 256
TILE, DEPTH = 128, 32


@T.prim_func
def matmul(
    A: T.Tensor((M, K), "float16"),  # noqa: N803
    B: T.Tensor((K, N), "float16"),  # noqa: N803
    C: T.Tensor((M, N), "float16"),  # noqa: N803
):
    with T.Kernel(N // TILE, M // TILE, threads=128) as (bx, by):
        a = T.alloc_shared((TILE, DEPTH), "float16")
        b = T.alloc_shared((DEPTH, TILE), "float16")
        c = T.alloc_fragment((TILE, TILE), "float32")
        T.clear(c)
        for k in T.Pipelined(K // DEPTH, num_stages=2):
            T.copy(A[by * TILE, k * DEPTH], a)
            T.copy(B[k * DEPTH, bx * TILE], b)
            T.gemm(a, b, c)
        T.copy(c, C[by * TILE, bx * TILE])


def source(chip: str = "sm_90") -> str:
    """The CUDA source of the kernel for a chip."""
    target = {"kind": "cuda", "arch": chip}
    with tvm.target.Target(target):
        made: str = lower(matmul, target=target).kernel_source
    return made


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(source(), "utf-8")
