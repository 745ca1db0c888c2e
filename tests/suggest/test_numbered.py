"""Elements of a plane numbered along its rows: what a grid of 8 x 8 threads needs for rows of any width."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memsim.argument_types import ArrayArg
from memsim.job import Job
from memsim.suggest.numbered import NAME, numbered_elements
from memsim.suggest.other_values import SAME, at_other_values
from memsim.suggest.ranking import total
from memsim.suggest.records import NAME as RECORDS
from tests.suggest.kernels import analyzed, launched

WIDTH, HEIGHT = 45, 21
PLANE = """
#define SIDE 8
__global__ void k(const float *in, float *out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = threadIdx.y + blockDim.y * blockIdx.y;
    int at = y * width + x;
    if (x >= width || y >= height) return;
    out[at] = in[at] * x + y;
}
"""
ROWS = [
    PLANE,
    PLANE.replace(
        "if (x >= width || y >= height) return;", "if (x >= width) { return; }\n    if (height <= y) return;"
    ),
    PLANE.replace("(x >= width || y >= height) return;", "(y < height && x < width)"),
    PLANE.replace("blockIdx.x * blockDim.x", "blockIdx.x * SIDE"),
    PLANE.replace("int x = ", "const uint2 p = make_uint2(")
    .replace("threadIdx.x;", "threadIdx.x,")
    .replace("int y = ", "")
    .replace("blockIdx.y;", "blockIdx.y);")
    .replace("x >= width || y", "p.x >= width || p.y")
    .replace("y * width + x", "p.y * width + p.x")
    .replace("x + y", "p.x + p.y"),
]


def job_of(folder: Path, text: str, grid: tuple[int, int] = (6, 3)) -> Job:
    """45 x 21 elements by blocks of 8 x 8 threads."""
    args = [ArrayArg((WIDTH * HEIGHT,)), ArrayArg((WIDTH * HEIGHT,)), WIDTH, HEIGHT]
    return launched(folder, text, args, (8, 8), grid=grid)


@pytest.mark.some(1)
@pytest.mark.parametrize("text", ROWS)
def test_neighbouring_lanes_take_neighbouring_elements(text: str, tmp_path: Path) -> None:
    job = job_of(tmp_path, text)
    (done,) = numbered_elements(job, analyzed(job))
    assert done.name == NAME
    assert done.sectors[1] == 2 * -(-WIDTH * HEIGHT * 4 // 32) < done.sectors[0] / 1.5
    tried = [*at_other_values(job, done)]
    for name in ("width", "height", "blockDim.x", "blockDim.y"):
        assert sum(one.outcome == SAME for one in tried if one.name == name) >= 2, name
    assert not any(one.is_wrong for one in tried)


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int at =", "__shared__ float s[64]; s[threadIdx.y * 8 + threadIdx.x] = in[0]; int at ="),
        ("in[at] * x", "__shfl_xor_sync(~0u, in[at], 1) * x"),
        ("in[at] * x", "in[at] * threadIdx.x"),
        ("int at =", "float first = in[y * width]; int at ="),
        ("|| y >= height", "| y >= height"),
        ("int at =", "height -= 1; int at ="),
        ("y >= height)", "y >= height - blockIdx.x % 2)"),
        ("__global__", "__device__ int lane() { return threadIdx.x; }\n__global__"),
    ],
)
def test_what_depends_on_which_thread_it_is_stays_as_it_is(old: str, new: str, tmp_path: Path) -> None:
    job = job_of(tmp_path, PLANE.replace(old, new))
    assert numbered_elements(job, analyzed(job)) == ()


def test_records_of_a_plane_are_numbered_and_moved_by_warps_at_once(tmp_path: Path) -> None:
    text = PLANE.replace(
        "out[at] = in[at] * x + y", "out[3 * at] = x; out[3 * at + 1] = y; out[3 * at + 2] = in[at]"
    )
    job = job_of(tmp_path, text)
    job = replace(job, args=[job.args[0], ArrayArg((3 * WIDTH * HEIGHT,)), WIDTH, HEIGHT])
    done = numbered_elements(job, analyzed(job))[-1]
    assert done.name == f"{NAME}; {RECORDS}"
    assert total(done.analysis, "needless_sectors") == 0 < done.edit.declared
    assert not any(one.is_wrong for one in at_other_values(job, done))
    assert done.edit.text == text and "numbered_at" in done.edit.new and "record_for" in done.edit.new


@pytest.mark.slow
def test_a_grid_that_does_not_cover_the_plane_does_its_part_of_it(tmp_path: Path) -> None:
    """The edit is right for it, too, and saves nothing."""
    job = job_of(tmp_path, PLANE)
    (done,) = numbered_elements(job, analyzed(job))
    smaller = job_of(tmp_path, PLANE, (2, 2))
    assert numbered_elements(smaller, analyzed(smaller)) == ()
    smaller = job_of(tmp_path, done.edit.new, (2, 2))
    assert sum(site.sectors or 0 for site in analyzed(smaller).sites) == sum(
        site.sectors or 0 for site in analyzed(job_of(tmp_path, PLANE, (2, 2))).sites
    )
