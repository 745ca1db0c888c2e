"""Lanes in another order: counted on recorded requests, written into the source, replayed, and run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsim.analysis import analyze_trace
from memsim.kernels import catalog
from memsim.launch import Launch
from memsim.suggest import suggest
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.other_values import SAME, at_other_values
from memsim.suggest.prove import differing_results
from memsim.suggest.threads import (
    Renumbering,
    _renumbered,
    renumber,
    trace_with_renumbered_lanes,
    work_of,
)
from memsim.views.suggest.terminal import render
from tests.model import oracle
from tests.suggest.kernels import Case, analyzed
from tests.traces import Request, make_trace, site

# 16 bytes each: 16 columns in the first half of the warp, the same again in the second.
COLUMNS_TWICE = np.arange(32) % 16 * 16


def test_lanes_that_ask_for_the_same_become_neighbours() -> None:
    """16 columns, asked for twice: 4 groups of 8 lanes; as neighbours that share, 2 groups of 16."""
    analysis = analyze_trace(
        make_trace((site(width=16), [Request(COLUMNS_TWICE, count=5)]), launch=Launch((1, 1, 1), (32, 1, 1)))
    )
    assert analysis.sites[0].wavefronts == 5 * 4
    found = renumber(analysis)
    assert found is not None
    assert found.wavefronts == (5 * 4, 5 * 2)
    assert found.name == "lanes transposed, as 2 x 16 become 16 x 2"
    moved = COLUMNS_TWICE[work_of(found.order)].tolist()
    assert oracle.shared(moved, 16, "load", [True] * 32)["wavefronts"] == 2
    # What it is called: row and column change places.
    assert work_of(found.order).tolist() == np.arange(32).reshape(2, 16).T.reshape(-1).tolist()


def test_where_lanes_speak_to_each_other_or_warps_are_not_whole_nothing_is_renumbered() -> None:
    accesses = (site(width=16), [Request(COLUMNS_TWICE)])
    whole, half = (Launch((1, 1, 1), (threads, 1, 1)) for threads in (32, 48))
    plain = ((0, "HFMA2.MMA R0, -RZ, RZ, 0, 0", "", 0), (16, "LDS.128 R0, [R1]", "", 0))
    assert renumber(analyze_trace(make_trace(accesses, launch=whole, listing=plain))) is not None
    assert renumber(analyze_trace(make_trace(accesses, launch=half))) is None
    for text in ("SHFL.BFLY PT, R0, R1, 0x1, 0x1f", "HMMA.16816.F32 R0, R4, R8, R0", "S2R R0, SR_LANEID"):
        spoken = make_trace(accesses, launch=whole, listing=(*plain, (32, text, "", 0)))
        assert renumber(analyze_trace(spoken)) is None
    matrix = (site(op="ldmatrix", width=16), [Request(np.arange(32) * 16)])
    assert renumber(analyze_trace(make_trace(accesses, matrix, launch=whole))) is None


@settings(max_examples=20)
@given(st.permutations(range(5)), st.sampled_from([(32, 1), (256, 1), (8, 8), (16, 4), (64, 2), (4, 16)]))
def test_what_is_written_is_what_was_counted(order: list[int], shape: tuple[int, int]) -> None:
    """The expressions, evaluated for every thread, give the lane whose work it does; other warps stay."""
    launch = Launch((1, 1, 1), (*shape, 1))
    analysis = analyze_trace(make_trace((site(width=16), [Request(COLUMNS_TWICE)]), launch=launch))
    written = Renumbering(analysis, tuple(order)).instead(launch)
    assert written is not None
    thread = np.arange(shape[0] * shape[1])
    at = {"x": thread % shape[0], "y": thread // shape[0]}

    def value(axis: str) -> np.ndarray:
        text = written.get(axis, f"threadIdx.{axis}").replace("threadIdx.", "")
        return np.asarray(eval(text, {}, at))

    got = value("x") + shape[0] * value("y")
    assert np.array_equal(got, thread // 32 * 32 + work_of(tuple(order))[thread % 32])


@pytest.mark.parametrize("shape", [(48, 2), (12, 8), (8, 3)])
def test_rows_that_are_no_power_of_two_are_not_written(shape: tuple[int, int]) -> None:
    launch = Launch((1, 1, 1), (*shape, 1))
    analysis = analyze_trace(make_trace((site(width=16), [Request(COLUMNS_TWICE)])))
    assert Renumbering(analysis, (1, 2, 3, 4, 0)).instead(launch) is None


def test_any_order_of_a_request_of_words_costs_the_same() -> None:
    words = make_trace((site(), [Request(np.arange(32) * 8)]), launch=Launch((1, 1, 1), (32, 1, 1)))
    order = (4, 2, 0, 1, 3)
    one, other = (
        analyze_trace(trace).sites[0].wavefronts
        for trace in (words, trace_with_renumbered_lanes(words, order))
    )
    assert one == other == 2
    assert renumber(analyze_trace(words)) is None


@pytest.mark.parametrize("kernel", ["kernel_v4_padded", pytest.param("guide_v10", marks=pytest.mark.slow)])
def test_the_lanes_of_a_product_are_renumbered_as_forecast(kernel: str) -> None:
    """A float4 of s_b for each of 16 columns, in two rows of threads that ask for the same."""
    job = catalog()[kernel].job((128, 128, 16))
    before = analyzed(job)
    counted = renumber(before)
    assert counted is not None
    found = suggest(before, job)
    remap = found.remapped[-1]
    assert remap.name == "lanes transposed, as 2 x 16 become 16 x 2"
    assert remap.wavefronts == counted.wavefronts
    assert remap.sectors[0] == remap.sectors[1]
    assert found.lanes is None  # it is proven, and not said again
    assert differing_results(job, remap.job) == ()


# A float4 for each of 8 columns, which four lanes of a row of 8 threads ask for; rows that wrap at any width.
PAIRS = Case(
    """
extern "C" __global__ void k(const float4 *in, float4 *out) {
    __shared__ float4 tile[512];
    int t = threadIdx.y * blockDim.x + threadIdx.x;
    for (int i = t; i < 512; i += blockDim.x * blockDim.y) tile[i] = in[i];
    __syncthreads();
    for (int i = 0; i < 8; ++i) out[i * blockDim.x * blockDim.y + t] = tile[threadIdx.x % 16 * 4 + i];
}
""",
    (32, 2),
    ((4096, "float32"), (65536, "float32")),
)


@pytest.mark.slow
def test_lanes_are_renumbered_in_blocks_with_such_rows_and_left_alone_in_others(tmp_path: Path) -> None:
    """Rows of 16 threads are half a warp, rows of 48 have no order of five bits, and rows of 64 have six."""
    job = PAIRS.job(tmp_path)
    before = analyzed(job)
    order = (1, 2, 3, 4, 0)
    found = _renumbered(job, Renumbering(before, order))
    assert found is not None
    assert "(blockDim.x % 32 == 0 ? ((threadIdx.x & ~31) | " in found.edit.new  # a row may be two warps
    tried = list(at_other_values(job, found))
    assert {one.value for one in tried if one.name == "blockDim.x" and one.outcome == SAME} >= {16, 48, 64}
    assert not any(one.is_wrong for one in tried)
    text = found.edit.new.replace("blockDim.x % 32 == 0 ?", "true ?")
    assert text != found.edit.new
    careless = Edit(found.edit.file, found.edit.text, _whole(found.edit.text, text), names=found.edit.names)
    assert any(one.is_wrong for one in at_other_values(job, replace(found, edit=careless)))


def _whole(old: str, new: str) -> tuple[Replacement, ...]:
    return (Replacement(0, len(old), new),)


@pytest.mark.slow
def test_what_reads_its_thread_elsewhere_is_left_to_be_done_by_hand(tmp_path: Path) -> None:
    case = Case(
        """
__device__ int me() { return threadIdx.x; }
__global__ void other(int *p) { *p = 0; }
extern "C" __global__ void k(const float4 *in, float4 *out) {
    __shared__ float4 tile[32];
    tile[me()] = in[me()];
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x % 16];
    out[threadIdx.x + 32] = tile[threadIdx.x % 16 ^ 1];
    out[threadIdx.x + 64] = tile[threadIdx.x % 16 ^ 2];
}
""",
        (32,),
        ((128, "float32"), (384, "float32")),
    )
    job = case.job(tmp_path)
    found = suggest(analyzed(job), job)
    assert found.remapped == ()
    assert found.lanes is not None
    assert "By hand: each thread does the work of the lane whose number has its bit 1 as bit 0" in render(
        found
    )
    assert found.to_dict()["lanes"]["bits"] == [1, 2, 3, 4, 0]
