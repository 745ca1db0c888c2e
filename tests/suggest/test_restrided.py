"""Rows further apart, of shared arrays whose places and strides functions are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from memsim.argument_types import ArrayArg
from memsim.job import Job
from memsim.suggest import suggest
from memsim.suggest.restrided import restrided_rows
from memsim.suggest.threads import Remapped
from tests.suggest.kernels import analyzed, launched

FUNCTIONS = """
__device__ void exchanged(float (&a)[8], float *to, int store, const float *from, int load) {
    for (int i = 0; i < 8; i++) to[i * store] = a[i];
    __syncthreads();
    for (int i = 0; i < 8; i++) a[i] = from[i * load];
}
"""
KERNEL = """
__global__ void k(const float *in, float *out) {
    __shared__ float s[8 * 72];
    float a[8];
    int high = threadIdx.x >> 3, low = threadIdx.x & 7;
    for (int i = 0; i < 8; i++) a[i] = in[64 * i + threadIdx.x];
    exchanged(a, &s[high * 8 + low], 66, &s[low*66 + high], 8);
    for (int i = 0; i < 8; i++) out[64 * i + threadIdx.x] = a[i];
}
"""


def job_of(folder: Path, kernel: str) -> Job:
    """8 elements of each of 64 threads; the functions are in another file."""
    (folder / "functions.cuh").write_text(FUNCTIONS)
    args = [ArrayArg((512,), "f4"), ArrayArg((512,), "f4")]
    return launched(folder, f'#include "functions.cuh"\n{kernel}', args, (64,))


def test_a_stride_is_larger_wherever_it_is_said(tmp_path: Path) -> None:
    job = job_of(tmp_path, KERNEL)
    found = suggest(analyzed(job), job)
    assert isinstance(found.taken, Remapped)
    assert found.taken.wavefronts == (48, 32) and found.taken.edit.tokens == 0
    assert (
        found.proof is None and "passes on an address" in found.unproven
    )  # padding by another rule is wrong
    (line,) = found.taken.edit.lines
    assert line.new.strip() == "exchanged(a, &s[high * 8 + low], 68, &s[low*68 + high], 8);"


def test_an_array_as_long_as_its_rows_grows_with_them(tmp_path: Path) -> None:
    job = job_of(tmp_path, KERNEL.replace("8 * 72", "8 * 66"))
    (done,) = restrided_rows(job, analyzed(job), ["s"])
    assert "float s[8 * 68];" in done.edit.new and done.wavefronts == (48, 32)


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("8 * 72", "528"),  # no room
        ("low*66", "low*(60 + 6)"),  # of which the number is one part
        ("66, &s[low*66", "68, &s[low*68"),
        ("exchanged(a, &s[high * 8 + low], 66, &s[low*66 + high], 8)", "a[0] += in[0] * 66"),
    ],
)
def test_where_the_numbers_are_no_strides_nothing_is_written(old: str, new: str, tmp_path: Path) -> None:
    job = job_of(tmp_path, KERNEL.replace(old, new))
    assert restrided_rows(job, analyzed(job), ["s"]) == ()
