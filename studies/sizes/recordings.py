"""What was recorded of `sgemm`, and where it was slower than cuBLAS."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from memsim.data import data_folder
from studies.bench.recording import CUBLAS, BenchRecording, Size, Timing, newest_of_each_gpu
from studies.bench.table import speed_of
from studies.sizes import FOLDER


def recordings(traces: Path | None = None) -> list[BenchRecording]:
    """The newest of each GPU, by the GPU's name."""
    return newest_of_each_gpu(traces or data_folder("traces"), FOLDER)


def timings_at(recording: BenchRecording, sizes: Collection[Size]) -> list[Timing]:
    """Those of what `sgemm` launched at these sizes, in the order of the recording."""
    return [timing for timing in recording.timings if timing.kernel != CUBLAS and timing.size in sizes]


def slower(recording: BenchRecording, sizes: Collection[Size]) -> list[Timing]:
    """Those that took longer than cuBLAS, by medians."""
    return [timing for timing in timings_at(recording, sizes) if speed_of(timing).of_cublas < 1.0]
