"""Recordings to compare with, and the rule for tests that need a GPU."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from memsim.data import data_folder
from memsim.kernels import catalog
from memsim.validate.recording import Recording
from memsim.validate.shelf import newest_recording

TRACES = data_folder("traces")
H100 = "nvidia-h100-80gb-hbm3"
RAGGED = {"kernel_v4": (331, 269, 147), "sgemm_128x256x8": (331, 269, 147), "transpose_xor": (331, 269)}


@cache
def recorded(kernel: str, ragged: bool = False, gpu: str = H100) -> Recording:
    """The newest recording of a kernel, at its default or its ragged size."""
    spec = catalog()[kernel].pick()
    return newest_recording(TRACES, spec, RAGGED[kernel] if ragged else tuple(spec.sizes().values()), gpu)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`python -m pytest -m gpu` runs the tests that need one; without that they are skipped."""
    if "gpu" in (config.option.markexpr or ""):
        return
    for item in items:
        if item.get_closest_marker("gpu") and Path(item.path).is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.skip(reason="needs a GPU: python -m pytest -m gpu"))
