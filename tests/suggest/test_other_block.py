"""Blocks of another shape, written into the host code of the file that launches them."""

from __future__ import annotations

from pathlib import Path

import pytest

from memsim.api import kernel_file
from memsim.argument_types import ArrayArg
from memsim.job import Job
from memsim.launch import Launch
from memsim.suggest import suggest
from memsim.suggest.other_block import other_blocks
from memsim.suggest.threads import Remapped
from tests.suggest.kernels import analyzed

ADD = """
__global__ void add(const float *a, float *c, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) c[y * w + x] = a[y * w + x] + 1;
}
__global__ void other(float *a) { a[threadIdx.x * blockDim.y] = 1; }
void run(const float *a, float *c, float *b) {
    int w = 100, h = 90;
    HOST
}
"""
TILED = """
#define TILE 16
__global__ void turn(const float *in, float *out, int n) {
    __shared__ float tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    int column = blockIdx.y * TILE + threadIdx.x;
    out[(blockIdx.x * TILE + threadIdx.y) * n + column] = tile[threadIdx.x][threadIdx.y];
}
void run(const float *in, float *out) {
    int n = 96;
    turn<<<dim3(n / TILE, n / TILE), dim3(TILE, TILE)>>>(in, out, n);
}
"""
BY_BLOCK = "dim3 block(4, 64); dim3 grid((w + block.x - 1) / block.x, (h + block.y - 1) / block.y);"
BY_NUMBERS = "dim3 block(4, 64); dim3 grid((w + 3) / 4, (h + 63) / 64);"
CALL = "add<<<grid, block>>>(a, c, w, h);"


def job_of(folder: Path, text: str, kernel: str, launch: Launch, *sizes: int) -> Job:
    (folder / "k.cu").write_text(text)
    args = [ArrayArg((9216,)), ArrayArg((9216,)), *sizes]
    return Job(kernel_file.KernelFile(folder, "k.cu", kernel), launch, args)


def adding(folder: Path, host: str) -> Job:
    return job_of(folder, ADD.replace("HOST", host), "add", Launch((25, 2, 1), (4, 64, 1)), 100, 90)


@pytest.mark.parametrize("host", [f"{BY_BLOCK} {CALL}", f"{BY_NUMBERS} {CALL}"])
def test_rows_of_a_block_become_those_of_a_warp(host: str, tmp_path: Path) -> None:
    job = adding(tmp_path, host)
    taken = suggest(analyzed(job), job).taken
    assert isinstance(taken, Remapped)
    assert taken.name == "blocks of 32 x 8 threads"
    assert taken.job.launch == Launch((4, 12, 1), (32, 8, 1))
    assert taken.edit.brings_launch  # so that it is written
    assert "dim3 block(32, 8);" in taken.edit.new
    assert ("(w + block.x - 1) / block.x" in host) == ("(w + block.x - 1) / block.x" in taken.edit.new)
    assert ("(w + 3) / 4" in host) == ("(w + 31) / 32, (h + 7) / 8" in taken.edit.new)
    assert 3 * taken.sectors[1] < 2 * taken.sectors[0]


def test_a_tile_grows_with_the_blocks_that_have_its_size(tmp_path: Path) -> None:
    job = job_of(tmp_path, TILED, "turn", Launch((6, 6, 1), (16, 16, 1)), 96)
    (done,) = other_blocks(job, analyzed(job))
    assert done.job.launch == Launch((3, 3, 1), (32, 32, 1))
    assert done.edit.diff.count("\n+") == 2  # the line, and the name of the file
    assert "#define TILE 32" in done.edit.new
    assert done.before.conflicts and done.analysis.conflicts == 0


@pytest.mark.slow
def test_the_block_of_a_launch_of_other_data_is_in_variables(tmp_path: Path) -> None:
    """The file has 400 columns, and this launch a hundred."""
    host = "int tx = 4, ty = 64; w = 400; dim3 block(tx, ty); dim3 grid((w + tx - 1) / tx, h / ty + 1);"
    job = adding(tmp_path, f"{host} {CALL}".replace("w = 400; ", "").replace("(w +", "(4 * w +"))
    (done,) = other_blocks(job, analyzed(job))
    assert "int tx = 32, ty = 8;" in done.edit.new
    assert done.job.launch == Launch((4, 16, 1), (32, 8, 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    "host",
    [
        f"int tx = 4; tx += w > 9 ? 0 : 4; dim3 block(tx, 64); dim3 grid((w + 3) / 4, (h + 63) / 64); {CALL}",
        f"{BY_BLOCK} {CALL} other<<<1, block>>>(b);",  # whose block it is, too
        f"dim3 block(4, 64); dim3 grid(25, 2); {CALL}",  # does not follow
        f"dim3 block(4, 64), grid((w + 3) / 4, (h + 63) / 64); block.x = w > 9 ? 4 : 8; {CALL}",
        f"dim3 block(16, 16); dim3 grid(7, 6); {CALL}",  # another launch than the one that was analyzed
        "",
    ],
)
def test_other_launches_than_this_one_are_left(host: str, tmp_path: Path) -> None:
    job = adding(tmp_path, host)
    assert other_blocks(job, analyzed(job)) == ()


@pytest.mark.slow
def test_a_kernel_that_is_made_for_its_block_is_left(tmp_path: Path) -> None:
    fixed = ADD.replace("HOST", f"{BY_BLOCK} {CALL}").replace("blockIdx.x * blockDim.x", "blockIdx.x * 4")
    job = job_of(tmp_path, fixed, "add", Launch((25, 2, 1), (4, 64, 1)), 100, 90)
    assert other_blocks(job, analyzed(job)) == ()
