"""Launches with faults for `tools/time_cures.py`: of the catalogue, and of faulty_kernels.cu."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import memsim
from memsim import ArrayArg
from memsim.api.running import job_of
from memsim.job import Job
from memsim.kernels import catalog

#: Those of the catalogue that have bank conflicts or many needless sectors.
OF_CATALOG = (
    "ada_decoupled guide_v4 guide_v5 guide_v6 guide_v10 kernel_v1 kernel_v3 kernel_v4_colmajor"
    " opt_2_naive_swapped opt_4_tile2d opt_4_tile2d_register opt_5_float4 opt_6_double_buffer"
    " opt_7_no_bank_conflict permuted_write transpose_naive"
).split()


def launches() -> Iterator[tuple[str, str, Job]]:
    """Whose it is, the kernel's name, and the job."""
    for name in OF_CATALOG:
        yield "memsim's catalogue", name, catalog()[name].job()
    module = memsim.load(Path(__file__).with_suffix(".cu"))
    count, side = 1 << 20, 1024
    pixels, square = ArrayArg((3 * count,), "u8", seed=1), ArrayArg((side, side), seed=1)
    for name, grid, block, args in (
        ("move_particles", count // 256, 256, [ArrayArg((count, 4), seed=1), 0.1, count]),
        ("grey", count // 256, 256, [pixels, ArrayArg((count,), "u8"), count]),
        ("row_sums", 64, 256, [ArrayArg((64 * 256, 64), seed=1), ArrayArg((64 * 256,)), 64]),
        ("add_swapped", (side // 32, side // 8), (32, 8), [square, square, ArrayArg((side, side)), side]),
        ("interleaved_sum", count // 256, 256, [ArrayArg((count,), seed=1), ArrayArg((count // 256,))]),
        ("smooth_rows", count // 1024, 32, [ArrayArg((count,), seed=1), ArrayArg((count,))]),
        (
            "private_bins",
            count // 4096,
            64,
            [ArrayArg((count,), "u8", seed=1), ArrayArg((count // 128,), "i32"), 64],
        ),
        (
            "tiled_product",
            (32, 32),
            (16, 16),
            [ArrayArg((512, 512), seed=1), ArrayArg((512, 512), seed=2), ArrayArg((512, 512)), 512],
        ),
    ):
        yield "textbooks' faults", name, job_of(module[name], grid, block, args)
