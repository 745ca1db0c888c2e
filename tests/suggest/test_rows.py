"""A row for each thread, moved 16 bytes at a time: what is written, its results, and what is left alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memsim.api.kernel_file import KernelFile
from memsim.job import Job
from memsim.launch import Launch
from memsim.suggest.other_values import SAME, at_other_values
from memsim.suggest.prove import differing_results
from memsim.suggest.rows import NAME, rows_of_threads
from memsim.suggest.threads import Remapped
from tests.suggest.kernels import analyzed

ROWS, LONG = 256, 64
SUMS = """
extern "C" __global__ void k(const float *__restrict__ in, float *__restrict__ out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int j = 0; j < m; ++j) BODY
    out[i] = sum;
}
"""


def cures(
    folder: Path, body: str, text: str = SUMS, kind: type = np.float32
) -> tuple[Job, tuple[Remapped, ...]]:
    """What is written for a kernel whose loop along a row has a body."""
    (folder / "k.cu").write_text(text.replace("BODY", body))
    args = [np.arange(2 * ROWS * LONG).astype(kind), np.zeros(2 * ROWS * LONG, np.float32), ROWS, LONG]
    job = Job(KernelFile(folder, "k.cu", "k"), Launch((1, 1, 1), (256, 1, 1)), args)
    return job, rows_of_threads(job, analyzed(job))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "reads", "writes"),
    [
        ("sum += in[i * m + j];", 1, 0),
        ("{ const int at = m * i + j; sum += in[at] * sum; }", 1, 0),
        ("{ sum += in[i * m + j] * in[i * m + j]; }", 1, 0),
        ("{ float x = in[i * m + j] + 1; out[i * m + j] = x; if (x < 0.f) break; }", 1, 1),
    ],
)
def test_a_loop_along_a_row(tmp_path: Path, body: str, reads: int, writes: int) -> None:
    job, (cure,) = cures(tmp_path, body)
    assert cure.name == NAME
    assert (cure.edit.new.count("row_along(in);"), cure.edit.new.count(".put(&")) == (reads, writes)
    before, after = cure.sectors
    assert after < before / 2
    assert differing_results(job, cure.job) == ()
    outcomes = [one for one in at_other_values(job, cure) if one.name == "m"]
    assert outcomes
    assert {one.outcome for one in outcomes} <= {SAME, ""}


@pytest.mark.slow
def test_rows_of_half_words(tmp_path: Path) -> None:
    """Eight of them are 16 bytes, held in four registers."""
    text = SUMS.replace("const float *__restrict__ in", "const unsigned short *__restrict__ in")
    job, (cure,) = cures(tmp_path, "sum += in[i * m + j];", text, np.uint16)
    before, after = cure.sectors
    assert after < before / 6
    assert differing_results(job, cure.job) == ()


@pytest.mark.slow
def test_a_loop_keeps_its_pragma(tmp_path: Path) -> None:
    """Nothing stands between it and the loop; an array in registers stays there."""
    text = SUMS.replace("for (int j", "float own[4] = {1, 2, 3, 4};\n#pragma unroll 4\n    for (int j")
    job, (cure,) = cures(tmp_path, "sum += in[i * m + j] * own[j & 3];", text)
    assert "#pragma unroll 4\n    for (int j" in cure.edit.new
    assert cure.edit.new.count("row_along(") == 2  # its definition, and one row
    assert differing_results(job, cure.job) == ()


@pytest.mark.some(1)
@pytest.mark.parametrize("long", [19, 3])
def test_rows_that_are_not_aligned(tmp_path: Path, long: int) -> None:
    """The edit for 64 elements computes the same with rows of any other length."""
    _, (cure,) = cures(tmp_path, "out[i * m + j] = in[i * m + j] + 1;")
    (tmp_path / "k.cu").write_text(cure.edit.new)
    _, text = cure.edit, cure.edit.text
    args = [np.arange(ROWS * long, dtype=np.float32), np.zeros(ROWS * long, np.float32), ROWS, long]
    edited = Job(KernelFile(tmp_path, "k.cu", "k"), Launch((1, 1, 1), (256, 1, 1)), args)
    (tmp_path / "old.cu").write_text(text)
    old = Job(KernelFile(tmp_path, "old.cu", "k"), edited.launch, args)
    assert differing_results(old, edited) == ()


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "body",
    [
        "sum += in[j * n + i];",  # neighbours are side by side already
        "sum += in[i * m + 2 * j];",
        "if (j % 3) sum += in[i * m + j];",
        "{ if (sum > 9.f) continue; sum += in[i * m + j]; }",
        "{ out[i * m + j] = out[i * m + j + 1] + 1; }",  # what is stored is read by others of the loop
        "{ out[i * m + j] += 1; }",
        "{ const volatile float *now = in; sum += now[i * m + j]; }",
        "{ sum += in[i * m + j]; __syncthreads(); }",
    ],
)
def test_what_is_left_alone(tmp_path: Path, body: str) -> None:
    assert cures(tmp_path, body)[1] == ()
