"""A naive transpose by blocks of one dimension, through tiles of several blocks' elements."""

from __future__ import annotations

from pathlib import Path

import pytest

from memsim.argument_types import ArrayArg
from memsim.job import Job
from memsim.suggest import suggest
from memsim.suggest.other_values import SAME, at_other_values
from memsim.suggest.prove import differing_results
from memsim.suggest.threads import Remapped
from tests.suggest.kernels import analyzed, launched

ROWS, COLUMNS = 72, 96
TILES = "elements of several blocks through tiles of shared memory"
LINEAR = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
TURNED = "int r = i / columns, c = i % columns;"
STORE = "out[c * rows + r] = in[i];"
OF_ROW = "int r = blockIdx.x;"
OF_LANE = "int MORE = 0, &other = MORE; if (threadIdx.x & 8) other = 1; __syncthreads();"
ALONG = "for (int c = threadIdx.x; c < columns; c += blockDim.x)"


def job_of(folder: Path, body: str, grid: tuple[int, ...] = (31,), threads: int = 256) -> Job:
    """By blocks that reach beyond the elements."""
    text = f"__global__ void k(float *out, const float *in, int rows, int columns) {{\n    {body}\n}}\n"
    args = [ArrayArg((ROWS * COLUMNS,)), ArrayArg((ROWS * COLUMNS,)), ROWS, COLUMNS]
    return launched(folder, text, args, (threads,), grid=grid)


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("body", "grid"),
    [
        (f"{LINEAR}\n    if (i < rows * columns) {{ {TURNED} {STORE} }}", (31,)),
        (f"{LINEAR}\n    if (i >= rows * columns) return;\n    {TURNED}\n    {STORE}", (31,)),
        (
            f"{LINEAR}\n    {TURNED}\n    if (i < rows * columns) out[i] = in[c * rows + r];",
            (31,),
        ),
        (
            f"{LINEAR}\n    {OF_ROW.replace('.x', '.y')}\n"
            "    if (i < columns) out[i * rows + r] = 2 * in[r * columns + i];",
            (1, 72),
        ),
        (f"{OF_ROW}\n    {ALONG} {{ float v = in[r * columns + c]; out[c * rows + r] = v; }}", (72,)),
        (
            f"for ({LINEAR} i < rows * columns; i += blockDim.x * gridDim.x)\n"
            "        out[i % columns * rows + i / columns] = in[i];",
            (5,),
        ),
    ],
)
def test_it_goes_through_tiles_of_several_blocks(body: str, grid: tuple[int, ...], tmp_path: Path) -> None:
    job = job_of(tmp_path, body, grid)
    found = suggest(analyzed(job), job)
    taken = found.taken
    assert isinstance(taken, Remapped)
    assert taken.name == TILES
    before, after = taken.sectors
    assert before == ROWS * COLUMNS // 8 * 9
    assert after == ROWS * COLUMNS // 8 * 2
    assert taken.analysis.conflicts == 0
    assert differing_results(job, taken.job) == ()


OF_CHANNELS = "for (int c = threadIdx.x; c < columns; c += blockDim.x)"


def of_plane(x: str, y: str, assigned: str) -> str:
    return f"int p = blockIdx.{y} * 9 + blockIdx.{x};\n    {OF_CHANNELS} {assigned}"


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("body", "grid", "threads"),
    [
        (f"{LINEAR}\n    if (i < rows * columns) {{ {TURNED} {STORE} }}", (216,), 32),
        (of_plane("x", "y", "out[c * rows + p] = in[p * columns + c];"), (9, 8), 32),
        (of_plane("y", "z", "out[p * columns + c] = in[p + c * rows];"), (1, 9, 8), 64),
        (of_plane("z", "x", "{ float v = in[c * rows + p]; out[c + p * columns] = v; }"), (8, 1, 9), 96),
    ],
)
def test_threads_of_small_blocks_have_several_elements_and_blocks_along_two_axes_are_rows(
    body: str, grid: tuple[int, ...], threads: int, tmp_path: Path
) -> None:
    job = job_of(tmp_path, body, grid, threads)
    (found,) = (each for each in suggest(analyzed(job), job).remapped if each.name == TILES)
    assert found.sectors[1] == ROWS * COLUMNS // 8 * 2
    assert differing_results(job, found.job) == ()
    assert {each.outcome for each in at_other_values(job, found)} <= {SAME, ""}


def test_blocks_whose_elements_are_not_known_to_be_neighbours_are_rows_along_one_axis(tmp_path: Path) -> None:
    body = of_plane("x", "y", "out[c * rows + (p ^ 1)] = in[p * columns + c];")
    job = job_of(tmp_path, body, (9, 8), 32)
    (found,) = (each for each in suggest(analyzed(job), job).remapped if each.name == TILES)
    assert "gridDim.x * gridDim.y" not in found.edit.new
    assert differing_results(job, found.job) == ()


@pytest.mark.slow
def test_other_blocks_and_sizes_compute_the_same(tmp_path: Path) -> None:
    job = job_of(tmp_path, f"{LINEAR}\n    if (i < rows * columns) {{ {TURNED} {STORE} }}")
    found = suggest(analyzed(job), job)
    assert found.taken is not None
    tried = list(at_other_values(job, found.taken))
    assert {each.name for each in tried} == {"blockDim.x", "rows", "columns"}
    assert {each.outcome for each in tried} <= {SAME, ""}
    assert sum(each.outcome == SAME for each in tried) >= 6


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        f"{LINEAR}\n    {TURNED}\n    if (out[i] == 0) {STORE}",  # of what others have stored meanwhile
        f"{LINEAR}\n    {TURNED}\n    {STORE}\n    out[0] = 1;",
        f"{LINEAR}\n    {TURNED}\n    out[c * rows + r] = out[i];",
        f"{LINEAR}\n    {TURNED}\n    out[c * rows + r] = in[i] + threadIdx.x;",  # of no element's number
        f"{LINEAR}\n    {TURNED}\n    for (int k = 0; k < threadIdx.x % 2; ++k) {STORE}",
        f"{LINEAR}\n    i *= 2;\n    {TURNED}\n    if (i < rows * columns) {STORE}",
        f"{LINEAR}\n    {TURNED}\n    {OF_LANE}\n    out[c * rows + r] = in[i] + MORE;",
    ],
)
def test_what_other_threads_cannot_do_is_left(body: str, tmp_path: Path) -> None:
    job = job_of(tmp_path, body, (27,))
    found = suggest(analyzed(job), job)
    assert not any("tiles" in each.name for each in found.remapped)
