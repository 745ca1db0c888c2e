"""Points, boxes and rays of the fourth set: docs/cures.md. They were chosen by what they compute, and their
launches written, before `suggest` was run for any of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from studies.cures.launch import Data, PublicLaunch, Source

PCDET = "open-mmlab/OpenPCDet", "8cacccec11db6f59bf6934600c9a175dae254806"
PILLARS = "NVIDIA-AI-IOT/CUDA-PointPillars", "ce7e2bd694c90207435c8751d61cdb38d48a9f4c"
POINTNET = "charlesq34/pointnet2", "42926632a3c33461aebfbee2d829098b30a23aaa"
RCNN = "rbgirshick/py-faster-rcnn", "781a917b378dbfdedb45b6a56189a31982da1b43"
NGP = "ashawkey/torch-ngp", "b6e080468925f0bb44827b4f8f0ed08291dcf8a9"
TRANSFORMER = "POSTECH-CVLab/point-transformer", "10d43ab5210fc93ffa15886f2a4c6460cc308780"
BATCH = "pcdet/ops/pointnet2/pointnet2_batch/src"
STACK = "pcdet/ops/pointnet2/pointnet2_stack/src"
AWARE = Source(*PCDET, "pcdet/ops/roiaware_pool3d/src/roiaware_pool3d_kernel.cu")
OVERLAP = Source(*PCDET, "pcdet/ops/iou3d_nms/src/iou3d_nms_kernel.cu")
NEAREST = Source(*PCDET, f"{BATCH}/interpolate_gpu.cu", (BATCH,))
BALL = Source(*PCDET, f"{BATCH}/ball_query_gpu.cu", (BATCH,))
STACKED = Source(*PCDET, f"{STACK}/interpolate_gpu.cu", (STACK,))
VOXELS = Source(*PILLARS, "src/pointpillar/lidar-voxelization.cu", ("src",), ("-Isrc",))
SCATTER = Source(*PILLARS, "src/pointpillar/pillarscatter-kernel.cu", ("src",), ("-Isrc",))
ANCHORS = Source(*PILLARS, "src/pointpillar/lidar-postprocess.cu", ("src",), ("-Isrc",))
GROUPS = Source(*POINTNET, "tf_ops/grouping/tf_grouping_g.cu")
MARCHING = Source(*NGP, "raymarching/src/raymarching.cu")
FREQUENCIES = Source(*NGP, "freqencoder/src/freqencoder.cu")
NEIGHBOURS = Source(*TRANSFORMER, "lib/pointops/src/knnquery/knnquery_cuda_kernel.cu", ("lib/pointops/src",))


def solid(d: Data, *shape: int) -> np.ndarray:
    """Boxes of seven numbers: centre, size and heading."""
    centre, size = d.floats(*shape, 3, low=0.0, high=60.0), d.floats(*shape, 3, low=2.0, high=8.0)
    return np.concatenate([centre, size, d.floats(*shape, 1, low=-3.0, high=3.0)], -1)


def flat(d: Data, count: int) -> np.ndarray:
    """Boxes of five numbers: two corners and a score."""
    corner, size = d.floats(count, 2, low=0.0, high=60.0), d.floats(count, 2, low=2.0, high=8.0)
    return np.concatenate([corner, corner + size, d.floats(count, 1, low=0.0)], 1)


def pillars(d: Data) -> list[Any]:
    """200 pillars of 64 features, in a plane of 32 by 16, each in a place of its own."""
    places = np.random.default_rng(d.ints(1, high=1 << 30)[0]).permutation(512)[:200]
    coords = np.stack([places * 0, places * 0, places // 32, places % 32], 1).astype(np.uint32)
    return [coords, np.array([200], np.uint32), 32, 16]


def rays(d: Data) -> list[Any]:
    """200 rays of eleven points each."""
    each = np.arange(200, dtype=np.int32)
    points = np.stack([each, each * 11, np.full(200, 11, np.int32)], 1)
    density, colour = d.floats(2200, low=0.0, high=0.1), d.floats(2200, 3, low=0.0)
    steps = d.floats(2200, 2, low=0.01, high=0.1)
    return [density, colour, steps, points, 2200, 200, 1e-4, d.floats(200), d.floats(200), d.floats(200, 3)]


def anchors(d: Data) -> list[Any]:
    """64 places of six anchors, of which all are taken."""
    boxes, sizes = d.floats(64, 6, 7), d.floats(6, 4, low=1.0, high=4.0)
    ways, heights = d.floats(64, 6, 2), d.floats(3)
    found = [d.floats(400, 9), d.floats(400), d.zeros(1)]
    return [
        d.floats(64, 6, 3),
        boxes,
        ways,
        sizes,
        heights,
        *found,
        0.0,
        69.1,
        -39.7,
        39.7,
        8,
        8,
        6,
        3,
        7,
        -1.0,
        0.78,
    ]


LAUNCHES = [
    PublicLaunch(
        NEAREST,
        "three_nn_kernel_fast",
        (2, 2),
        (256,),
        lambda d: [
            2,
            300,
            40,
            d.floats(2, 300, 3),
            d.floats(2, 40, 3),
            d.floats(2, 300, 3),
            d.zeros(2, 300, 3),
        ],
    ),
    PublicLaunch(
        NEAREST,
        "three_interpolate_kernel_fast",
        (2, 4, 2),
        (256,),
        lambda d: [
            2,
            4,
            50,
            300,
            d.floats(2, 4, 50),
            d.ints(2, 300, 3, high=50),
            d.floats(2, 300, 3),
            d.floats(2, 4, 300),
        ],
    ),
    PublicLaunch(
        STACKED,
        "three_interpolate_kernel_stack",
        (2, 8),
        (256,),
        lambda d: [300, 8, d.floats(50, 8), d.ints(300, 3, high=50), d.floats(300, 3), d.floats(300, 8)],
    ),
    PublicLaunch(
        BALL,
        "ball_query_kernel_fast",
        (2, 2),
        (256,),
        lambda d: [2, 60, 300, 0.5, 8, d.floats(2, 300, 3), d.floats(2, 60, 3), d.zeros(2, 300, 8)],
    ),
    PublicLaunch(
        OVERLAP,
        "paired_boxes_overlap_kernel",
        (7,),
        (16,),
        lambda d: [100, solid(d, 100), 100, solid(d, 100), d.floats(100)],
    ),
    PublicLaunch(
        OVERLAP,
        "nms_normal_kernel",
        (2, 2),
        (64,),
        lambda d: [100, 0.3, solid(d, 100), d.zeros(100, 2, dtype="u64")],
    ),
    PublicLaunch(
        AWARE,
        "generate_pts_mask_for_box3d",
        (2, 4),
        (256,),
        lambda d: [4, 300, 12, 12, 12, solid(d, 4), d.floats(300, 3, low=0.0, high=60.0), d.zeros(4, 300)],
    ),
    PublicLaunch(
        AWARE,
        "points_in_boxes_kernel",
        (2, 2),
        (256,),
        lambda d: [2, 10, 300, solid(d, 2, 10), d.floats(2, 300, 3, low=0.0, high=60.0), d.zeros(2, 300)],
    ),
    PublicLaunch(
        AWARE,
        "roiaware_maxpool3d",
        (1, 8, 2),
        (256,),
        lambda d: [
            2,
            50,
            8,
            4,
            6,
            6,
            6,
            d.floats(50, 8),
            np.tile(np.array([2, 7, 30, 0], np.int32), (432, 1)),
            d.floats(2, 216, 8),
            d.zeros(2, 216, 8),
        ],
    ),
    PublicLaunch(
        VOXELS,
        "generateFeatures_kernel",
        (20,),
        (128,),
        lambda d: [
            d.floats(80, 32, 4),
            np.full(80, 20, np.uint32),
            d.ints(80, 4, high=30, dtype="u32"),
            np.array([80], np.uint32),
            0.16,
            0.16,
            4.0,
            0.0,
            -39.7,
            -3.0,
            d.halves(80, 32, 10),
        ],
    ),
    PublicLaunch(
        SCATTER,
        "pillarScatterHalfkernel",
        (8,),
        (64,),
        lambda d: [d.halves(200, 64), *pillars(d), d.halves(512, 64)],
    ),
    PublicLaunch(
        SCATTER,
        "pillarScatterFloatkernel",
        (8,),
        (64,),
        lambda d: [d.floats(200, 64), *pillars(d), d.floats(64, 512)],
    ),
    PublicLaunch(ANCHORS, "postprocess_kernal", (64,), (6,), anchors),
    PublicLaunch(
        Source(*RCNN, "lib/nms/nms_kernel.cu", ("lib/nms",)),
        "nms_kernel",
        (2, 2),
        (64,),
        lambda d: [100, 0.3, flat(d, 100), d.zeros(100, 2, dtype="u64")],
    ),
    PublicLaunch(
        MARCHING,
        "kernel_near_far_from_aabb<float>",
        (3,),
        (128,),
        lambda d: [
            d.floats(300, 3),
            d.floats(300, 3),
            np.array([-1, -1, -1, 1, 1, 1], np.float32),
            300,
            0.05,
            d.floats(300),
            d.floats(300),
        ],
    ),
    PublicLaunch(
        MARCHING,
        "kernel_sph_from_ray<float>",
        (3,),
        (128,),
        lambda d: [d.floats(300, 3), d.floats(300, 3), 4.0, 300, d.floats(300, 2)],
    ),
    PublicLaunch(
        MARCHING, "kernel_morton3D", (3,), (128,), lambda d: [d.ints(300, 3, high=128), 300, d.zeros(300)]
    ),
    PublicLaunch(
        MARCHING,
        "kernel_morton3D_invert",
        (3,),
        (128,),
        lambda d: [d.ints(300, high=1 << 21), 300, d.zeros(300, 3)],
    ),
    PublicLaunch(
        MARCHING,
        "kernel_packbits<float>",
        (3,),
        (128,),
        lambda d: [d.floats(300, 8), 300, 0.1, d.zeros(300, dtype="u8")],
    ),
    PublicLaunch(MARCHING, "kernel_composite_rays_train_forward<float>", (2,), (128,), rays),
    PublicLaunch(
        FREQUENCIES,
        "kernel_freq_backward",
        (3,),
        (128,),
        lambda d: [d.floats(100, 39), d.floats(100, 39), 100, 3, 6, 39, d.floats(100, 3)],
    ),
    PublicLaunch(
        GROUPS,
        "query_ball_point_gpu",
        (2,),
        (256,),
        lambda d: [
            2,
            40,
            300,
            0.6,
            8,
            d.floats(2, 40, 3),
            d.floats(2, 300, 3),
            d.zeros(2, 300, 8),
            d.zeros(2, 300),
        ],
    ),
    PublicLaunch(
        GROUPS,
        "group_point_gpu",
        (2,),
        (256,),
        lambda d: [
            2,
            50,
            16,
            100,
            8,
            d.floats(2, 50, 16),
            d.ints(2, 100, 8, high=50),
            d.floats(2, 100, 8, 16),
        ],
    ),
    PublicLaunch(
        GROUPS,
        "selection_sort_gpu",
        (2,),
        (256,),
        lambda d: [2, 40, 100, 4, d.floats(2, 100, 40), d.zeros(2, 100, 40), d.floats(2, 100, 40)],
    ),
    PublicLaunch(
        NEIGHBOURS,
        "knnquery_cuda_kernel",
        (2,),
        (256,),
        lambda d: [
            300,
            8,
            d.floats(60, 3),
            d.floats(300, 3),
            np.array([60], np.int32),
            np.array([300], np.int32),
            d.zeros(300, 8),
            d.floats(300, 8),
        ],
    ),
]
