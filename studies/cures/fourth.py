"""A fourth set: kernels as production has them, of projects in none of the other sets.

Point clouds, boxes, rays, images, layers of networks and quantised weights, of fourteen projects. They were
chosen by what they compute, and their launches written, before `suggest` was run for any of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from studies.cures import fourth_points
from studies.cures.launch import Data, PublicLaunch, Source

TENSORRTX = "wang-xinyu/tensorrtx", "3ff22bb4be762dafa2ce83dac0b291ba9a57cd9b"
SIFT = "Celebrandil/CudaSift", "5bc874af176224770da573eb0135b3494e553690"
LLAMA = "turboderp/exllama", "3b013cd53c7d413cf99ca04c7c28dd5c95117c0d"
DARKNET = "pjreddie/darknet", "f6afaabcdf85f77e7aff2ec55c020c0e297c77f9"
GPUFIT = "gpufit/Gpufit", "a0bd66c365468c7fca4b8f0511597907cf2c0274"
PRO = "shouxieai/tensorRT_Pro", "84c3f6894bfdc5d7c3c3a48044f0437936d4fb14"
SAMPLES = "NVIDIA/cuda-samples", "c94ff366aed18c797b8a85dfaac7817b0228b420"

DETECTED = Source(*TENSORRTX, "yolov8/src/preprocess.cu", ("yolov8",), ("-Iyolov8/include",))
DECODED = Source(*TENSORRTX, "yolov8/src/postprocess.cu", ("yolov8",), ("-Iyolov8/include",))
FACES = Source(*TENSORRTX, "retinaface/decode.cu", ("retinaface",))
COMMON = "src/tensorRT/common"
RESIZED = Source(*PRO, f"{COMMON}/preprocess_kernel.cu", ("src/tensorRT",), ("-Isrc/tensorRT",))
YOLO = Source(*PRO, "src/application/app_yolo/yolo_decode.cu", ("src/tensorRT",), ("-Isrc/tensorRT",))
LAYERS = Source(*DARKNET, "src/blas_kernels.cu", ("src", "include"), ("-Iinclude", "-Isrc", "-DBLOCK=512"))
POOLED = Source(
    *DARKNET, "src/avgpool_layer_kernels.cu", ("src", "include"), ("-Iinclude", "-Isrc", "-DBLOCK=512")
)
MATCHING = Source(*SIFT, "matching.cu", (".",))
POSITIONS = Source(*SIFT, "cudaSiftD.cu", (".",))
NORM = Source(*LLAMA, "exllama_ext/cuda_func/rms_norm.cu", ("exllama_ext",))
FITTING = Source(*GPUFIT, "Gpufit/cuda_kernels.cu", ("Gpufit",))
BOX = "Samples/2_Concepts_and_Techniques/boxFilter"
FILTER = Source(*SAMPLES, f"{BOX}/boxFilter_kernel.cu", (BOX, "Common"), ("-ICommon",))
DCT = "Samples/2_Concepts_and_Techniques/dct8x8"
COSINES = Source(*SAMPLES, f"{DCT}/dct8x8.cu", (DCT, "Common"), ("-ICommon",))


def detections(d: Data) -> list[Any]:
    """300 records of ninety numbers, behind their number."""
    records = d.floats(300, 90, low=0.5)
    return [
        np.concatenate([np.array([300], np.float32), records.ravel()]),
        300,
        0.1,
        d.floats(1 + 7 * 300),
        300,
    ]


def scaled(d: Data) -> list[Any]:
    """An image of 60 by 40 pixels made one of 90 by 60."""
    norm = np.zeros(10, np.float32)
    norm[3:6] = norm[6] = 1
    return [d.bytes(40, 60, 3), 180, 60, 40, d.floats(3, 60, 90), 90, 60, 2 / 3, 2 / 3, norm.tobytes(), 5400]


def warped(d: Data) -> list[Any]:
    """An image of 100 by 60 pixels made one of 64 by 64."""
    matrix = np.array([1.5, 0.0, 1.0, 0.0, 0.9, 1.0], np.float32)
    return [d.bytes(60, 100, 3), 300, 100, 60, d.floats(3, 64, 64), 64, 64, 114, matrix.tobytes(), 4096]


LAUNCHES = [
    *fourth_points.LAUNCHES,
    PublicLaunch(
        Source(*TENSORRTX, "real-esrgan/x4plus/postprocess.cu", ("real-esrgan/x4plus",)),
        "postprocess_kernel",
        (23,),
        (512,),
        lambda d: [d.bytes(60, 64, 3), d.floats(3, 60, 64, low=0.0), 1, 60, 64, 3, 11520],
    ),
    PublicLaunch(
        Source(*TENSORRTX, "real-esrgan/x4plus/preprocess.cu", ("real-esrgan/x4plus",)),
        "preprocess_kernel",
        (23,),
        (512,),
        lambda d: [d.floats(3, 60, 64), d.bytes(60, 64, 3), 1, 60, 64, 3, 11520],
    ),
    PublicLaunch(DETECTED, "warpaffine_kernel", (16,), (256,), warped),
    PublicLaunch(DECODED, "decode_kernel", (2,), (256,), detections),
    PublicLaunch(
        FACES,
        "CalDetection",
        (2,),
        (256,),
        lambda d: [d.floats(2 * 16, 15, 20), d.zeros(1, 9001, dtype="f32"), 300, 32, 16, 9001],
    ),
    PublicLaunch(RESIZED, "resize_bilinear_and_normalize_kernel", (22,), (256,), scaled),
    PublicLaunch(
        RESIZED,
        "convert_nv12_to_bgr_kernel",
        (10,),
        (512,),
        lambda d: [
            d.ints(60, 80, low=90, high=140, dtype="u8"),
            d.ints(30, 80, low=124, high=132, dtype="u8"),
            80,
            60,
            80,
            d.bytes(60, 80, 3),
            4800,
        ],
    ),
    PublicLaunch(
        YOLO,
        "decode_kernel",
        (2,),
        (256,),
        lambda d: [
            d.floats(300, 25, low=0.5),
            300,
            20,
            0.1,
            d.floats(6),
            d.zeros(1 + 7 * 300, dtype="f32"),
            300,
        ],
    ),
    PublicLaunch(
        LAYERS,
        "softmax_kernel",
        (1,),
        (512,),
        lambda d: [d.floats(100, 40), 40, 100, 40, 1, 0, 1, 1.0, d.floats(100, 40)],
    ),
    PublicLaunch(
        LAYERS,
        "reorg_kernel",
        (9,),
        (512,),
        lambda d: [4608, d.floats(8, 16, 36), 36, 16, 8, 1, 2, 1, d.floats(8, 16, 36)],
    ),
    PublicLaunch(
        LAYERS, "mean_kernel", (1,), (512,), lambda d: [d.floats(2, 100, 36), 2, 100, 36, d.floats(100)]
    ),
    PublicLaunch(
        POOLED,
        "forward_avgpool_layer_kernel",
        (1,),
        (512,),
        lambda d: [200, 7, 7, 100, d.floats(2, 100, 49), d.floats(200)],
    ),
    PublicLaunch(
        POOLED,
        "backward_avgpool_layer_kernel",
        (1,),
        (512,),
        lambda d: [200, 7, 7, 100, d.floats(2, 100, 49), d.floats(200)],
    ),
    PublicLaunch(POSITIONS, "RescalePositions", (4,), (64,), lambda d: [d.floats(200, 144), 200, 2.0]),
    PublicLaunch(
        MATCHING,
        "TestHomographies",
        (1, 4),
        (16, 16),
        lambda d: [d.floats(4, 100), d.floats(8, 64), d.zeros(64), 100, 0.5],
    ),
    PublicLaunch(
        NORM,
        "rms_norm_row_product_kernel<true>",
        (2, 4),
        (32, 8),
        lambda d: [d.halves(32, 1024), d.floats(32), 32, 1024],
    ),
    PublicLaunch(
        FITTING,
        "cuda_calculate_hessians",
        (10,),
        (30,),
        lambda d: [
            d.floats(50, 3, 3),
            d.floats(50, 40),
            d.floats(50, 40),
            d.floats(50, 3, 40),
            d.floats(50, 40),
            50,
            40,
            3,
            3,
            np.array([0, 1, 2], np.int32),
            0,
            d.zeros(50),
            d.zeros(50),
            d.zeros(1, dtype="u8"),
            0,
        ],
    ),
    PublicLaunch(
        FILTER,
        "d_boxfilter_x_global",
        (2,),
        (64,),
        lambda d: [d.floats(128, 60), d.floats(128, 60), 60, 128, 5],
    ),
    PublicLaunch(
        COSINES,
        "CUDAkernelShortDCT",
        (4, 2),
        (8, 4, 4),
        lambda d: [d.ints(64, 128, high=256, dtype="i16"), 128],
    ),
]
