"""A naive transpose through a tile of shared memory, written into the source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memsim.argument_types import ArrayArg
from memsim.job import Job
from memsim.suggest import suggest
from memsim.suggest.other_values import SAME, at_other_values
from memsim.suggest.prove import differing_results
from memsim.suggest.threads import Remapped
from tests.suggest.kernels import analyzed, launched

TEXT = """
__global__ void k(float *out, const float *in, const int nx, const int ny) {
    unsigned int ix = blockDim.x * blockIdx.x + threadIdx.x;
    unsigned int iy = blockDim.y * blockIdx.y + threadIdx.y;
    BODY
}
"""
STORE = "out[ix * ny + iy] = in[iy * nx + ix];"
LOAD = "out[iy * nx + ix] = 2 * in[ix * ny + iy];"
GUARD = "if (ix < nx && iy < ny)"


def job_of(folder: Path, body: str, block: tuple[int, int, int] = (32, 16, 1)) -> Job:
    """60 x 40 elements by blocks that reach beyond them."""
    args = [ArrayArg((8192,)), ArrayArg((8192,)), 60, 40]
    return launched(folder, TEXT.replace("BODY", body), args, block, grid=(2, 3))


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "body",
    [
        f"{GUARD} {{\n        {STORE}\n    }}",
        f"{GUARD}\n        {STORE}",
        f"{GUARD} {LOAD}",
        f"if (ix >= nx || iy >= ny) return;\n    {STORE}",
        f"if (ix >= nx) return;\n    const int at = iy * nx + ix;\n    if (iy < ny) {STORE[:19]} in[at];",
        "\n#define columns 32\n    unsigned x = blockIdx.x * columns + threadIdx.x;\n"
        "    if (x < nx && iy < ny) out[x * ny + iy] = in[iy * nx + x];",
        f"for (int i = 0; i < 2; ++i)\n        {GUARD} {STORE.replace('+ iy', '+ iy + i * nx * ny')}",
        f"{GUARD} {{\n        {STORE}\n        out[ix * ny + iy + 2400] = in[iy * nx + ix + 2400];\n    }}",
    ],
)
def test_a_naive_transpose_goes_through_a_tile(body: str, tmp_path: Path) -> None:
    job = job_of(tmp_path, body)
    found = suggest(analyzed(job), job)
    taken = found.taken
    assert isinstance(taken, Remapped)
    assert "through a tile of shared memory" in taken.name
    before, after = taken.sectors
    assert 3 * after <= before
    assert taken.analysis.conflicts == 0
    assert found.staging == ()  # no longer by hand
    assert "__shared__ float staged[16][32 + 2];" in taken.edit.new
    assert differing_results(job, taken.job) == ()


PLANE = "out[ix * ny + iy + PLANE] = in[iy * nx + ix];"


@pytest.mark.parametrize(
    ("before", "is_one"),
    [
        ("\n#define PLANE 4096\n", True),
        ("int PLANE = 0; if (threadIdx.y >= 8) PLANE = 4096; __syncthreads();", False),
        ("int PLANE = 0, &other = PLANE; if (threadIdx.y >= 8) other = 4096; __syncthreads();", False),
    ],
)
def test_a_constant_is_one_whatever_its_name(before: str, is_one: bool, tmp_path: Path) -> None:
    job = job_of(tmp_path, f"{before} {GUARD} {PLANE}")
    found = suggest(analyzed(job), job)
    tiles = [each for each in found.remapped if "through a tile" in each.name]
    assert bool(tiles) == is_one
    assert all(differing_results(job, each.job, asks=each.asks) == () for each in found.remapped)


@pytest.mark.parametrize(("constant", "is_one"), [("const int", True), ("__device__ int", False)])
def test_a_constant_of_a_file_that_is_included_is_one(constant: str, is_one: bool, tmp_path: Path) -> None:
    (tmp_path / "sizes.h").write_text(f"{constant} plane = 4096;\n")
    job = job_of(tmp_path, f"{GUARD} {PLANE.replace('PLANE', 'plane')}")
    (tmp_path / "k.cu").write_text('#include "sizes.h"\n' + (tmp_path / "k.cu").read_text())
    assert any("through a tile" in each.name for each in suggest(analyzed(job), job).remapped) == is_one


@pytest.mark.slow
def test_other_blocks_and_sizes_compute_the_same(tmp_path: Path) -> None:
    job = job_of(tmp_path, f"{GUARD} {STORE}")
    found = suggest(analyzed(job), job)
    assert found.taken is not None
    tried = list(at_other_values(job, found.taken))
    assert {each.name for each in tried} == {"blockDim.x", "blockDim.y", "nx", "ny"}
    assert {each.outcome for each in tried} <= {SAME, ""}
    assert sum(each.outcome == SAME for each in tried) >= 8


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        f"if (in[ix] > 2) return;\n    {STORE}",  # others do not know on what
        f"if (ix >= nx) return;\n    if (iy >= ny) out[0] = 1;\n    else {STORE}",
        "if (ix >= nx) return;\n    float v = in[iy];\n    out[ix * ny + iy] = v;",
        f"if (ix >= nx || iy >= ny) return;\n    {STORE}\n    out[8191] = 1;",
        f"for (int i = 0; i < threadIdx.y; ++i) {{ {STORE} }}",  # not all threads reach a barrier
        f"for (int i = 0; i < 2; ++i) {{ if (i == 1) break; {STORE} }}",
        f"{GUARD} {STORE}\n    out[ix + iy] += 1;",  # what another thread has stored
        f"{GUARD} {STORE} else out[0] = 1;",
        f"int at = ix; at += 1; {GUARD} out[at * ny + iy] = in[iy * nx + ix];",  # a variable that changes
    ],
)
def test_what_a_barrier_would_break_is_left_to_be_done_by_hand(body: str, tmp_path: Path) -> None:
    job = job_of(tmp_path, body)
    job = replace(job, args=[ArrayArg((8192,)), *job.args[1:]])
    found = suggest(analyzed(job), job)
    assert not any("tile" in each.name for each in found.remapped)
    assert found.staging
