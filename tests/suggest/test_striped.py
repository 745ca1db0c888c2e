"""Elements of a thread one after another, or apart: what makes vectors of neighbours whole sectors."""

from __future__ import annotations

from pathlib import Path

import pytest

from memsim.argument_types import ArrayArg
from memsim.job import Job
from memsim.suggest.other_values import SAME, at_other_values
from memsim.suggest.striped import striped_elements
from tests.suggest.kernels import analyzed, launched

VECTORS = """
#define T(i, j) t[(j) * 128 + (i)]
__global__ void k(const float *in, float *out) {
    __shared__ float t[528];
    int tx = threadIdx.x;
    int row = (tx & 15) << 3, col = tx >> 4;
    float4 low = *(const float4 *)&in[col * 128 + row];
    float4 high = *(const float4 *)&in[col * 128 + row + 4];
    *(float4 *)&T(row, col) = low;
    *(float4 *)&T(row+4, col) = high;
    __syncthreads();
    low = *(float4 *)&T(row, 3 - col);
    high = *(float4 *)&T(row + 4, 3 - col);
    *(float4 *)&out[col * 128 + row] = high;
    *(float4 *)&out[col * 128 + row + 4] = low;
}
"""
SCALARS = """
#define EACH 4
__global__ void k(const float *in, float *out) {
    int first = threadIdx.x * EACH;
    for (int i = 0; i < EACH; i++) out[first + i] = in[first + i] * 2;
}
"""


def job_of(folder: Path, text: str) -> Job:
    """512 of 1,024 elements, by 64 threads or 128; or all of them."""
    args = [ArrayArg((1024,), "f4"), ArrayArg((1024,), "f4")]
    threads = 64 if text.startswith(VECTORS[:12]) else 128
    return launched(folder, text, args, (threads,))


def changed(folder: Path, text: str) -> list[str]:
    """The new lines of each edit."""
    job = job_of(folder, text)
    return [
        "\n".join(line.new.strip() for line in one.edit.lines) for one in striped_elements(job, analyzed(job))
    ]


def test_vectors_of_neighbours_are_side_by_side(tmp_path: Path) -> None:
    text = VECTORS.replace(
        "high;\n    *(float4 *)&out[col * 128 + row + 4] = low",
        "low;\n    *(float4 *)&out[col * 128 + row + 4] = high",
    )
    job = job_of(tmp_path, text)
    (done,) = striped_elements(job, analyzed(job))
    assert "int row = (tx & 15) * 4, col" in done.edit.new
    assert "T(row + 64, col)" in done.edit.new
    assert done.sectors == (256, 128)
    assert done.wavefronts[1] * 2 == done.wavefronts[0]
    assert done.edit.tokens == 0


@pytest.mark.parametrize("name", ["EACH", "4"])
def test_elements_in_a_loop_are_apart_by_the_block(name: str, tmp_path: Path) -> None:
    job = job_of(tmp_path, SCALARS.replace("* EACH", f"* {name}"))
    (done,) = striped_elements(job, analyzed(job))
    assert "int first = threadIdx.x;" in done.edit.new
    assert "out[first + i * blockDim.x] = in[first + i * blockDim.x] * 2;" in done.edit.new
    tried = [*at_other_values(job, done)]
    assert {one.outcome for one in tried} <= {SAME, ""}
    assert "blockDim.x" in {one.name for one in tried}


def test_uses_that_multiply_the_number_themselves(tmp_path: Path) -> None:
    text = SCALARS.replace("threadIdx.x * EACH", "threadIdx.x").replace("first + i", "first * EACH + i")
    (new,) = changed(tmp_path, text)
    assert "out[first + i * blockDim.x]" in new


def test_elements_in_a_loop_are_vectors_of_four_too(tmp_path: Path) -> None:
    text = SCALARS.replace("EACH 4", "EACH 8").replace("threadIdx.x", "(threadIdx.x % (SIDE / EACH))")
    text = text.replace("#define", "#define SIDE 1024\n#define").replace("512", "1024")
    single, vectors = changed(tmp_path, text)
    assert "out[first + i * (SIDE / EACH)]" in single
    assert "out[first + i / 4 * 4 * (SIDE / EACH) + i % 4]" in vectors


def test_places_that_are_made_of_them_are_apart_too(tmp_path: Path) -> None:
    text = SCALARS.replace("threadIdx.x * EACH;", "threadIdx.x, at = blockIdx.x * 512 + first * EACH;")
    (new,) = changed(
        tmp_path, text.replace("in[first + i]", "in[at + i]").replace("[first + i]", "[first * EACH + i]")
    )
    assert "at = blockIdx.x * 512 + first;" in new
    assert "out[first + i * blockDim.x] = in[at + i * blockDim.x] * 2;" in new


LEFT_ALONE = {
    "elements that other threads expect": VECTORS,
    "a variable that changes": SCALARS.replace("    for", "    first += 0;\n    for"),
    "elements of other threads": VECTORS.replace("row + 4", "row + 12"),
    "one vector of a thread": VECTORS.replace("row + 4", "row").replace("row+4", "row"),
    "a place that changes": SCALARS.replace(
        "threadIdx.x * EACH;", "threadIdx.x; int at = first * EACH; at += 0;"
    ).replace("in[first + i]", "in[at + i]"),
    "a macro that has the variable": VECTORS.replace("(j) * 128 + (i)", "col * 128 + row"),
    "numbers that no mask makes": VECTORS.replace("tx & 15", "tx & 13"),
    "uses of two kinds": SCALARS.replace("threadIdx.x * EACH", "threadIdx.x").replace(
        "out[first + i]", "out[first * EACH + i]"
    ),
}


@pytest.mark.parametrize("why", LEFT_ALONE)
def test_where_elements_are_not_a_threads_own(why: str, tmp_path: Path) -> None:
    assert not changed(tmp_path, LEFT_ALONE[why])


def test_whole_sectors_need_no_edit(tmp_path: Path) -> None:
    assert not changed(tmp_path, SCALARS.replace("first + i", "first + i * 0 "))
