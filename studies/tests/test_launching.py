"""Launching on the GPU: shared memory that needs opting in, and what CUDA refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from memsim.errors import MemsimError
from memsim.kernels import catalog
from memsim.validate.run_cubin import STATIC_SHARED_BYTES, refusals
from studies.bench.launching import launcher, make_arrays
from studies.kernel_ptx import ptx_path
from tests.validate.fake_gpu import FakeGpu, Function

XOR = catalog()["transpose_xor"]
LARGE = replace(XOR, shared_bytes=STATIC_SHARED_BYTES + 16)


def test_more_shared_memory_than_usual_is_opted_into(gpu: FakeGpu) -> None:
    plan = LARGE.job((32, 32))
    arrays = make_arrays(gpu.cupy, plan)
    launcher(gpu.cupy, plan, arrays)()
    assert np.array_equal(arrays["C"], arrays["A"].T)
    without = Function(ptx_path(XOR), XOR.entry)
    arguments = (arrays["A"], arrays["C"], 32, 32)
    without(plan.launch.grid, plan.launch.block, arguments, STATIC_SHARED_BYTES)
    with (
        pytest.raises(MemsimError, match="transpose_xor does not run on this GPU: cudaErrorInvalidValue"),
        refusals(gpu.cupy, "transpose_xor", (32, 32)),
    ):
        without(plan.launch.grid, plan.launch.block, arguments, plan.launch.shared_bytes)


def test_arrays_are_those_of_the_plan(gpu: FakeGpu) -> None:
    texld = catalog()["sgemm_128x128x8_texld"]
    arrays = make_arrays(gpu.cupy, texld.job((8, 12, 16), seed=3))
    same = make_arrays(gpu.cupy, catalog()["kernel_v4"].job((8, 12, 16), seed=3))
    assert {name: array.shape for name, array in arrays.items()} == {
        "A": (8, 16),
        "B": (16, 12),
        "C": (8, 12),
    }
    assert all(np.array_equal(arrays[name], same[name]) for name in arrays)
    other = make_arrays(gpu.cupy, texld.job((8, 12, 16), seed=4))
    assert not np.array_equal(arrays["A"], other["A"])
