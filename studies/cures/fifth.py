"""A fifth set: two projects that no rule was made with, PolyBench for GPUs and a hundred days of CUDA.

Their kernels are plain: rows, columns, triangles, records. They were chosen by their sources, and their
launches written, before `suggest` was run for any of them; no rule was changed for them before the first run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from studies.cures.launch import Data, PublicLaunch, Source

POLYBENCH = "sgrauerg/polybenchGpu", "5584aaa7d0be810ff5eb0b61c49fb64ecc81ba4c"
DAYS = "a-hamdi/GPU", "a9b0a17c15db72968d51e31f430be31b4cc1db66"
Arguments = Callable[[Data], Sequence[Any]]


def bench(
    file: str, kernel: str, sizes: str, args: Arguments, block: tuple[int, ...] = (256,)
) -> PublicLaunch:
    """Of PolyBench, in a block or two that cover 96 columns; sizes: as `NX=96 NY=100`."""
    folder = file.partition("/")[0]
    defined = tuple(f"-D{one}" for one in sizes.split())
    n = () if sizes.startswith("N=") else ("-DN=1",)  # so that no other size is defined
    needs = f"CUDA/{folder}", "common"
    source = Source(*POLYBENCH, f"CUDA/{file}.cu", needs, ("-Icommon", f"-ICUDA/{folder}", *n, *defined))
    return PublicLaunch(source, kernel, (3, 12) if len(block) == 2 else (1,), block, args)


def day(number: str, file: str, kernel: str, launch: tuple[int, int], args: Arguments) -> PublicLaunch:
    """Of a day: a grid and a block of one dimension."""
    options = ("-DBLOCK_SIZE=128", "-DNEGATIVE_INFINITY=-1e30f") if file.endswith("kernels") else ()
    source = Source(*DAYS, f"day {number}/{file}.cu", (f"day {number}",), options)
    return PublicLaunch(source, kernel, (launch[0],), (launch[1],), args)


def plane(kernel: str, grid: tuple[int, int], args: Arguments, file: str) -> PublicLaunch:
    """Of a day: blocks of 16 x 16 threads."""
    return PublicLaunch(Source(*DAYS, f"{file}.cu"), kernel, grid, (16, 16), args)


def symmetric(d: Data) -> list[Any]:
    """A matrix of 100 by 96, and what is made of its columns."""
    return [96, 100, d.floats(96, 96), d.floats(100, 96)]


def solved(d: Data) -> list[Any]:
    """Three matrices of 96 by 96."""
    return [96, d.floats(96, 96), d.floats(96, 96, low=1.0, high=2.0), d.floats(96, 96)]


def orthogonal(d: Data) -> list[Any]:
    """Column 5 of a matrix of 200 by 96."""
    return [200, 96, d.floats(200, 96), d.floats(96, 96, low=1.0), d.floats(200, 96), 5]


N, BOTH = "N=96", "NX=96 NY=100"
LAUNCHES = [
    bench(
        "ATAX/atax", "atax_kernel1", BOTH, lambda d: [96, 100, d.floats(96, 100), d.floats(100), d.floats(96)]
    ),
    bench(
        "BICG/bicg", "bicg_kernel2", BOTH, lambda d: [96, 100, d.floats(96, 100), d.floats(100), d.floats(96)]
    ),
    bench("MVT/mvt", "mvt_kernel1", N, lambda d: [96, d.floats(96, 96), d.floats(96), d.floats(96)]),
    bench(
        "GESUMMV/gesummv",
        "gesummv_kernel",
        N,
        lambda d: [96, 1.5, 1.2, d.floats(96, 96), d.floats(96, 96), *(d.floats(96) for _ in "txy")],
    ),
    bench(
        "GEMVER/gemver",
        "gemver_kernel3",
        N,
        lambda d: [96, 1.5, 1.2, d.floats(96, 96), d.floats(96), d.floats(96)],
    ),
    bench(
        "SYRK/syrk",
        "syrk_kernel",
        "NI=96 NJ=40",
        lambda d: [96, 40, 1.5, 1.2, d.floats(96, 40), d.floats(96, 96)],
        (32, 8),
    ),
    bench(
        "SYR2K/syr2k",
        "syr2k_kernel",
        "NI=96 NJ=40",
        lambda d: [96, 40, 1.5, 1.2, d.floats(96, 40), d.floats(96, 40), d.floats(96, 96)],
        (32, 8),
    ),
    bench("CORR/correlation", "corr_kernel", "N=100 M=96", symmetric),
    bench("COVAR/covariance", "covar_kernel", "N=100 M=96", symmetric),
    bench("ADI/adi", "adi_kernel1", N, solved),
    bench("ADI/adi", "adi_kernel3", N, solved),
    bench("GRAMSCHM/gramschmidt", "gramschmidt_kernel2", "NI=200 NJ=96", orthogonal),
    day("02", "MatrixAdd", "MatrixAdd_C", (1, 128), lambda d: [*(d.floats(100, 100) for _ in "ABC"), 100]),
    plane("MatrixAdd_B", (6, 6), lambda d: [*(d.floats(96, 96) for _ in "ABC"), 96], "day 02/MatrixAdd"),
    day(
        "03",
        "matrix_vec_mult",
        "vectorMatrixMult",
        (1, 256),
        lambda d: [d.floats(150, 150), d.floats(150), d.floats(150), 150],
    ),
    plane(
        "transposeMatrix",
        (7, 5),
        lambda d: [d.floats(70, 100), d.floats(100, 70), 100, 70],
        "day 06/MatrixTranspose",
    ),
    day(
        "15",
        "flash_attention_backprop/kernels",
        "computeDKernel",
        (2, 128),
        lambda d: [d.floats(200, 64), d.floats(200, 64), d.floats(200), 200, 64],
    ),
    day(
        "15",
        "flash_attention_backprop/kernels",
        "computeSiKernel",
        (1, 64),
        lambda d: [d.floats(64, 32), d.floats(48, 32), d.floats(64, 48), 64, 48, 32, 0.2],
    ),
    day(
        "21",
        "cuda_sgc",
        "compute_loss",
        (2, 256),
        lambda d: [
            *(d.floats(300, 20), d.floats(300), d.floats(20), d.floats(1), d.floats(300), d.floats(300)),
            *(300, 20),
        ],
    ),
    plane("render", (7, 5), lambda d: [d.bytes(800 * 600 * 3)], "day 37/cuda_ray_tracing"),
    day(
        "47",
        "spba_multi_gpu",
        "evaluateCandidatesKernel",
        (2, 256),
        lambda d: [d.floats(500, 10), d.floats(500), 500, 10],
    ),
    day(
        "82",
        "negative_cosine_similarity",
        "cosine_similarity_kernel",
        (2, 128),
        lambda d: [d.floats(250, 48), d.floats(250, 48), d.floats(250), np.uint64(250), np.uint64(48)],
    ),
]
