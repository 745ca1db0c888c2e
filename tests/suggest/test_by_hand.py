"""What is counted and left to be done by hand: the counts are those of a kernel that does it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memsim.analysis import Analysis, analyze_trace
from memsim.launch import Launch
from memsim.suggest import Suggestions, suggest
from memsim.suggest.global_accesses import fields, first_block
from memsim.suggest.proposals import best_split
from memsim.suggest.tiles import tiles
from memsim.views.suggest.terminal import render
from tests.suggest.kernels import BLOCK_TRANSPOSE, Case, analyzed
from tests.traces import Request, make_trace, site

FLOATS = ((1024, "float32"), (1024, "float32"))


def suggested(case: Case, folder: Path) -> Suggestions:
    job = case.job(folder)
    return suggest(analyzed(job), job)


def sectors(analysis: Analysis, op: str) -> int:
    return sum(site.sectors or 0 for site in analysis.sites if (site.space, site.op) == ("global", op))


@pytest.mark.slow
def test_wide_stores_that_keep_a_tile_from_its_best_layout_are_split(tmp_path: Path) -> None:
    """8 warps store 4 words, each in one wavefront; 32 loads down a column, each in one: 64."""
    (found,) = suggested(BLOCK_TRANSPOSE, tmp_path).split
    assert (found.cost.wavefronts, found.cost.most) == (8 * 4 + 32, 8 * 4 + 32)
    text = BLOCK_TRANSPOSE.text
    start = text.index("    *(float4 *)&tile")
    end = text.index("\n", start)
    by_hand = """    float4 v = in[t];
    float *to = &tile[t / 8][t % 8 * 4];
    to[0] = v.x; to[1] = v.y; to[2] = v.z; to[3] = v.w;"""
    text = text[:start] + by_hand + text[end:].replace("[32][32]", "[32][33]")
    text = text.replace("tile[32][32]", "tile[32][33]")
    done = analyzed(Case(text, BLOCK_TRANSPOSE.block, BLOCK_TRANSPOSE.arrays).job(tmp_path, "by_hand.cu"))
    assert sum(site.wavefronts or 0 for site in done.sites) == found.cost.most


@pytest.mark.slow
def test_what_is_best_with_wide_accesses_is_not_split(tmp_path: Path) -> None:
    text = """
extern "C" __global__ void k(const float4 *in, float4 *out) {
    __shared__ float4 tile[32][8];
    int t = threadIdx.x;
    for (int i = 0; i < 8; ++i) tile[t][i] = in[t * 8 + i];
    __syncthreads();
    for (int i = 0; i < 8; ++i) out[i * 32 + t] = tile[i * 4 + t / 8][t % 8];
}
"""
    found = suggested(Case(text, (32,), FLOATS), tmp_path)
    assert found.proposals
    assert found.split == ()


def test_accesses_are_split_of_one_of_two_arrays_of_a_name(tmp_path: Path) -> None:
    text = """
__device__ float4 turned(float4 value, int t) {
    __shared__ float4 tile[64];
    tile[t] = value;
    __syncthreads();
    return tile[63 - t];
}
extern "C" __global__ void k(const float4 *in, float4 *out) {
    __shared__ float4 tile[256];
    int t = threadIdx.x;
    for (int i = 0; i < 4; i++) tile[4 * t + i] = in[64 * i + t];
    out[t] = turned(tile[255 - t], t);
}
"""
    analysis = analyzed(Case(text, (64,), FLOATS).job(tmp_path))
    found = [best_split(analysis, tile, 1000) for tile in tiles(analysis)]
    assert {one.tile.size for one in found if one is not None} == {64 * 16, 256 * 16}


RECORDS = """
extern "C" __global__ void k(const float *in, float *out) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[{0}] + in[{1}] * in[{2}];
}}
"""


@pytest.mark.slow
def test_records_become_a_structure_of_arrays(tmp_path: Path) -> None:
    """3 floats of 4 in each record: 3 loads of 16 sectors; side by side 3 of 4. Where the edit is written,
    that is shown instead.
    """
    written = Case(RECORDS.format("4 * i", "4 * i + 1", "4 * i + 2"), (32,), FLOATS)
    assert not suggested(written, tmp_path).fields
    text = written.text.replace("out[i] =", "const float *at = &in[0];\n    out[i] =").replace("in[4", "at[4")
    case = Case(text, (32,), FLOATS)
    (found,) = suggested(case, tmp_path).fields
    assert (found.array, found.record) == ("in", 16)
    assert found.fields == ((0, 4), (4, 4), (8, 4))
    assert found.sectors == (3 * 16, 3 * 4)
    text = render(suggested(case, tmp_path))
    assert text.index("as a structure of arrays\n") < text.index("moved by their warp side by side\n")
    by_hand = Case(RECORDS.format("i", "256 + i", "512 + i"), (32,), FLOATS)
    assert sectors(analyzed(by_hand.job(tmp_path, "by_hand.cu")), "load") == found.sectors[1]


@pytest.mark.parametrize(
    ("step", "widths", "expected"),
    [
        (16, {0: 4}, ((0, 4),)),
        (16, {0: 4, 8: 8}, ((0, 4), (8, 8))),
        (12, {4: 4, 8: 4}, ((4, 4), (8, 4))),
        (16, {0: 8, 4: 4}, None),  # they overlap
        (16, {12: 4, 0: 16}, None),
        (256, {0: 4}, None),  # a row of a matrix
        (4, {0: 4}, None),  # side by side
    ],
)
def test_which_accesses_are_fields_of_records(
    step: int, widths: dict[int, int], expected: tuple[tuple[int, int], ...] | None
) -> None:
    accesses = [
        (site(space="global", array="A", width=width, line=line), [Request(np.arange(32) * step + start)])
        for line, (start, width) in enumerate(widths.items(), 1)
    ]
    arrays = (("A", "global", 0, 32 * step),)
    found = fields(analyze_trace(make_trace(*accesses, arrays=arrays)))
    if expected is None:
        assert found == ()
        return
    (each,) = found
    assert (each.record, each.fields) == (step, expected)
    assert each.sectors[1] == sum(width for _, width in expected)  # 32 lanes, sectors of 32 bytes


TRANSPOSE = """
extern "C" __global__ void k(const float *in, float *out) {
    int x = threadIdx.x, y = threadIdx.y;
    for (int i = 0; i < 1; ++i) out[x * 32 + y] = in[y * 32 + x];
}
"""


@pytest.mark.slow
def test_a_naive_transpose_goes_by_way_of_shared_memory(tmp_path: Path) -> None:
    """32 stores of 32 sectors; from a tile, 32 of 4: as an edit, and as many as written by hand."""
    found = suggested(Case(TRANSPOSE, (32, 32), FLOATS), tmp_path)
    assert found.staging == ()  # nothing is left to be done by hand
    assert found.fields == ()  # a column is no field
    assert render(found).startswith(
        "k: 896 of 1,152 global sectors are not needed; "
        "896 of them are saved with the store of line 4 through a tile of shared memory"
    )
    assert "1,152 -> 256 global sectors" in render(found)  # 128 of them of the loads
    staged = """
extern "C" __global__ void k(const float *in, float *out) {
    __shared__ float tile[32][33];
    int x = threadIdx.x, y = threadIdx.y;
    tile[x][y] = in[y * 32 + x];
    __syncthreads();
    out[y * 32 + x] = tile[y][x];
}
"""
    by_hand = Case(staged, (32, 32), FLOATS)
    assert sectors(analyzed(by_hand.job(tmp_path, "by_hand.cu")), "store") == 256 - 128


POINTS = """
extern "C" __global__ void k(const float *in, float *out) {
    float x = in[threadIdx.x * 3], y = in[threadIdx.x * 3 + 1], z = in[threadIdx.x * 3 + 2];
    out[threadIdx.x] = x * x + y * y + z * z;
}
"""


@pytest.mark.slow
def test_sectors_that_the_bound_is_not_made_of(tmp_path: Path) -> None:
    """Each sector of records of 12 bytes is loaded three times, by fewer cycles than the instructions take.

    The naive transpose above, which the sectors hold up, is told nothing of the kind.
    """
    case = Case(POINTS, (128,), ((384, "float32"), (128, "float32")))
    first = " ".join(render(suggested(case, tmp_path)).partition("(")[0].split())
    assert first.startswith(
        "k: 96 of 160 global sectors are not needed, "
        "without which the lower bound, by instruction issue, would be the same; "
    )


@pytest.mark.slow
def test_counts_of_the_first_block_are_scaled_to_the_launch_and_rounds_share_a_tile(tmp_path: Path) -> None:
    """4 blocks; each copies 2 tiles, one after the other, into shared memory down the columns."""
    text = """
extern "C" __global__ void k(const float *in, float *out) {
    __shared__ float tile[32][33];
    int x = threadIdx.x, y = threadIdx.y;
    float sum = 0;
    for (int i = 0; i < 2; ++i) {
        tile[x][y] = in[(blockIdx.x * 2 + i) * 1024 + x * 32 + y];
        __syncthreads();
        sum += tile[y][x];
        __syncthreads();
    }
    out[blockIdx.x * 1024 + y * 32 + x] = sum;
}
"""
    case = Case(text, (32, 32), ((8192, "float32"), (4096, "float32")))
    job = replace(case.job(tmp_path), launch=Launch((4, 1, 1), (32, 32, 1)))
    found = suggest(analyzed(job), job)
    (load,) = found.staging
    assert (load.fills, load.room, load.sectors) == (True, 4096, (2048, 256))
    shown = render(found)
    assert "in, k.cu:7: the copy into shared memory by neighbouring lanes" in shown
    assert "8,192 -> about 1,024 global sectors, scaled from the first block" in shown


@pytest.mark.slow
def test_what_does_not_fit_or_is_scattered_is_not_staged(tmp_path: Path) -> None:
    """All of static shared memory is in use; and lanes that are whole sectors apart leave nothing to save."""
    full = TRANSPOSE.replace("int x =", "__shared__ volatile float all[12288]; all[threadIdx.x] = 0; int x =")
    assert suggested(Case(full, (32, 32), FLOATS), tmp_path).staging == ()
    apart = TRANSPOSE.replace("out[x * 32 + y]", "out[(x + y * 32) * 8 % 1024]").replace("y * 32 + x]", "0]")
    assert suggested(Case(apart, (32, 1), FLOATS), tmp_path).staging == ()


def test_a_block_that_makes_too_many_requests_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Case(TRANSPOSE, (32, 32), FLOATS).job(tmp_path)
    analysis = analyzed(job)
    assert first_block(job, analysis) is not None
    monkeypatch.setattr("memsim.suggest.global_accesses.MOST_REQUESTS", 63)
    assert first_block(job, analysis) is None
