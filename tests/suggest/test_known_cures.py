"""Conflicts whose best cure is known: it is found, written into the source, replayed, and computes the same.

`best` is the number of wavefronts of all requests of the array without any conflict, by the arithmetic beside
it: nothing is below that, so that what reaches it is the best. Where the compiler does not join accesses, a
request of 4 bytes a lane is 1 wavefront, of 16 bytes 4 (8 lanes each), of ldmatrix.x4 4 (a matrix each).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memsim.analysis import analyze_trace
from memsim.api import running
from memsim.job import Job
from memsim.kernels import catalog
from memsim.suggest import suggest
from memsim.suggest.maps import Padding, XorSwizzle
from memsim.suggest.prove import differing_results
from memsim.trace.trace import Trace
from memsim.views.suggest.terminal import render
from tests.model import oracle
from tests.suggest.kernels import (
    BLOCK_TRANSPOSE,
    STRIDE_16,
    Case,
    analyzed,
    copied_tile,
    ldmatrix_tile,
    transpose,
)


def of_catalogue(name: str) -> Job:
    """A kernel of the catalogue with one block and two steps along K, or one tile."""
    spec = catalog()[name]
    return spec.job((128, 128, 16) if spec.family.name == "sgemm" else (32, 32))


# The SGEMMs have 8 warps and make 2 steps. A tile of 1024 floats is stored by 8 requests of 16 bytes, 32
# wavefronts, or by 32 of 4 bytes, 32 wavefronts too. A warp reads, 8 times a step (once for each k):
#   8 floats of s_a one by one: 8 wavefronts; as two float4, of which 16 lanes share each: 2 * 2
#   two float4 of s_b for 16 columns, which no neighbouring lanes share: 2 * 4
STEPS, WARPS, K = 2, 8, 8
FILL = 32 * STEPS
ONE_BY_ONE = WARPS * K * 8 * STEPS
SHARED_FLOAT4 = WARPS * K * 4 * STEPS
FLOAT4 = WARPS * K * 8 * STEPS


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("kernel", "best"),
    [
        ("transpose_naive", {"tile": 32 + 32}),
        pytest.param("kernel_v3", {"s_a": FILL + ONE_BY_ONE, "s_b": FILL + FLOAT4}, marks=pytest.mark.slow),
        pytest.param(
            "ada_decoupled", {"s_a": FILL + ONE_BY_ONE, "s_b": FILL + FLOAT4}, marks=pytest.mark.slow
        ),
        pytest.param(
            "opt_6_double_buffer", {"s_a": FILL + SHARED_FLOAT4, "s_b": FILL + FLOAT4}, marks=pytest.mark.slow
        ),
        ("kernel_v4_colmajor", {"s_a": FILL + SHARED_FLOAT4}),
        pytest.param("guide_v10", {"s_a": FILL + SHARED_FLOAT4}, marks=pytest.mark.slow),
    ],
)
def test_kernels_of_the_catalogue(kernel: str, best: dict[str, int]) -> None:
    job = of_catalogue(kernel)
    found = suggest(analyzed(job), job)
    cures = {entry.tile.name: entry.proposals[0].cost for entry in found.advice if entry.conflicts}
    assert {name: cost.wavefronts for name, cost in cures.items()} == best
    assert all(cost.certain for cost in cures.values())
    assert found.proof is not None
    assert found.proof.holds
    assert found.proof.counted == best
    assert differing_results(job, found.proof.job) == ()


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("case", "best"),
    [
        (transpose("float tile[32][32]"), 32 + 32),
        # 8 warps store and load 2 rows each.
        pytest.param(STRIDE_16, 8 + 8, marks=pytest.mark.slow),
        # 16 rows of 64, 128, 256 bytes: 2, 4, 8 stores of 512 bytes and as many ldmatrix.x4.
        pytest.param(ldmatrix_tile(32), 2 * 4 * 2, marks=pytest.mark.slow),
        (ldmatrix_tile(64), 2 * 4 * 4),
        pytest.param(ldmatrix_tile(128), 2 * 4 * 8, marks=pytest.mark.slow),
        # 2 warps read 4 times by ldmatrix.x4; copies past the cache count no wavefront.
        pytest.param(copied_tile("cg"), 2 * 4 * 4, marks=pytest.mark.slow),
        # 8 stores of 512 bytes, and 32 loads down a column: all 32 words have the same place in 16 bytes that
        # stay together, for which there are 8 banks.
        pytest.param(BLOCK_TRANSPOSE, 8 * 4 + 32 * 4, marks=pytest.mark.slow),
    ],
    ids=[
        "transpose",
        "stride 16",
        "ldmatrix 64 B",
        "ldmatrix 128 B",
        "ldmatrix 256 B",
        "copies",
        "block transpose",
    ],
)
def test_kernels_of_a_user(case: Case, best: int, tmp_path: Path) -> None:
    job = case.job(tmp_path)
    found = suggest(analyzed(job), job)
    (entry,) = found.advice
    first = entry.proposals[0]
    assert (first.cost.wavefronts, first.cost.most, entry.least) == (best, best, best)
    assert found.proof is not None
    assert found.proof.holds
    # The first has the lowest bound, and may take more wavefronts for it.
    fewest = min((found.proof, *found.tried), key=lambda proof: proof.counted["tile"])
    assert fewest.counted == {"tile": best}
    assert found.proof.analysis.bound.cycles <= fewest.analysis.bound.cycles
    assert found.proof is fewest or found.proof.analysis.bound.cycles < fewest.analysis.bound.cycles
    assert differing_results(job, found.proof.job) == ()


@pytest.mark.slow
def test_the_swizzles_are_those_that_libraries_use(tmp_path: Path) -> None:
    """Of half-precision rows of 64, 128 and 256 bytes: CuTe's Swizzle<2,3,3>, <3,3,3> and <3,3,4>."""
    for halves, expected in ((32, (2, 4, 128)), (64, (3, 4, 128)), (128, (3, 4, 256))):
        found = suggest(analyzed(ldmatrix_tile(halves).job(tmp_path)))
        (change,) = (one for each in found.proposals if isinstance(one := each.change, XorSwizzle))
        assert (change.bits, change.base, change.every) == expected


def test_room_that_may_be_used_elsewhere_is_not_given_away(tmp_path: Path) -> None:
    """The array of 17 rows takes the padding of 16 of them, as all places are known to be in 16."""
    job = STRIDE_16.job(tmp_path)
    for apart, extra in ((True, 0), (False, 72)):
        found = suggest(analyzed(job, apart=apart))
        padding = next(each for each in found.proposals if isinstance(each.change, Padding))
        assert padding.extra == extra


def test_no_padding_of_rows_is_as_good_as_what_is_found_for_the_tile_of_stride_16() -> None:
    """By the scalar rules, one by one: the 17th column that everybody adds leaves conflicts of two rows."""
    requests = [[(2 * warp + lane // 16) * 64 + lane % 16 * 4 for lane in range(32)] for warp in range(8)]
    requests += [[lane % 16 * 64 + (2 * warp + lane // 16) * 4 for lane in range(32)] for warp in range(8)]

    def cost(place: dict[int, int]) -> int:
        moved = [[place[address] for address in lanes] for lanes in requests]
        return sum(oracle.shared(lanes, 4, "load", [True] * 32)["wavefronts"] for lanes in moved)

    words = range(0, 1024, 4)
    by_rows = [cost({w: w + w // 64 * padding * 4 for w in words}) for padding in range(33)]
    by_two_rows = [cost({w: w + w // 128 * padding * 4 for w in words}) for padding in range(33)]
    assert (by_rows[0], by_rows[1], min(by_rows)) == (72, 32, 24)
    assert by_two_rows[2] == min(by_two_rows) == 16


@pytest.mark.slow
def test_where_nothing_helps_the_best_possible_is_told() -> None:
    job = of_catalogue("kernel_v4_padded")
    found = suggest(analyzed(job), job)
    assert found.proposals == ()
    assert found.proof is None
    assert [entry.least for entry in found.advice] == [entry.wavefronts for entry in found.advice]
    assert render(found).startswith("kernel_v4_padded: no bank conflict, so no other layout saves a")


def test_a_bound_that_no_layout_reaches_is_told() -> None:
    """permuted_write asks by XORed rows and columns: 1 wavefront each would be 64, 96 is what was found."""
    found = suggest(analyzed(of_catalogue("permuted_write")))
    (entry,) = found.advice
    assert entry.proposals[0].cost.most == 96 > entry.least == 64
    assert "no layout at all can take fewer than 64" in render(found)


def test_a_saved_trace_gets_the_same_proposals(tmp_path: Path) -> None:
    job = of_catalogue("transpose_naive")
    running.trace_job(job).save(tmp_path / "t.npz")
    found = suggest(analyze_trace(Trace.load(tmp_path / "t.npz")))
    assert [proposal.change for proposal in found.proposals] == [Padding(128, 4), XorSwizzle(128, 5, 2)]
    assert "Not proven by replay: there is no source" in render(found)


@pytest.mark.slow
def test_what_is_forecast_is_what_the_moved_trace_counts(tmp_path: Path) -> None:
    for case in (ldmatrix_tile(64), STRIDE_16):
        for proposal in suggest(analyzed(case.job(tmp_path))).proposals:
            rows = [proposal.after.sites[number] for number in proposal.tile.sites]
            assert sum(row.wavefronts or 0 for row in rows) == proposal.cost.wavefronts
            sizes = {name: size for name, _, _, size in proposal.after.trace.arrays}
            assert sizes["tile"] == proposal.tile.size + proposal.extra
            assert np.array_equal(proposal.after.trace.count, proposal.before.trace.count)


@pytest.mark.slow
def test_what_saves_next_to_nothing_is_not_proposed(tmp_path: Path) -> None:
    """Which lanes of a histogram collide is up to its data: a layout that spares a few fits no other."""
    text = """
extern "C" __global__ void k(const unsigned char *in, unsigned *out) {
    __shared__ unsigned bins[256];
    int t = threadIdx.x;
    bins[t] = 0;
    __syncthreads();
    for (int i = t; i < 16384; i += 256) atomicAdd(&bins[in[i]], 1u);
    __syncthreads();
    out[t] = bins[t];
}
"""
    found = suggest(analyzed(Case(text, (256,), ((16384, "uint8"), (256, "uint32"))).job(tmp_path)))
    (entry,) = found.advice
    assert entry.conflicts and not entry.proposals
    assert "and no layout tried saves 5 % of them" in render(found)
    assert f"no layout at all can take fewer than {entry.least:,}." in render(found)
