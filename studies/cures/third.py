"""A third set, of which the code was looked at while rules were widened: projects of neither half.

Of HeCBench the folders were shuffled by a seed; of the first hundred and fifty some short kernels are here
that index arrays by more than a thread's number, of the others a few that are named after a layout. The other
projects teach CUDA.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from studies.cures.launch import Data, PublicLaunch, Source

HECBENCH = "zjin-lcf/HeCBench", "f27000a5188f8ac79bd43fc95a1b3f890c18823d"
LLM = "karpathy/llm.c", "f1e2ace651495b74ae22d45d1723443fd00ecd3a"
BOOK = "deeperlearning/professional-cuda-c-programming", "ee58310bcdcec62a609f02b6c5193452d8102183"
TUTORIAL = "PaddleJitLab/CUDATutorial", "7499a3792f44ef6c78fcad5091fb7335ba6d2d68"
TRIDIAGONAL = "cudpp/cudpp", "9dc7357ee818498a87bc2f68f9d887c298e0e3f6"


def bench(
    folder: str,
    file: str,
    kernel: str,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    args: Callable[[Data], Sequence[Any]],
    options: tuple[str, ...] = (),
    dynamic: int = 0,
) -> PublicLaunch:
    """A kernel of HeCBench."""
    source = Source(*HECBENCH, f"src/{folder}-cuda/{file}", (f"src/{folder}-cuda",), options)
    return PublicLaunch(source, kernel, grid, block, args, dynamic)


def taught(
    project: tuple[str, str],
    file: str,
    kernel: str,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    args: Callable[[Data], Sequence[Any]],
    needs: tuple[str, ...] = (),
    dynamic: int = 0,
) -> PublicLaunch:
    """A kernel of a project that teaches CUDA."""
    return PublicLaunch(Source(*project, file, needs), kernel, grid, block, args, dynamic)


def matrix(d: Data) -> list[Any]:
    """96 columns of 80 rows, and where it is transposed to."""
    return [d.floats(96, 80), d.floats(80, 96), 96, 80]


def boxed(d: Data) -> list[Any]:
    """A box of 90 by 60 pixels in an image of 128 by 80, and its colour."""
    color = np.array([10.0, 200.0, 30.0, 120.0], np.float32)
    return [d.bytes(80, 128, 3), d.bytes(80, 128, 3), 128, 80, 16, 8, 90, 60, color.tobytes()]


def moved(d: Data) -> list[Any]:
    """500 particles in 100 cells."""
    kind = np.dtype([("x", "<f8"), ("v", "<f8"), ("alive", "u1"), ("rest", "u1", 7)])
    particles = np.zeros(500, kind)
    particles["x"], particles["v"] = d.floats(500, low=1e-5, high=9e-3), d.floats(500, low=-1e4, high=1e4)
    particles["alive"] = 1
    return [particles.view(np.uint8), d.doubles(101), -1e11, 500]


def fluid(d: Data) -> list[Any]:
    """200 particles, and what they all have."""
    particles = d.floats(200, 14, dtype="f64", low=0.5, high=1.5)
    shared = np.full(16, 0.5).tobytes()[:72] + np.array([200, 200, 0, 0], np.int32).tobytes() + bytes(64)
    return [particles, np.frombuffer(shared, np.uint8).copy()]


LAUNCHES = [
    bench("sheath", "main.cu", "pushParticle", (2,), (256,), moved),
    bench("overlay", "main.cu", "DetectionOverlayBox<uchar3>", (3, 8), (32, 8), boxed),
    bench(
        "matrixT",
        "main.cu",
        "transposeNaive",
        (5, 6),
        (16, 16),
        lambda d: [d.floats(80, 96), d.floats(96, 80), 80, 96],
    ),
    bench(
        "voxelization",
        "kernels.h",
        "featureExtractionKernel",
        (2,),
        (64,),
        lambda d: [d.floats(128, 10, 5), d.ints(128, low=9, high=10, dtype="u32"), 10, 5, d.halves(128, 5)],
    ),
    bench(
        "ntt",
        "main.cu",
        "intt_3_64k_modcrt",
        (8,),
        (64,),
        lambda d: [d.zeros(65536, dtype="u32"), d.ints(4096, high=1 << 60, dtype="u64")],
    ),
    bench(
        "upsample",
        "main.cu",
        "upsample_forward_kernel",
        (6,),
        (256,),
        lambda d: [d.floats(3, 16, 32), d.floats(3, 32, 64), 1, 3, 16, 32],
    ),
    bench(
        "maxpool3d",
        "main.cu",
        "maxpool3d",
        (2, 4, 2),
        (16, 8, 1),
        lambda d: [d.floats(2, 64, 64), d.floats(2, 32, 32), 2, 2, 2, 2, 2, 64, 64, 32, 32],
    ),
    bench("sph", "fluid.cu", "updateAccelerationsFP", (1,), (256,), fluid),
    bench(
        "tsne",
        "nbodyfft.cu",
        "copy_from_fft_output",
        (12,),
        (256,),
        lambda d: [d.floats(900, 3), d.floats(3, 60, 60), 60, 30, 3],
    ),
    bench(
        "tsne",
        "nbodyfft.cu",
        "copy_to_fft_input",
        (12,),
        (256,),
        lambda d: [d.floats(3, 60, 60), d.floats(900, 3), 60, 30, 3],
    ),
    bench(
        "hmm",
        "ViterbiGPU.cu",
        "viterbi",
        (1,),
        (128,),
        lambda d: [
            d.floats(100),
            d.floats(100, 100),
            d.floats(8, 100),
            d.ints(4, high=8),
            d.floats(100),
            d.zeros(4, 100),
            100,
            2,
        ],
    ),
    bench(
        "kmeans",
        "cluster.cu",
        "feature_transpose",
        (2,),
        (128,),
        lambda d: [d.floats(34, 250), d.floats(250, 34), 34, 250],
    ),
    taught(
        LLM,
        "dev/cuda/layernorm_forward.cu",
        "layernorm_forward_kernel1",
        (1,),
        (128,),
        lambda d: [
            d.floats(100, 96),
            d.floats(100),
            d.floats(100),
            d.floats(100, 96),
            d.floats(96),
            d.floats(96),
            100,
            96,
        ],
        ("dev/cuda",),
    ),
    taught(
        LLM,
        "dev/cuda/softmax_forward.cu",
        "softmax_forward_kernel1",
        (1,),
        (128,),
        lambda d: [d.floats(100, 75), d.floats(100, 75), 100, 75],
        ("dev/cuda",),
    ),
    taught(
        LLM,
        "dev/cuda/attention_forward.cu",
        "attention_query_key_kernel1",
        (4,),
        (256,),
        lambda d: [d.floats(2, 2, 16, 16), d.floats(2, 16, 3, 32), 2, 16, 32, 2],
        ("dev/cuda",),
    ),
    taught(
        LLM,
        "dev/cuda/attention_forward.cu",
        "attention_softmax_kernel1",
        (1,),
        (128,),
        lambda d: [d.floats(2, 2, 32, 32), d.floats(2, 2, 32, 32), 2, 32, 2],
        ("dev/cuda",),
    ),
    taught(
        LLM,
        "dev/cuda/layernorm_backward.cu",
        "layernorm_backward_kernel1",
        (1,),
        (64,),
        lambda d: [
            *(
                d.floats(64, 48),
                d.floats(48),
                d.floats(48),
                d.floats(64, 48),
                d.floats(64, 48),
                d.floats(48),
                d.floats(64),
                d.floats(64),
            ),
            2,
            32,
            48,
        ],
        ("dev/cuda",),
    ),
    taught(
        BOOK, "examples/chapter04/transpose.cu", "copyCol", (6, 5), (16, 16), matrix, ("examples/common",)
    ),
    taught(
        BOOK,
        "examples/chapter04/transpose.cu",
        "transposeNaiveRow",
        (6, 5),
        (16, 16),
        matrix,
        ("examples/common",),
    ),
    taught(
        BOOK,
        "examples/chapter04/transpose.cu",
        "transposeNaiveCol",
        (6, 5),
        (16, 16),
        matrix,
        ("examples/common",),
    ),
    taught(
        BOOK,
        "examples/chapter04/transpose.cu",
        "transposeUnroll4Row",
        (2, 5),
        (16, 16),
        lambda d: [d.floats(128, 80), d.floats(80, 128), 128, 80],
        ("examples/common",),
    ),
    taught(
        BOOK,
        "examples/chapter04/transpose.cu",
        "transposeDiagonalCol",
        (5, 5),
        (16, 16),
        lambda d: [d.floats(80, 80), d.floats(80, 80), 80, 80],
        ("examples/common",),
    ),
    taught(
        BOOK,
        "examples/chapter05/checkSmemRectangle.cu",
        "setColReadCol",
        (1,),
        (32, 16),
        lambda d: [d.zeros(512)],
        ("examples/common",),
    ),
    taught(
        BOOK,
        "examples/chapter05/reduceInteger.cu",
        "reduceNeighboredGmem",
        (4,),
        (128,),
        lambda d: [d.ints(512, high=99), d.zeros(4), 512],
        ("examples/common",),
    ),
    taught(
        TUTORIAL,
        "docs/06_impl_matmul/matmul_raw.cu",
        "sgemm_naive_kernel",
        (4, 4),
        (16, 16),
        lambda d: [d.floats(64, 48), d.floats(48, 64), d.floats(64, 64), 64, 64, 48],
    ),
    taught(
        TUTORIAL,
        "docs/09_optimize_reduce/01_interleaved_addressing/reduce_interleaved_addressing.cu",
        "reduce_naive_kernel<256>",
        (4,),
        (256,),
        lambda d: [d.ints(1024, high=99), d.zeros(4), 1024],
    ),
    taught(
        TRIDIAGONAL,
        "src/cudpp/kernel/tridiagonal_kernel.cuh",
        "crpcrKernel<float>",
        (2,),
        (128,),
        lambda d: [*(d.floats(2, 256, low=low, high=low + 1) for low in (0.1, 3.0, 0.1, 0.1, 0.1)), 256, 6],
        ("src/cudpp", "include"),
        (257 + 128) * 5 * 4,
    ),
    bench(
        "scan2",
        "main.cu",
        "ScanLargeArrays",
        (2,),
        (128,),
        lambda d: [d.floats(512), d.floats(512), 256, d.floats(2)],
        (),
        1024,
    ),
    bench(
        "lud",
        "lud_kernels.cu",
        "lud_diagonal",
        (1,),
        (16,),
        lambda d: [d.floats(64, 64, low=1.0, high=2.0), 64, 16],
        ("-DBLOCK_SIZE=16",),
    ),
    bench(
        "layout", "main.cu", "AoSKernel<128>", (1,), (64,), lambda d: [d.ints(64, 4096, high=99), d.zeros(64)]
    ),
]
