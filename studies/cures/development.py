"""The launches of the development half, in the order of the recorded study.

Sizes were chosen so that the counts are those that were recorded before the first list was lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from studies.cures.launch import Data, PublicLaunch, Source

RCNN = "sshaoshuai/PointRCNN", "1d0dee91262b970f460135252049112d80259ca0"
POOL = Source(*RCNN, "lib/utils/roipool3d/src/roipool3d_kernel.cu")
OVERLAP = Source(*RCNN, "lib/utils/iou3d/src/iou3d_kernel.cu")
VOXELS = "sunset1995/DirectVoxGO", "341e1fc4e96efff146d42cd6f31b8199a3e536f7"
RENDER = Source(*VOXELS, "lib/cuda/render_utils_kernel.cu")
BILATERAL = Source(
    "WolframRhodium/VapourSynth-BilateralGPU", "936173276496ad11a105ee5af1ae8e44c19045ed", "source/kernel.cu"
)
TRACER = "rogerallen/raytracinginoneweekendincuda"
CHAPTER_4 = Source(TRACER, "12239513c71dc0c4125e5d93fd293332c86d50ca", "main.cu", ("vec3.h", "ray.h"))
OF_CHAPTER_12 = ("vec3.h", "ray.h", "sphere.h", "hitable.h", "hitable_list.h", "camera.h", "material.h")
CHAPTER_12 = Source(TRACER, "ab140b12d4923b75270831baabab5e4d4209f305", "main.cu", OF_CHAPTER_12)
OPTIMIZE = "Liu-xiandong/How_to_optimize_in_GPU", "5d2def3e082c4e1364c3ade54451b7b9d1d6f044"
EXECUTION = "source/backend/cuda/execution/"
SOFTMAX = Source(
    "alibaba/MNN", "4d40bdbd7efb73a58383bb5da867a6f41eb1776e", f"{EXECUTION}SoftmaxExecution.cu", (EXECUTION,)
)
HASHES = "mochimodev/cuda-hashing-algos", "5f80d58c10dbf9d3fcd502fee8118e49fddc593a"
FLOWNET = "NVIDIA/flownet2-pytorch", "bce69c881ad2b11bef1e6ce9fd0dfd45bd8a1756"
CORRELATION = "networks/correlation_package"
SHA256 = "moffa13/SHA256CUDA", "a57551301258097df43373be9483e49736fccce6"
DISTANCE = "daerduoCarey/PyTorchEMD", "e5c0feb8c15741a858362f9c397d9ed4b8b1752b"
MULTI_GPU = "NVIDIA/multi-gpu-programming-models", "9a600f5ea8f5e53614e30b7b36e9136107178dd8"


def boxes(d: Data, count: int) -> np.ndarray:
    """Turned rectangles: two corners and an angle."""
    corner, size = d.floats(count, 2, low=0.0, high=60.0), d.floats(count, 2, low=2.0, high=8.0)
    return np.concatenate([corner, corner + size, d.floats(count, 1, low=-3.0, high=3.0)], 1)


def overlaps(d: Data) -> list[Any]:
    """Which of a hundred boxes overlap."""
    return [100, 0.3, boxes(d, 100), d.zeros(100, 2, dtype="u64")]


def bilateral(
    kernel: str, grid: tuple[int, int], size: tuple[int, int, int], radius: int, dynamic: int
) -> PublicLaunch:
    """size: width, height, and floats from row to row. The reference follows the image."""
    width, height, stride = size
    return PublicLaunch(
        BILATERAL,
        kernel,
        grid,
        (16, 8),
        lambda d: [
            d.floats(height, stride),
            d.floats(2 * height, stride, low=0.0),
            *(width, height, stride, -0.05, -500.0, radius),
        ],
        dynamic,
    )


def tutorial(version: int, block: tuple[int, int, int]) -> PublicLaunch:
    """A matrix product of halves, 256 cubed, with four stages in shared memory."""
    tutorials = "KnowingNothing/MatmulTutorial", "70f70fa08b1d5095dfb500c39f56b0465fff05e0"
    source = Source(*tutorials, f"examples/matmul/this-sm80/matmul-v{version:02}.cu")
    return PublicLaunch(
        source,
        "matmul",
        (2, 2),
        block,
        lambda d: [*(d.halves(256, 256) for _ in "ABC"), 256, 256, 256, 1.0, 0.0],
        65536,
    )


def turing(version: int, grid: tuple[int, int], threads: int, m: int, n: int) -> PublicLaunch:
    """A matrix product of floats, m by n, 64 deep."""
    ladder = "yzhaiustc/Optimizing-SGEMM-on-NVIDIA-Turing-GPUs", "a5c0d6ce593553cdf87848821b1433d7930d0cc4"
    return PublicLaunch(
        Source(*ladder, f"include/kernel{version}.cuh"),
        f"mysgemm_v{version}",
        grid,
        (threads,),
        lambda d: [m, n, 64, 1.0, d.floats(64, m), d.floats(n, 64), 0.0, d.floats(n, m)],
    )


def hashes(name: str, digest: int) -> PublicLaunch:
    """Of 200 messages of 37 bytes."""

    def args(d: Data) -> Sequence[Any]:
        return [d.bytes(200, 37), 37, d.zeros(200, digest, dtype="u8"), 200]

    source = Source(*HASHES, f"{name}.cu", (f"{name}.cuh", "config.h"))
    return PublicLaunch(source, f"kernel_{name}_hash", (1,), (256,), args)


def sampled(d: Data) -> list[Any]:
    """125 rays of 32 points."""
    rays, steps = np.repeat(np.arange(125), 32), np.tile(np.arange(32), 125)
    box = [d.floats(3), d.floats(3)]
    outside = d.zeros(4000, dtype="u8")
    return [d.floats(125, 3), d.floats(125, 3), *box, rays, steps, 0.1, 4000, d.floats(4000, 3), outside]


def weights(d: Data) -> list[Any]:
    """300 rays of 7 points."""
    alpha, weight, rest = d.floats(2100, low=0.0, high=0.2), d.floats(2100), d.floats(2100)
    return [alpha, 300, weight, rest, d.floats(300), np.arange(300) * 7, np.arange(300) * 7 + 7]


def looked_up(d: Data) -> list[Any]:
    """4,000 points in a grid of 32 cubed."""
    world, found = d.ints(32, 32, 32, high=2, dtype="u8"), d.zeros(4000, dtype="u8")
    scale, shift = d.floats(3, low=10.0, high=15.0), d.floats(3, low=14.0, high=16.0)
    return [world, d.floats(4000, 3), found, scale, shift, 32, 32, 32, 4000]


def mined(d: Data) -> list[Any]:
    """A message of 165 letters, numbers from 1,000, and a hash that is not found."""
    found = [d.zeros(256, dtype="i8"), d.zeros(32, dtype="u8"), d.zeros(1)]
    return [*found, np.append(np.full(165, 97, np.int8), np.int8(0)), 165, 6, 1000]


def gradient(d: Data) -> list[Any]:
    """Two clouds of 192 points, each matched to 40."""
    clouds = [d.floats(2, 192, 3), d.floats(2, 40, 3)]
    return [2, 192, 40, d.floats(2), *clouds, d.floats(2, 40, 192), d.floats(2, 40, 3)]


LAUNCHES = [
    PublicLaunch(
        POOL,
        "assign_pts_to_box3d",
        (2, 9, 2),
        (256,),
        lambda d: [
            *(2, 300, 9),
            d.floats(2, 300, 3, low=-20.0, high=20.0),
            d.floats(2, 9, 7, low=1.0, high=6.0),
            d.zeros(2, 300, 9),
        ],
    ),
    PublicLaunch(
        OVERLAP,
        "boxes_iou_bev_kernel",
        (3, 2),
        (16, 16),
        lambda d: [25, boxes(d, 25), 40, boxes(d, 40), d.floats(25, 40)],
    ),
    PublicLaunch(OVERLAP, "nms_normal_kernel", (2, 2), (64,), overlaps),
    PublicLaunch(OVERLAP, "nms_kernel", (2, 2), (64,), overlaps),
    PublicLaunch(
        Source(*SHA256, "SHA256CUDA/main.cu", ("SHA256CUDA",)),
        "sha256_kernel",
        (2,),
        (256,),
        mined,
        168 + 64 * 256,
    ),
    PublicLaunch(
        RENDER,
        "infer_t_minmax_cuda_kernel<float>",
        (2,),
        (256,),
        lambda d: [
            *(d.floats(300, 3), d.floats(300, 3), d.floats(3), d.floats(3)),
            *(0.2, 3.0, 300, d.floats(300), d.floats(300)),
        ],
    ),
    PublicLaunch(RENDER, "sample_pts_on_rays_cuda_kernel<float>", (16,), (256,), sampled),
    PublicLaunch(RENDER, "alpha2weight_cuda_kernel<float>", (2,), (256,), weights),
    PublicLaunch(RENDER, "maskcache_lookup_cuda_kernel<float>", (16,), (256,), looked_up),
    PublicLaunch(
        Source(*VOXELS, "lib/cuda/ub360_utils_kernel.cu"),
        "cumdist_thres_cuda_kernel<float>",
        (1,),
        (256,),
        lambda d: [d.floats(200, 50, low=0.0), 2.0, 200, 50, d.zeros(200, 50, dtype="u8")],
    ),
    PublicLaunch(
        Source(*FLOWNET, f"{CORRELATION}/correlation_cuda_kernel.cu", (CORRELATION,)),
        "channels_first<float>",
        (1, 6, 7),
        (32,),
        lambda d: [d.floats(40, 6, 7), d.floats(10, 11, 40), 40, 6, 7, 2],
    ),
    bilateral("bilateral<true, false>", (4, 5), (60, 37, 64), 4, 4 * 24 * 16),
    bilateral("bilateral<true, true>", (3, 4), (45, 30, 48), 3, 2 * 4 * 22 * 14),
    bilateral("bilateral<false, false>", (3, 3), (41, 22, 64), 5, 0),
    PublicLaunch(
        Source(*DISTANCE, "cuda/emd_kernel.cu"), "matchcostgrad2<float>", (32, 32), (256,), gradient
    ),
    PublicLaunch(
        CHAPTER_4,
        "render",
        (13, 7),
        (8, 8),
        lambda d: [
            *(d.floats(50, 100, 3), 100, 50),
            *("f32(-2,-1,-1)", "f32(4,0,0)", "f32(0,2,0)", "f32(0,0,0)"),
        ],
    ),
    PublicLaunch(CHAPTER_12, "render_init", (7, 5), (8, 8), lambda d: [50, 35, d.zeros(50 * 35, 12)]),
    PublicLaunch(
        Source(*OPTIMIZE, "reduce/reduce_v1_no_divergence_branch.cu"),
        "reduce1",
        (40,),
        (256,),
        lambda d: [d.floats(40 * 256), d.floats(40)],
    ),
    PublicLaunch(
        Source(*OPTIMIZE, "sgemm/sgemm_v1.cu"),
        "Sgemm<128, 8, 128, 8, 8, false>",
        (2, 1),
        (16, 16),
        lambda d: [d.floats(128, 64), d.floats(64, 256), d.floats(128, 256), 128, 256, 64],
    ),
    tutorial(3, (32, 2, 2)),
    tutorial(8, (32, 4, 2)),
    tutorial(11, (32, 4, 2)),
    tutorial(14, (32, 2, 2)),
    turing(3, (4, 4), 1024, 128, 128),
    turing(6, (4, 4), 256, 128, 128),
    turing(7, (2, 2), 256, 128, 128),
    turing(8, (1, 2), 256, 128, 256),
    turing(11, (2, 1), 256, 256, 128),
    PublicLaunch(
        SOFTMAX,
        "MNN::CUDA::SOFTMAX_WARP_32<float>",
        (60,),
        (32,),
        lambda d: [d.floats(10, 27, 6), d.floats(10, 27, 6), 6, 27, 10, 60],
    ),
    PublicLaunch(
        SOFTMAX,
        "MNN::CUDA::SOFTMAX_AXIS_REDUCE<float>",
        (20,),
        (256,),
        lambda d: [d.floats(5, 600, 4), d.floats(5, 600, 4), 4, 600, 256, 3, 5, 20],
    ),
    PublicLaunch(
        Source(*MULTI_GPU, "mpi/jacobi_kernels.cu"),
        "initialize_boundaries",
        (1,),
        (128,),
        lambda d: [d.floats(80, 66), d.floats(80, 66), 3.1415927, 0, 66, 80, 256],
    ),
    hashes("md2", 16),
    hashes("sha1", 20),
    hashes("md5", 16),
]
