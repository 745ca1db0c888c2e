"""Launches with faults for `tools/time_cures.py`: of the catalogue, and of faulty_kernels.cu."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from memsim import ArrayArg
from memsim.api.kernel_file import KernelFile
from memsim.job import Job
from memsim.kernels import catalog
from memsim.launch import Launch, dim3

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
    file = Path(__file__).with_suffix(".cu")
    count, side = 1 << 20, 1024
    data, out = ArrayArg((count,), seed=1), ArrayArg((count,))
    square, small = ArrayArg((side, side), seed=1), ArrayArg((512, 512), seed=1)
    byte, bins, sums = (
        ArrayArg((count,), "u8", seed=1),
        ArrayArg((count // 128,), "i32"),
        ArrayArg((64 * 256,)),
    )
    made: dict[str, tuple[tuple[int, ...], tuple[int, ...], list[object]]] = {
        "move_particles": ((count // 256,), (256,), [ArrayArg((count, 4), seed=1), 0.1, count]),
        "grey": ((count // 256,), (256,), [ArrayArg((3 * count,), "u8", seed=1), byte, count]),
        "row_sums": ((64,), (256,), [ArrayArg((64 * 256, 64), seed=1), sums, 64]),
        "add_swapped": ((side // 32, side // 8), (32, 8), [square, square, square, side]),
        "interleaved_sum": ((count // 256,), (256,), [data, out]),
        "smooth_rows": ((count // 1024,), (32,), [data, out]),
        "private_bins": ((count // 4096,), (64,), [byte, bins, 64]),
        "tiled_product": ((32, 32), (16, 16), [small, small, small, 512]),
    }
    for name, (grid, block, args) in made.items():
        launch = Launch(dim3(grid), dim3(block))
        yield "textbooks' faults", name, Job(KernelFile(file.parent, file.name, name), launch, args)
