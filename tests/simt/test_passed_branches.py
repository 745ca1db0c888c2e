"""Branches that decide no access are passed by; all counts are those of a launch that executes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import memsim
from memsim.analysis import analyze_trace
from memsim.api.running import blocks_of, job_of, trace_with
from memsim.job import Job
from memsim.kernel import Kernel
from memsim.kernels import catalog
from memsim.model.alike import SameCost
from memsim.simt.launch_code import _dataflow_of
from memsim.trace.record import Recorder
from memsim.trace.trace import Trace
from tests.benchmarks.irregular import MAKERS, SOURCE, case
from tests.few import KERNELS, few
from tests.simt.cuda import machine_kernel

KERNEL = """
__device__ __noinline__ float twice(float x) {{ return x < 1.f ? 2.f * x : x / 3.f; }}
extern "C" __global__ void k(const float *a, const float *b, float *o, int n) {{
    __shared__ float s[32];
    int i = threadIdx.x;
    s[i % 32] = a[i];
    __syncthreads();
    float t = 0, y = 0;
    for (int j = 0; j < 32; ++j) t += s[j];
    {text}
}}"""
NORMAL = np.linspace(0.5, 2.0, 64).astype(np.float32)
#: Denormal, infinite, NaN, zero and negative values take the slow ways.
ODD = np.tile(np.array([1e-39, np.inf, np.nan, 0.0, -1.0, 3e38, 1e-45, 1.0], np.float32), 8)

PASSED = {
    "division": "o[i] = a[i] / b[i];",
    "root": "o[i] = sqrtf(a[i]);",
    "reciprocal": "o[i] = 1.0f / a[i];",
    "exponential": "o[i] = expf(a[i]) / (1 + expf(b[i]));",
    "power": "o[i] = powf(a[i], b[i]);",
    "of the block": "float q = 1.0f / sqrtf(t / n + 1e-5f); o[i] = b[i] * q;",
    "double": "double x = a[i], z = b[i]; o[i] = x / z + sqrt(x);",
    "a small choice": "if (a[i] < 1.f) y = __expf(b[i]) * __sinf(a[i]) * __cosf(b[i]);"
    "else y = __logf(b[i]) * __sinf(b[i]); o[i] = y;",
}
CHOSEN = {
    "an address": "o[(int)(a[i] / b[i]) & 63] = 1;",
    "a shared address": "s[i % 32] = sqrtf(a[i]); __syncthreads(); o[(int)s[31 - i % 32] & 63] = 1;",
    "an access": "if (a[i] / b[i] > 1.f) o[i] = 1;",
    "a loop": "int m = 0;\n#pragma unroll 1\n for (y = a[i]; y < 9.f && m < 20; ++m) y *= 1.5f; o[i] = y;",
    "much": "if (a[i] < 1.f) { REPEAT } o[i] = y;".replace("REPEAT", "y = __sinf(y) * a[i] + b[i];" * 20),
    "a barrier": "if (a[0] < 1.f) __syncthreads(); o[i] = 1;",
}


def both(kernel: Kernel, arguments: Sequence[Any], grid: int = 2) -> tuple[Trace, Trace]:
    """The trace, and that of a launch in which every branch is executed."""
    return both_of(job_of(kernel, grid, 64, arguments))


def both_of(job: Job) -> tuple[Trace, Trace]:
    """The traces of a job."""
    recorder, blocks = partial(Recorder, SameCost(job.arch)), blocks_of(job)
    return trace_with(job, recorder(), blocks), trace_with(job, recorder(), blocks, every_branch=True)


def assert_equal_counts(passed: Trace, exact: Trace) -> None:
    """All but those of instructions, which are not more. Where lanes that part at a branch may meet early,
    it is not certain what is executed together, unless the branch is passed by.
    """
    assert 0 < passed.executed.sum() <= exact.executed.sum()
    one, other = (analyze_trace(replace(found, executed=found.executed[:0])) for found in (passed, exact))
    assert one.sites == other.sites
    assert {*passed.uncertain} <= {*exact.uncertain}
    if not exact.uncertain:
        assert one.totals == other.totals and one.undecided == other.undecided


def arguments_of(values: np.ndarray) -> list[Any]:
    return [values, values[::-1].copy(), np.zeros(64, np.float32), 64]


@pytest.mark.some(1)
@pytest.mark.parametrize("name", PASSED)
def test_a_branch_that_decides_no_access_is_passed_by(name: str) -> None:
    kernel = machine_kernel(KERNEL.format(text=PASSED[name]))
    for values in (NORMAL, ODD):
        passed, exact = both(kernel, arguments_of(values))
        assert_equal_counts(passed, exact)
        assert any("behind branches" in note for note in passed.notes)
        assert not exact.notes
        if name in ("power", "a small choice"):
            assert (passed.executed <= exact.executed).all()
        elif values is NORMAL:  # all warps take the shortest way
            assert (passed.executed == exact.executed).all()
    dataflow = _dataflow_of(kernel.executable)
    every = dataflow.needed(every_branch=True)
    few = dataflow.needed()
    assert dataflow.passed and few < every


@pytest.mark.some(1)
@pytest.mark.parametrize("name", CHOSEN)
def test_a_branch_that_decides_more_is_executed(name: str) -> None:
    kernel = machine_kernel(KERNEL.format(text=CHOSEN[name]))
    for values in (NORMAL, ODD):
        passed, exact = both(kernel, arguments_of(values))
        assert_equal_counts(passed, exact)
        assert (passed.executed == exact.executed).all()
        assert not passed.notes


def test_a_slow_way_that_another_branch_needs_is_executed() -> None:
    """Two divisions share the compiler's function: one decides an address, the other none."""
    text = "o[64 + i] = b[i] / a[i]; o[(int)(a[i] / b[i] * 1e3f) & 63] = 1;"
    kernel = machine_kernel(KERNEL.format(text=text))
    small = np.float32(2.0) ** -np.arange(96, 160).astype(np.float32)  # so that the slow way is taken
    arguments = [small, small[::-1].copy(), np.zeros(128, np.float32), 64]
    passed, exact = both(kernel, arguments)
    assert_equal_counts(passed, exact)
    assert len(passed.notes) == 1
    assert (passed.executed < exact.executed).any()


@pytest.mark.some(2)
@pytest.mark.parametrize("name", few(list(catalog()), KERNELS[:2]))
def test_kernels_of_the_catalogue(name: str) -> None:
    spec = catalog()[name]
    job = replace(spec.job([256] * len(spec.family.sizes)), blocks=16)
    assert_equal_counts(*both_of(job))


@pytest.mark.some(1)
@pytest.mark.parametrize("name", few(list(MAKERS), ("attention",)))
def test_irregular_launches(name: str) -> None:
    made = case(name, 3000, seed=7)
    job = job_of(memsim.load(SOURCE)[name], made.grid, made.block, made.arguments)
    assert_equal_counts(*both_of(job))
