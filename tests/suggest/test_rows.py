"""A row for each thread, moved in pieces: what is written, its results, and what is left alone."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from memsim.api.kernel_file import KernelFile
from memsim.job import Job
from memsim.launch import Launch
from memsim.suggest.other_values import SAME, at_other_values
from memsim.suggest.prove import differing_results
from memsim.suggest.rows import BY_WARPS, IN_PAIRS, rows_of_threads
from memsim.suggest.threads import Remapped
from tests.suggest.kernels import analyzed, launched, needless

ROWS, LONG = 256, 64
OPENED = re.compile(r"= row_along(?:<[\d, ]+>)?\(in\);")
SUMS = """
extern "C" __global__ void k(const float *__restrict__ in, float *__restrict__ out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int j = 0; j < m; ++j) BODY
    out[i] = sum;
}
"""


#: A row of 50 bytes for each thread, walked along by a function, which another kernel gives its own array.
IN_FUNCTION = """
__device__ int weight(const unsigned char text[], int length, int *digits) {
    int sum = 0, at;
    for (at = 0; at < length; ++at) {
        digits[sum & 3] += text[at];
        sum = sum * 3 + text[at];
    }
    return sum;
}
extern "C" __global__ void k(const unsigned char *in, int *out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n - 7) return;
    int digits[4] = {};
    out[i] = weight(in + i * m, m, digits) + digits[i & 3];
}
extern "C" __global__ void other(int *out, int n) {
    unsigned char own[64];
    for (int k = 0; k < 64; ++k) own[k] = k * n + threadIdx.x;
    int digits[4] = {};
    out[threadIdx.x] = weight(own, n, digits);
}
"""
#: Segments of any length, each left where a sum is reached.
SEGMENTS = """
extern "C" __global__ void k(const float *in, float *out, const int *first, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, at;
    if (i >= n) return;
    float sum = 0;
    for (at = first[i]; at < first[i + 1]; at++) {
        out[at] = sum;
        sum += in[at] * in[at];
        if (sum > 4) {
            at += 1;
            break;
        }
    }
    out[first[n] + i] = at;
}
"""
#: A row's own sum: elements that are read again when they have been stored, and that change.
SHARES = """
extern "C" __global__ void k(float *row, int *whole, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float *own = row + i * m, sum = 0;
    for (int j = 0; j < m; j++) {
        own[j] = own[j] * own[j] + 1;
        sum += own[j];
    }
    for (int j = 0; j < m; j++) own[j] /= sum;
    for (int j = 0; j < m; j++) whole[i * m + j] -= own[j] * 100;
}
"""


def cures(
    folder: Path, body: str, text: str = SUMS, kind: type = np.float32
) -> tuple[Job, tuple[Remapped, ...]]:
    """What is written for a kernel whose loop along a row has a body."""
    args = [np.arange(2 * ROWS * LONG).astype(kind), np.zeros(2 * ROWS * LONG, np.float32), ROWS, LONG]
    job = launched(folder, text.replace("BODY", body), args, (256,))
    return job, rows_of_threads(job, analyzed(job))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "reads", "writes"),
    [
        ("sum += in[i * m + j];", 1, 0),
        ("{ const int at = m * i + j; sum += in[at] * sum; }", 1, 0),
        ("{ sum += in[i * m + j] * in[i * m + j]; }", 1, 0),
        ("{ sum += in[i * m + j] * out[n * m + j]; atomicMax((int *)&out[n], j); }", 1, 0),
        ("if (in[i * m + j] > sum) sum = __ldg(&in[i * m + j]);", 1, 0),
        ("{ const float x = in[i * m + j]; if (x < 9.f) continue; sum += x; }", 1, 0),
        ("{ float x = in[i * m + j] + 1; out[i * m + j] = x; if (x < 0.f) break; }", 1, 1),
        ("{ if ((i + j) & 1) { out[i * m + j] += j; } else out[i * m + j] = 3; }", 0, 2),
    ],
)
def test_a_loop_along_a_row(tmp_path: Path, body: str, reads: int, writes: int) -> None:
    job, found = cures(tmp_path, body)
    assert [cure.name for cure in found] == [IN_PAIRS.name, BY_WARPS.name]
    for cure in found:
        assert (len(OPENED.findall(cure.edit.new)), cure.edit.new.count(".put(&")) == (reads, writes)
        before, after = cure.sectors
        assert after < before / 2
        assert differing_results(job, cure.job) == ()
        outcomes = [one for one in at_other_values(job, cure) if one.name == "m"]
        assert outcomes
        assert {one.outcome for one in outcomes} <= {SAME, ""}
    assert needless(found[1].analysis) < needless(found[1].before) / 10


@pytest.mark.slow
def test_a_field_of_another_record_may_have_the_name_of_the_array(tmp_path: Path) -> None:
    text = "struct Block { float in[4]; int n; };\n" + SUMS
    kept = "Block kept, *own = &kept; own->n = j & 3;"
    body = f"{{ {kept} own->in[own->n] = in[i * m + j]; sum += own->in[own->n]; }}"
    assert [cure.name for cure in cures(tmp_path, body, text)[1]] == [IN_PAIRS.name, BY_WARPS.name]


@pytest.mark.some(1)
def test_two_lanes_move_each_sector_of_their_rows_once(tmp_path: Path) -> None:
    """And without shared memory; of the last row, which has no neighbour, half a sector."""
    job, found = cures(tmp_path, "out[i * m + j] = in[i * m + j] + 1;")
    pairs = found[0]
    assert pairs.name == IN_PAIRS.name
    assert needless(pairs.analysis) == 0
    assert pairs.analysis.wavefronts == 0
    assert differing_results(job, pairs.job) == ()


@pytest.mark.slow
@pytest.mark.parametrize(("long", "helped"), [(2, True), (1, False)])
def test_short_rows_side_by_side(tmp_path: Path, long: int, helped: bool) -> None:
    """Two elements of each thread, in the next four bytes of another's; of one nothing is wasted."""
    args = [np.arange(ROWS * long, dtype=np.float32), np.zeros(ROWS, np.float32), ROWS, long]
    job = launched(tmp_path, SUMS.replace("BODY", "sum += in[i * m + j];"), args, (256,))
    found = rows_of_threads(job, analyzed(job))
    assert [cure.name for cure in found] == [BY_WARPS.name] * helped
    for cure in found:
        assert needless(cure.analysis) == 0
        assert differing_results(job, cure.job) == ()
        tried = {one.outcome for one in at_other_values(job, cure) if one.name == "m"}
        assert SAME in tried and tried <= {SAME, ""}


@pytest.mark.slow
def test_rows_of_half_words(tmp_path: Path) -> None:
    """Eight of them are 16 bytes, held in four registers."""
    text = SUMS.replace("const float *__restrict__ in", "const unsigned short *__restrict__ in")
    job, found = cures(tmp_path, "sum += in[i * m + j];", text, np.uint16)
    for cure, times in zip(found, (6, 12), strict=True):
        before, after = cure.sectors
        assert after < before / times
        assert differing_results(job, cure.job) == ()


@pytest.mark.slow
def test_a_loop_keeps_its_pragma(tmp_path: Path) -> None:
    """Nothing stands between it and the loop; an array in registers stays there."""
    text = SUMS.replace("for (int j", "float own[4] = {1, 2, 3, 4};\n#pragma unroll 4\n    for (int j")
    job, found = cures(tmp_path, "sum += in[i * m + j] * own[j & 3];", text)
    for cure in found:
        assert "#pragma unroll 4\n    for (int j" in cure.edit.new
        assert len(OPENED.findall(cure.edit.new)) == 1
        assert differing_results(job, cure.job) == ()


@pytest.mark.some(1)
@pytest.mark.parametrize("by_warps", [False, True])
@pytest.mark.parametrize("long", [19, 3, 20])
def test_rows_that_are_not_aligned(tmp_path: Path, long: int, by_warps: bool) -> None:
    """The edit for 64 elements computes the same with rows of any other length."""
    _, found = cures(tmp_path, "out[i * m + j] = in[i * m + j] + 1;")
    cure = found[by_warps]
    text = cure.edit.text
    args = [np.arange(ROWS * long, dtype=np.float32), np.zeros(ROWS * long, np.float32), ROWS - 1, long]
    edited = launched(tmp_path, cure.edit.new, args, (256,))
    (tmp_path / "old.cu").write_text(text)
    old = Job(KernelFile(tmp_path, "old.cu", "k"), edited.launch, args)
    assert differing_results(old, edited) == ()


@pytest.mark.slow
def test_a_row_in_a_function(tmp_path: Path) -> None:
    """All of a warp's rows of 50 bytes; a thread's own array is left to the thread."""
    args = [np.arange(100 * 50).astype(np.uint8), np.zeros(100, np.int32), 100, 50]
    job = launched(tmp_path, IN_FUNCTION, args, (128,))
    cure = rows_of_threads(job, analyzed(job))[-1]
    assert cure.name == BY_WARPS.name
    assert needless(cure.analysis) < needless(cure.before) / 10
    assert differing_results(job, cure.job) == ()
    tried = [one.outcome for one in at_other_values(job, cure) if one.name == "m"]
    assert SAME in tried
    assert set(tried) <= {SAME, ""}
    (tmp_path / "new.cu").write_text(cure.edit.new)
    both = [
        Job(KernelFile(tmp_path, file, "other"), Launch((1, 1, 1), (64, 1, 1)), [np.zeros(64, np.int32), 33])
        for file in ("k.cu", "new.cu")
    ]
    assert differing_results(*both) == ()


@pytest.mark.slow
def test_rows_that_change(tmp_path: Path) -> None:
    numbers = np.random.default_rng(4).random(150 * 37).astype(np.float32)
    args = [numbers, np.full(150 * 37, 7, np.int32), 150, 37]
    job = launched(tmp_path, SHARES, args, (160,))
    cure = rows_of_threads(job, analyzed(job))[-1]
    assert cure.name == BY_WARPS.name
    assert "sum += own_row0.last;" in cure.edit.new
    assert needless(cure.analysis) < needless(cure.before) / 10
    assert differing_results(job, cure.job) == ()
    tried = [one.outcome for one in at_other_values(job, cure) if one.name == "m"]
    assert SAME in tried
    assert set(tried) <= {SAME, ""}


@pytest.mark.slow
def test_segments_of_other_lengths(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    ends = np.concatenate([[0], draw.integers(0, 60, 130).cumsum()]).astype(np.int32)
    args = [draw.random(ends[-1]).astype(np.float32), np.zeros(ends[-1] + 130, np.float32), ends, 130]
    job = launched(tmp_path, SEGMENTS, args, (160,))
    cure = rows_of_threads(job, analyzed(job))[-1]
    assert cure.name == BY_WARPS.name
    assert cure.edit.new.count("in_row1(&in[at]") == 1  # two uses of one element
    assert differing_results(job, cure.job) == ()


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "body",
    [
        "sum += in[j * n + i];",  # neighbours are side by side already
        "sum += in[i * m + 2 * j];",
        "if (j % 3) sum += in[i * m + j];",
        "{ if (sum > 9.f) continue; sum += in[i * m + j]; }",
        "{ out[i * m + j] = out[i * m + j + 1] + 1; }",  # what is stored is read by others of the loop
        "{ out[i * m + j] = 1; out[i * m + j] += in[j]; }",  # stored twice
        "{ if (j & 1) out[i * m + j] = j; sum += out[i * m + j]; }",
        "{ if (j & 1) out[i * m + j] = j; if (j & 3) out[i * m + j] = 1; }",
        "{ if (j & 1) out[i * m + j] = j; else sum += out[i * m + j]; }",
        "{ if (j & 1) out[i * m + j] = j; else { sum += out[i * m + j]; out[i * m + j] = 1; } }",
        "{ const volatile float *now = in; sum += now[i * m + j]; }",
        "{ sum += in[i * m + j]; __syncthreads(); }",
        "{ sum += in[i * m + j]; if (sum > 9.f) { j += 1; } }",
    ],
)
def test_what_is_left_alone(tmp_path: Path, body: str) -> None:
    assert cures(tmp_path, body)[1] == ()
