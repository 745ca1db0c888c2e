"""x and y of the threads exchanged: the same results, in other warps."""

from __future__ import annotations

from pathlib import Path

import pytest

from memsim.kernels import catalog
from memsim.suggest import suggest
from memsim.suggest.prove import differing_results
from memsim.suggest.threads import EXCHANGED, rewrite_thread_indices
from memsim.views.suggest.terminal import render
from tests.suggest.kernels import Case, analyzed

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
    (exchange,) = found.remapped
    assert exchange.sectors == (2 * 8 * 32, 2 * 8 * 4)
    assert exchange.job.launch.block == (8, 32, 1)
    assert found.taken is exchange
    (line, second) = exchange.edit.lines
    assert line.new.endswith(
        "int row = threadIdx.y + blockDim.y * blockIdx.x, column = threadIdx.x;  // not threadIdx.y + 1"
    )
    assert second.new == "    out[row * blockDim.x + column] = in[row * blockDim.x + column];"
    assert differing_results(job, exchange.job) == ()
    assert (
        "   512 -> 64 global sectors; compiled and replayed\n   Launch it with a block of 8 x 32 x 1."
        in render(found)
    )


@pytest.mark.parametrize(
    ("kernel", "other"), [("opt_2_naive_swapped", "opt_2_naive"), ("kernel_v1", "opt_2_naive")]
)
def test_a_naive_product_becomes_its_coalesced_twin(kernel: str, other: str) -> None:
    spec = catalog()[kernel].pick()
    job = spec.job((64, 64, 32))
    found = suggest(analyzed(job), job)
    (exchange,) = found.remapped
    twin = catalog()[other].analyze(size=(64, 64, 32))
    assert exchange.sectors[1] == sum(site.sectors or 0 for site in twin.sites)


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
    assert rewrite_thread_indices(analyzed(job), job, EXCHANGED) is None


def test_only_the_kernel_itself_is_changed(tmp_path: Path) -> None:
    other = "__global__ void other(int *p) { p[threadIdx.x] = threadIdx.y; }\n"
    job = Case(other + COLUMNS.text, COLUMNS.block, COLUMNS.arrays).job(tmp_path)
    edit = rewrite_thread_indices(analyzed(job), job, EXCHANGED)
    assert edit is not None
    assert edit.new.startswith(other)
    assert "row = threadIdx.y + blockDim.y" in edit.new
