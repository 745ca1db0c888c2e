"""Recordings to compare with, and a GPU that is none."""

from __future__ import annotations

from functools import cache

from memsim.data import data_folder
from memsim.kernels import catalog
from memsim.validate.recording import Recording
from memsim.validate.recordings import newest_recording
from tests.validate.fake_gpu import any_gpu, gpu

__all__ = ["any_gpu", "gpu"]  # fixtures

TRACES = data_folder("traces")
H100 = "nvidia-h100-80gb-hbm3"
RAGGED = {"kernel_v4": (331, 269, 147), "sgemm_128x256x8": (331, 269, 147), "transpose_xor": (331, 269)}


@cache
def recorded(kernel: str, ragged: bool = False, gpu: str = H100) -> Recording:
    """The newest recording of a kernel, at its default or its ragged size."""
    spec = catalog()[kernel].pick()
    return newest_recording(TRACES, spec, RAGGED[kernel] if ragged else tuple(spec.sizes().values()), gpu)
