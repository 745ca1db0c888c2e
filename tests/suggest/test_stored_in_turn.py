"""Elements that a thread stores in turn: what tensor cores leave, written by whole sectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memsim.api.kernel_file import KernelFile
from memsim.job import Job
from memsim.launch import Launch
from memsim.suggest.other_values import SAME, at_other_values
from memsim.suggest.prove import differing_results
from memsim.suggest.stored_in_turn import NAME, stored_in_turn
from tests.suggest.kernels import analyzed, launched

#: Each warp has 16 rows of 16 * COUNT / 2 halves, as `mma.m16n8k16` leaves them.
TEXT = """
#include <cuda_fp16.h>
const int COUNT = 4;
__device__ void fill(float *part, const float *in) {
    for (int i = 0; i < 4 * COUNT; ++i) part[i] = in[i * blockDim.x + threadIdx.x];
}
__device__ void store(half *to, float *part, int n) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < 2; ++r)
        for (int c = 0; c < COUNT; ++c) {
            int row = threadIdx.x / 32 * 16 + r * 8 + lane / 4, column = c * 8 + lane % 4 * 2;
            BODY
        }
}
extern "C" __global__ void k(half *out, const float *in, int n) {
    if (n < 8 * COUNT) return;
    float part[4 * COUNT];
    fill(part, in);
    store(out, part, n);
}
"""
PAIR = (
    "to[row * n + column] = (half)part[(r * COUNT + c) * 2];\n"
    "            to[row * n + column + 1] = (half)part[(r * COUNT + c) * 2 + 1];"
)
VECTOR = (
    "*(half2 *)&to[row * n + column] ="
    " __floats2half2_rn(part[(r * COUNT + c) * 2], part[(r * COUNT + c) * 2 + 1]);"
)


def job_of(folder: Path, body: str, count: int = 4, columns: int = 32, threads: int = 64) -> Job:
    text = TEXT.replace("BODY", body).replace("COUNT = 4", f"COUNT = {count}")
    args = [
        np.zeros((threads // 2 + 16, columns), np.float16),
        np.random.default_rng(5).random((threads, 4 * count), np.float32),
        columns,
    ]
    return launched(folder, text, args, (threads,))


@pytest.mark.parametrize("body", [PAIR, VECTOR])
def test_each_request_fills_whole_sectors(tmp_path: Path, body: str) -> None:
    job = job_of(tmp_path, body)
    (cure,) = stored_in_turn(job, analyzed(job))
    assert cure.name == NAME
    stores = [site for site in cure.analysis.sites if site.array == "out"]
    assert sum(site.sectors for site in stores) == 64 * 16 * 2 // 32
    assert not any(site.needless_sectors for site in stores)
    assert differing_results(job, cure.job) == ()
    outcomes = [one.outcome for one in at_other_values(job, cure)]
    assert outcomes.count(SAME) >= 3
    assert set(outcomes) <= {SAME, ""}  # for more columns there is no room


def test_an_odd_number_of_iterations_and_rows_of_any_alignment(tmp_path: Path) -> None:
    """What is left over is stored alone, and what is not aligned element by element."""
    job = job_of(tmp_path, PAIR, count=3)
    (cure,) = stored_in_turn(job, analyzed(job))
    assert differing_results(job, cure.job) == ()
    odd = job_of(tmp_path, PAIR, columns=33)
    (tmp_path / "new.cu").write_text(cure.edit.new.replace("COUNT = 3", "COUNT = 4"))
    changed = Job(KernelFile(tmp_path, "new.cu", "k"), odd.launch, odd.args)
    assert differing_results(odd, changed) == ()


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "body",
    [
        f"if (row < n) {{ {PAIR} }}",  # not by all lanes
        f"{PAIR} __syncthreads();",  # others may read it
        f"if (row == n) break; {PAIR}",
        f"{PAIR} part[0] += (float)to[column];",  # read meanwhile
        f"{PAIR} to[(row + 1) * n + column] = (half)1.f;",  # in which order?
        "to[row * n + column] = (half)part[(r * COUNT + c) * 2];",  # of 2 bytes
        PAIR.replace("to[", "out[").replace("(half)part", "out[0] + (half)part").replace("out[", "to["),
    ],
)
def test_what_may_not_be_stored_later_is_left_alone(tmp_path: Path, body: str) -> None:
    job = job_of(tmp_path, body)
    assert stored_in_turn(job, analyzed(job)) == ()


def test_a_function_that_may_be_given_one_array_twice_is_left_alone(tmp_path: Path) -> None:
    text = TEXT.replace("BODY", PAIR).replace("(half *to, float *part", "(half *to, half *part")
    text = text.replace("float part[4 * COUNT];\n    fill(part, in);\n", "").replace("(half)part", "part")
    (tmp_path / "k.cu").write_text(text.replace("store(out, part, n)", "store(out, out + 99, n)"))
    job = Job(
        KernelFile(tmp_path, "k.cu", "k"),
        Launch((1, 1, 1), (64, 1, 1)),
        [np.zeros((99, 32), np.float16), np.zeros(9, np.float32), 32],
    )
    assert stored_in_turn(job, analyzed(job)) == ()
