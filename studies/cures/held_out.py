"""The launches of the half that was held out until 29 November 2026: then its sources were opened.

Sizes were chosen so that the counts are those that were recorded before the first list was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from studies.cures.launch import Data, PublicLaunch, Source

Arguments = Callable[[Data], Sequence[Any]]

CALM = Source(
    "zeux/calm",
    "cab0b7b44965e7deeb12a6a188b7d64ce224498e",
    "src/infer.cu",
    ("src/helpers.cuh", "src/model.h"),
    ("-D_ALIGNAS(n)=alignas(n)",),
)
XMRIG = "xmrig/xmrig-cuda", "01d534864b5d82c2ab153af4d995414e419ed069"
BLAKE = Source(*XMRIG, "src/RandomX/blake2b_cuda.hpp")
SCAN = "mark-poscablo/gpu-prefix-sum", "5d566d2c1fc908518c44cb231690c1c42a77296a"
STEREO = "dhernandez0/sgm", "228f4353b20226c85897521601a436fff2d68059"
POINTS = "Colin97/MSN-Point-Cloud-Completion", "dc6450f1e942c1617bf91084df86e8e5a29f5441"
LLAMA = Source(
    "ankan-ban/llama_cu_awq",
    "d0453fd0803cac9107ee5f1857e1c5654ac598cd",
    "llama2_q4.cu",
    ("common.h", "gpu_kernels.h", "tokenizer.h", "sampler.h", "perplexity.h"),
)
ZERO_MEAN = Source(
    "KernelTuner/kernel_tuner", "96a6abc1019179397753c4afede9149a80aec369", "examples/cuda/zeromeanfilter.cu"
)
PADDED = Source(
    "facebookresearch/pytorch3d",
    "9381c4016376345bb795b97c45a6c2de66db354a",
    "pytorch3d/csrc/packed_to_padded_tensor/packed_to_padded_tensor.cu",
)
CORRELATOR = "GPU-correlators/xGPU", "63a3681a4d808729135ebbe7bb58c5e23677f723"
ADJUSTMENT = Source(
    "fixstars/cuda-bundle-adjustment",
    "4390e13ea18135fa4889f2797407520c42c2123b",
    "src/cuda_block_solver.cu",
    ("src", "include"),
    ("-I", "include"),
)

# Observations of 200 landmarks by 30 cameras, from one to four each; and 1,000 blocks in 46 columns.
_STRUCTURE = np.random.default_rng(5)
STARTS = np.concatenate([[0], np.cumsum(_STRUCTURE.integers(1, 5, 200))]).astype(np.int32)
SEEN = int(STARTS[-1])
CAMERAS = _STRUCTURE.integers(0, 30, SEEN).astype(np.int32)
COLUMNS = _STRUCTURE.integers(0, 46, 1000)
BLOCKS = np.stack([np.arange(1000) % 40, COLUMNS, np.arange(1000)], 1).astype(np.int32)

RECTANGLES = np.array(
    [[10, 5, 60, 30], [80, 20, 150, 50], [0, 40, 170, 60], [5, 5, 9, 9], [100, 0, 120, 60]], np.float32
)


def output(weights: str, columns: int) -> PublicLaunch:
    """512 numbers by 992 rows of weights, packed into columns."""

    def args(d: Data) -> Sequence[Any]:
        rows = d.ints(992, 512, high=60, dtype="u8") if columns == 512 else d.words(992, columns)
        return [0, d.floats(992), d.floats(512), rows, d.floats(512), 512, 992, 1e-5, False]

    return PublicLaunch(CALM, f"kernel_output<{weights}, float>", (132,), (1024,), args, 4 * 512)


def packed(d: Data) -> list[Any]:
    """512 rows of 1,024 weights of four bits."""
    return [d.words(512, 128), d.words(512), d.halves(512, 8)]


def product(d: Data) -> list[Any]:
    """Added to what is there."""
    return [d.halves(512), d.halves(1024), *packed(d), 1024, 512, 1, 8, 128, True, -1, d.zeros(1)]


def three_products(d: Data) -> list[Any]:
    """Query, and row 3 of keys and values."""
    caches = [d.halves(8, 512), d.halves(8, 512)]
    matrices = [part for _ in "qkv" for part in packed(d)]
    row = np.full(1, 3, np.int32)
    return [d.halves(512), *caches, d.halves(1024), *matrices, 1024, 512, 1, 8, 128, 0, row]


def gate(d: Data) -> list[Any]:
    """Two products."""
    return [d.halves(512), d.halves(1024), *packed(d), *packed(d), 1024, 512, 1, 8, 128]


def solver(kernel: str, grid: int, block: int, args: Arguments) -> PublicLaunch:
    """A kernel of the bundle adjustment; its matrices are structs of one pointer."""
    return PublicLaunch(ADJUSTMENT, f"cuba::gpu::{kernel}", (grid,), (block,), args)


def post(d: Data) -> list[Any]:
    """Landmarks' updates from those of the cameras."""
    landmarks = [(d.doubles(200, 9),), (d.doubles(200, 3),)]
    return [
        200,
        *landmarks,
        (d.doubles(SEEN, 18),),
        STARTS,
        CAMERAS,
        (d.doubles(30, 6),),
        (d.doubles(200, 3),),
    ]


def complement(d: Data) -> list[Any]:
    """The right side of the reduced system."""
    landmarks = [(d.doubles(200, 9),), (d.doubles(200, 9),), (d.doubles(200, 3),)]
    blocks = [(d.doubles(SEEN, 18),), STARTS, CAMERAS, (d.doubles(30, 6),), (d.doubles(SEEN, 18),)]
    return [200, *landmarks, *blocks]


def jetson(file: str, kernel: str, grid: tuple[int, ...], args: Arguments) -> PublicLaunch:
    """Of images; most are 173 x 61."""
    headers = ("cpp/image", "cpp/math", "cpp/parsers", "cuda")
    source = Source(
        "dusty-nv/jetson-utils",
        "fae4b4250f985ab92180b6ec955b79995b7a34ff",
        f"cuda/{file}.cu",
        headers,
        tuple(word for folder in headers for word in ("-I", folder)),
    )
    return PublicLaunch(source, kernel, grid, (32, 8, 1) if grid == (6, 8, 1) else (8, 8), args)


def colored(d: Data) -> list[Any]:
    """100 x 45 floats as 200 x 90 colors."""
    return [d.floats(256, 4), d.floats(45, 100, low=0.0), 100, 45, d.bytes(90, 200, 3), 200, 90, 255.0, 0.0]


def points(d: Data) -> list[Any]:
    """Depths and colors as points."""
    depth, color = d.floats(61, 173, low=0.5, high=4.0), d.floats(61, 173, 4, low=0.0, high=255.0)
    return [depth, color, 173, 61, "f32(100,100)", "f32(85,30)", d.zeros(61, 173, 16, dtype="u8")]


LAUNCHES = [
    output("__nv_fp8_e5m2", 512),
    output("unsigned int", 64),
    PublicLaunch(
        CALM,
        "kernel_rotate_sink<__half>",
        (4, 4),
        (32,),
        lambda d: [0, 128, d.halves(4, 64, 128), 64, 2, 13.3, 64, 64],
    ),
    PublicLaunch(
        BLAKE,
        "blake2b_initial_hash_double",
        (3,),
        (32,),
        lambda d: [d.zeros(96, 8, dtype="u64"), d.bytes(18 * 8), 140, 1000],
    ),
    PublicLaunch(
        BLAKE,
        "blake2b_initial_hash_big",
        (3,),
        (32,),
        lambda d: [d.zeros(96, 8, dtype="u64"), d.bytes(38 * 8), 300, 1000, 39],
    ),
    PublicLaunch(
        BLAKE,
        "blake2b_hash_registers<256u, 256u, 32u>",
        (3,),
        (32,),
        lambda d: [d.zeros(96, 4, dtype="u64"), d.bytes(96, 256)],
    ),
    PublicLaunch(
        Source(*XMRIG, "src/RandomX/aes_cuda.hpp"),
        "hashAes1Rx4<1024ul, 192u, 256u, 64ul>",
        (2,),
        (128,),
        lambda d: [d.bytes(64, 1088), d.bytes(64, 256), 64],
    ),
    PublicLaunch(
        Source(*SCAN, "scan_standalone/scan.cu", ("scan_standalone",)),
        "gpu_sum_scan_blelloch",
        (10,),
        (1024,),
        lambda d: [d.zeros(20000), d.ints(20000, high=100), d.zeros(10), 20000],
        4 * 2048,
    ),
    PublicLaunch(
        Source(*STEREO, "costs.cu", ("costs.h", "configuration.h")),
        "CenterSymmetricCensusKernelSM2",
        (5, 2),
        (32, 32),
        lambda d: [d.bytes(40, 160), d.bytes(40, 160), d.zeros(40, 160), d.zeros(40, 160), 40, 160],
    ),
    PublicLaunch(
        Source(*STEREO, "median_filter.cu", ("median_filter.h",)),
        "MedianFilter3x3",
        (50,),
        (128,),
        lambda d: [d.bytes(40, 160), d.bytes(40, 160), 40, 160],
    ),
    PublicLaunch(
        Source(*POINTS, "emd/emd_cuda.cu"),
        "calc_unass_cnt",
        (2, 2),
        (1024,),
        lambda d: [2, 2048, d.ints(2, 2048, low=-1, high=2048), d.zeros(2)],
    ),
    PublicLaunch(LLAMA, "mat_vec_kernel_int4", (128, 1), (32, 4), product),
    PublicLaunch(LLAMA, "qkv_matvec_kernel", (128, 3), (32, 4), three_products),
    PublicLaunch(LLAMA, "ffn_matvec_silu_kernel", (128, 1), (32, 4), gate),
    PublicLaunch(
        ZERO_MEAN,
        "transpose",
        (5, 5),
        (32, 16),
        lambda d: [75, 133, d.floats(133, 75), d.floats(75, 133)],
    ),
    PublicLaunch(
        ZERO_MEAN, "computeMeanHorizontally", (1, 5), (32, 16), lambda d: [75, 133, d.floats(75, 133)]
    ),
    PublicLaunch(
        PADDED,
        "PackedToPaddedKernel<float>",
        (5,),
        (512,),
        lambda d: [
            *(d.floats(700, 6), np.array([0, 130, 300, 440, 580]), d.floats(5, 200, 6)),
            *(5, 200, 700, 6),
        ],
    ),
    PublicLaunch(
        Source(*CORRELATOR, "src/fft/FFT512.cu", ("src/fft/codelets.h",)),
        "FFT512_device",
        (2, 2),
        (64,),
        lambda d: [d.floats(4, 512, 2)],
    ),
    PublicLaunch(
        Source(*CORRELATOR, "src/fft/FFT1024.cu", ("src/fft/codelets.h",)),
        "FFT1024_device",
        (2, 2),
        (64,),
        lambda d: [d.floats(4, 1024, 2), d.floats(4, 1024, 2)],
    ),
    solver("maxDiagonalKernel<6>", 1, 512, lambda d: [900, d.doubles(150, 36), d.doubles(1)]),
    solver("addLambdaKernel<3>", 2, 512, lambda d: [900, d.doubles(300, 9), 0.1, d.doubles(900)]),
    solver("schurComplementPostKernel", 1, 512, post),
    solver("computeBschureKernel", 1, 256, complement),
    solver(
        "updatePosesKernel", 1, 128, lambda d: [97, (d.doubles(97, 6),), d.doubles(97, 4), d.doubles(97, 3)]
    ),
    solver("nnzPerColKernel", 2, 512, lambda d: [BLOCKS, 1000, d.zeros(47)]),
    jetson(
        "cudaResize",
        "gpuResize<uchar3, (cudaFilterMode)1>",
        (30, 13),
        lambda d: [d.bytes(67, 160, 3), 160, 67, d.bytes(100, 240, 3), 240, 100],
    ),
    jetson(
        "cudaResize",
        "gpuResize<float4, (cudaFilterMode)0>",
        (11, 6),
        lambda d: [d.floats(61, 173, 4), 173, 61, d.floats(41, 86, 4), 86, 41],
    ),
    jetson(
        "cudaWarp-affine",
        "gpuPerspectiveWarp<uchar4>",
        (22, 8),
        lambda d: [
            *(d.bytes(61, 173, 4), d.bytes(61, 173, 4), 173, 61),
            *("f32(1,0.1,3)", "f32(0.1,1,2)", "f32(0,0,1)"),
        ],
    ),
    jetson(
        "cudaWarp-fisheye",
        "cudaFisheye<uchar4>",
        (22, 8),
        lambda d: [d.bytes(61, 173, 4), d.bytes(61, 173, 4), 173, 61, 0.5],
    ),
    jetson("cudaColormap", "gpuColormapPalette<uchar3, (cudaFilterMode)1>", (25, 12), colored),
    jetson(
        "cudaYUV-NV12",
        "NV12ToRGB<uchar3>",
        (6, 8, 1),
        lambda d: [d.bytes(96, 176), 176, d.bytes(64, 176, 3), 528, 176, 64],
    ),
    jetson("cudaPointCloud", "gpuPointCloudExtract<true>", (22, 8), points),
    jetson(
        "cudaOverlay",
        "gpuRectFill<uchar4>",
        (22, 8),
        lambda d: [
            *(d.bytes(61, 173, 4), d.bytes(61, 173, 4), 173, 61),
            *(RECTANGLES, len(RECTANGLES), "f32(10,200,30,128)"),
        ],
    ),
]
