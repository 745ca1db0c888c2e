"""Padding of dynamic arrays that functions are given, in the kernel's file or in another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from memsim.api import kernel_file
from memsim.argument_types import ArrayArg
from memsim.job import Job
from memsim.launch import Launch
from memsim.suggest import suggest
from memsim.suggest.other_values import at_other_values
from memsim.suggest.prove import Proof, differing_results
from tests.suggest.kernels import analyzed

HELPERS = """
template <typename T> __device__ void filled(T *to, const float *from, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = from[i]; // by all
}
__device__ inline float added(const float *of) {
    float sum = 0;
    for (int i = 0; i < 2; i++) {
        float4 v = *(float4 *)&of[8 * threadIdx.x + 4 * i];
        sum += v.x * v.y + v.z * v.w;
    }
    return sum;
}
__device__ float scaled(float *of, float by) { return added(of) * by; }
"""
KERNEL = """
template <typename T> __global__ void k(const float *in, float *out, int n) {
    extern __shared__ char memory[];
    T *s = (T *)memory;
    filled(s, in, n);
    __syncthreads();
    out[threadIdx.x] = scaled(s, 2.0f);
    filled(out + 256, in, n);
}
void launch(const float *in, float *out, int n) { k<float><<<1, 64, n * sizeof(float)>>>(in, out, n); }
"""


def job_of(folder: Path, helpers: str, kernel: str, *, included: bool = False) -> Job:
    """64 threads with 8 elements each, after `n` was set in."""
    (folder / "helpers.cuh").write_text(helpers)
    (folder / "k.cu").write_text(('#include "helpers.cuh"\n' if included else helpers) + kernel)
    args = [ArrayArg((512,), "f4"), ArrayArg((1024,), "f4"), 512]
    return Job(kernel_file.KernelFile(folder, "k.cu", "k<float>"), Launch((1, 1, 1), (64, 1, 1), 2048), args)


@pytest.mark.parametrize("included", [False, True])
def test_functions_are_given_elements_that_are_apart(included: bool, tmp_path: Path) -> None:
    job = job_of(tmp_path, HELPERS, KERNEL, included=included)
    found = suggest(analyzed(job), job, arrays=["memory"])
    proof = found.proof
    assert isinstance(proof, Proof)
    assert proof.holds and (proof.before, proof.counted) == ({"memory": 48}, {"memory": 32})
    assert proof.edit.file == "k.cu"
    assert included or HELPERS in proof.edit.new
    assert "const padded_elements<T> s = {(T *)memory};" in proof.edit.new
    assert "n * sizeof(float) + (n * sizeof(float)) / 128 * 16>>>" in proof.edit.new
    assert proof.edit.new.count("to[i] = from[i]; // by all") == (1 if included else 2)
    assert differing_results(job, proof.job) == ()
    assert not any(one.is_wrong for one in at_other_values(job, proof))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("scaled(s, 2.0f)", "scaled(s + 0, 2.0f)"),
        ("scaled(s, 2.0f)", "scaled(&s[0], 2.0f)"),
        ("added(of) * by", "added(of) * by + *of"),
        (
            "float4 v = *(float4 *)&of[8 * threadIdx.x + 4 * i]",
            "float4 v = ((float4 *)of)[2 * threadIdx.x + i]",
        ),
        ("added(of) * by", "(by < 9 ? scaled(of, by + 9) : added(of - 0)) * by"),
        ("T *s = (T *)memory;", "T *s = (T *)memory; float *t = (float *)memory; t[0] = 0;"),
    ],
)
def test_where_elements_may_be_accessed_in_another_way_nothing_is_written(
    old: str, new: str, tmp_path: Path
) -> None:
    assert old in HELPERS + KERNEL
    job = job_of(tmp_path, HELPERS.replace(old, new), KERNEL.replace(old, new))
    found = suggest(analyzed(job), job, arrays=["memory"])
    assert all(each.edit is None or "padded_elements" not in each.edit.new for each in found.proposals)
