"""x and y of the threads exchanged: the same results, in other warps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memsim.argument_types import ArrayArg
from memsim.job import Job
from memsim.kernels import catalog
from memsim.suggest import suggest
from memsim.suggest.other_values import SAME, at_other_values, edit_with_assertions, knobs_of_edit
from memsim.suggest.prove import differing_results
from memsim.suggest.threads import Remapped, exchanged_indices, exchanges, rewrite_thread_indices
from memsim.views.suggest.terminal import render
from tests.suggest.kernels import Case, analyzed, launched

# Each thread copies one element; a warp reads down a column of rows of 128 B: 32 sectors instead of 4.
COLUMNS = Case(
    """
extern "C" __global__ void k(const float *in, float *out) {
    int row = threadIdx.x + blockDim.x * blockIdx.x, column = threadIdx.y;  // not threadIdx.y + 1
    out[row * blockDim.y + column] = in[row * blockDim.y + column];
}
""",
    (32, 8),
    ((256, "float32"), (256, "float32")),
)


@pytest.mark.slow
def test_a_copy_down_columns_becomes_one_along_rows(tmp_path: Path) -> None:
    job = COLUMNS.job(tmp_path)
    found = suggest(analyzed(job), job)
    done = found.remapped[0]
    assert done.sectors == (2 * 8 * 32, 2 * 8 * 4)
    assert done.job.launch == job.launch
    assert found.taken is done
    (line,) = done.edit.lines
    assert line.new.endswith(
        "int row = ((threadIdx.y * blockDim.x + threadIdx.x) / blockDim.y) + blockDim.x * blockIdx.x, "
        "column = ((threadIdx.y * blockDim.x + threadIdx.x) % blockDim.y);  // not threadIdx.y + 1"
    )
    assert differing_results(job, done.job) == ()
    assert "   512 -> 64 global sectors; compiled and replayed\n" in render(found)


@pytest.mark.slow
def test_x_and_z_are_exchanged(tmp_path: Path) -> None:
    text = COLUMNS.text.replace("threadIdx.y;", "threadIdx.z;").replace("blockDim.y", "blockDim.z")
    job = Case(text, (32, 1, 8), COLUMNS.arrays).job(tmp_path)
    (done,) = exchanges(job, analyzed(job))
    assert (done.name, done.sectors) == ("x and z of the threads exchanged", (2 * 8 * 32, 2 * 8 * 4))
    outcomes = [one for one in at_other_values(job, done) if one.outcome]
    assert {one.name for one in outcomes} == {"blockDim.x", "blockDim.z"}
    assert not any(one.is_wrong for one in outcomes)


@pytest.mark.slow
def test_an_exchange_is_right_for_blocks_of_other_shapes(tmp_path: Path) -> None:
    """Also where this launch's block is a square, in which the names alone could change places."""
    text = COLUMNS.text.replace("= in[", "= 2 * in[")
    arrays = ((1024, "float32"), (1024, "float32"))
    for case in (Case(text, COLUMNS.block, arrays), Case(text, (16, 16), arrays)):
        job = case.job(tmp_path)
        (found,) = exchanges(job, analyzed(job))
        assert found is not None
        tried = list(at_other_values(job, found))
        judged = [name for name in ("blockDim.x", "blockDim.y") for one in tried if one.name == name]
        assert {name: judged.count(name) >= 2 for name in judged} == {"blockDim.x": True, "blockDim.y": True}
        assert {one.outcome for one in tried} <= {SAME, ""}
    careless = {"threadIdx.x": "threadIdx.y", "threadIdx.y": "threadIdx.x"}
    edit = rewrite_thread_indices(analyzed(job), job, careless)
    assert edit is not None
    tried = list(at_other_values(job, replace(found, edit=edit)))
    assert any(one.is_wrong for one in tried)
    assert edit_with_assertions(edit, tried, knobs_of_edit(job, edit)) is None


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("kernel", "other"), [("opt_2_naive_swapped", "opt_2_naive"), ("kernel_v1", "opt_2_naive")]
)
def test_a_naive_product_becomes_its_coalesced_twin(kernel: str, other: str) -> None:
    spec = catalog()[kernel]
    job = spec.job((64, 64, 32))
    found = suggest(analyzed(job), job)
    (done,) = found.remapped
    twin = catalog()[other].analyze(size=(64, 64, 32))
    assert done.sectors[1] == sum(site.sectors or 0 for site in twin.sites)


@pytest.mark.slow
def test_what_is_coalesced_is_left_alone(tmp_path: Path) -> None:
    along = Case(COLUMNS.text.replace("threadIdx.x +", "threadIdx.y +"), COLUMNS.block, COLUMNS.arrays)
    text = """
extern "C" __global__ void k(const float *in, float *out) {
    int i = threadIdx.y * 32 + threadIdx.x;
    out[i] = in[i];
}
"""
    for case in (Case(text, (32, 8), along.arrays), Case(COLUMNS.text, (256,), COLUMNS.arrays)):
        job = case.job(tmp_path)
        assert suggest(analyzed(job), job).remapped == ()


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "text",
    [
        COLUMNS.text.replace("int row", "dim3 me = threadIdx; int row"),
        "__device__ int lane() { return threadIdx.x; }\n__global__ void other() {}" + COLUMNS.text,
    ],
)
def test_where_not_all_places_are_seen_nothing_is_exchanged(text: str, tmp_path: Path) -> None:
    job = Case(text, COLUMNS.block, COLUMNS.arrays).job(tmp_path)
    assert rewrite_thread_indices(analyzed(job), job, exchanged_indices("threadIdx.y")) is None


def test_only_the_kernel_itself_is_changed(tmp_path: Path) -> None:
    other = "__global__ void other(int *p) { p[threadIdx.x] = threadIdx.y; }\n"
    job = Case(other + COLUMNS.text, COLUMNS.block, COLUMNS.arrays).job(tmp_path)
    edit = rewrite_thread_indices(analyzed(job), job, exchanged_indices("threadIdx.y"))
    assert edit is not None
    assert edit.new.startswith(other)
    assert "row = ((threadIdx.y * blockDim.x + threadIdx.x) / blockDim.y) + blockDim.x" in edit.new


# Neighbours along the last dimension are blocks, or threads of neighbouring blocks.
OF_BLOCKS = """
__device__ float twice(float value) { return 2 * value; }
__global__ void other(float *p) { p[threadIdx.x] = blockIdx.y; }
__global__ void k(const float *in, float *out, int n, int rows) {
    int row = blockIdx.AXIS, i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int c = 0; c <= i % 3; ++c) sum += in[i * rows + row];
    out[i * rows + row] = twice(sum);
}
"""
ALONG_X = """
__global__ void k(const float *in, float *out, int n, int rows) {
    if (threadIdx.x < n) out[threadIdx.x * rows + blockIdx.x] = in[threadIdx.x * rows + blockIdx.x] * 3;
}
"""


def of_blocks(folder: Path, text: str, grid: tuple[int, ...]) -> Job:
    """200 rows of 24 elements, by blocks of 128 threads."""
    args = [ArrayArg((200 * 24,)), ArrayArg((200 * 24,)), 200, 24]
    return launched(folder, text, args, (128,), grid=grid)


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("text", "grid"),
    [
        (OF_BLOCKS.replace("AXIS", "y"), (2, 24)),
        (OF_BLOCKS.replace("AXIS", "z"), (2, 1, 24)),
        (ALONG_X, (24,)),
    ],
)
def test_threads_of_neighbouring_blocks_become_neighbours(
    text: str, grid: tuple[int, ...], tmp_path: Path
) -> None:
    job = of_blocks(tmp_path, text, grid)
    found = suggest(analyzed(job), job)
    taken = found.taken
    assert isinstance(taken, Remapped)
    assert taken.name == f"x of the threads exchanged with {'xyz'[len(grid) - 1]} of the blocks"
    ideal = sum(site.ideal_sectors or 0 for site in taken.analysis.sites)
    assert ideal <= taken.sectors[1] <= 1.1 * ideal < taken.sectors[0] / 4
    assert (
        "__global__ void other(float *p) { p[threadIdx.x] = blockIdx.y; }" in taken.edit.new
        or text == ALONG_X
    )
    tried = [*at_other_values(job, taken)]
    assert sum(one.outcome == SAME for one in tried if one.name == "blockDim.x") >= 2
    assert not any(one.is_wrong for one in tried)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "float sum = 0;",
            "__shared__ float s[128]; s[threadIdx.x] = in[i]; float sum = s[threadIdx.x];",
        ),
        ("float sum = 0;", "float sum = 0; __syncthreads();"),
        ("float sum = 0;", "float sum = __shfl_sync(__activemask(), in[i], 0);"),
        ("float sum = 0;", "__threadfence(); float sum = 0;"),
        ("twice(float value) { return 2", "twice(float value) { return blockIdx.y"),
        ("__device__", "#define row_of(i) (blockIdx.y + i)\n__device__"),
    ],
)
def test_what_a_block_does_together_stays_in_its_threads(old: str, new: str, tmp_path: Path) -> None:
    """And where functions or macros may use the numbers of blocks, nothing is exchanged."""
    job = of_blocks(tmp_path, OF_BLOCKS.replace("AXIS", "y").replace(old, new), (2, 24))
    assert list(exchanges(job, analyzed(job))) == []
