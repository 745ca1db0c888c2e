"""Recordings of speed, made up for tests: nothing in them was measured."""

from __future__ import annotations

from memsim.kernels import catalog
from memsim.kernels.shipped import digest
from memsim.validate.device import Device
from studies.bench.recording import CUBLAS, BenchRecording, Code, Size, Timing
from studies.kernel_ptx import ptx_of

SMALL: Size = (1000, 1000, 1000)  # 2 GFLOP: at 1 ms, 2 TFLOP/s
LARGE: Size = (2000, 2000, 2000)  # 16 GFLOP


def made_up(gpu: str = "Made Up GPU", date: str = "2026-11-20T00:00:00Z") -> BenchRecording:
    """kernel_v4 is half as fast as cuBLAS and guide_v2 a tenth, at both sizes."""
    times = {CUBLAS: (1.0, 1.0, 1.0), "guide_v2": (10.0,), "kernel_v4": (1.9, 2.0, 2.0, 2.0, 2.5)}
    return BenchRecording(
        device=Device(gpu, "9.0", "580.1", "13.0", "14.2.0"),
        date=date,
        code="made up",
        cublas="13.0.2",
        multiprocessors=100,
        max_clock_mhz=1000,
        seed=0,
        kernels={
            name: Code({f"kernels/{name}.cu": "0" * 64}, digest(ptx_of(catalog()[name])))
            for name in times
            if name != CUBLAS
        },
        timings=tuple(
            Timing(
                kernel, size, tuple(scale * time for time in its), (scale,) * 3 if kernel != CUBLAS else ()
            )
            for size, scale in ((SMALL, 1), (LARGE, 8))
            for kernel, its in times.items()
        ),
    )
