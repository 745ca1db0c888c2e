"""Recordings to compare with, and a GPU that is none."""

from __future__ import annotations

from functools import cache

from memsim.data import data_folder
from memsim.kernels import catalog
from memsim.validate.code_recording import CodeRecording, newest_code, size_of
from tests.validate.fake_gpu import any_gpu, gpu

__all__ = ["any_gpu", "gpu"]  # fixtures

TRACES = data_folder("traces")
H100, H200 = "nvidia-h100-80gb-hbm3", "nvidia-h200"


@cache
def recorded(kernel: str, size: str | None = None, gpu: str = H200) -> CodeRecording:
    """The newest recording of a kernel; sizes as in `size_of`."""
    spec = catalog()[kernel]
    return newest_code(TRACES, spec, size_of(spec, size), gpu)
