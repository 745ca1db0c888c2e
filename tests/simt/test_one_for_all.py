"""Shared atomics on one address: where one lane does them for its warp, where each lane for itself.

Evidence: the SASS of ptxas 13.0 for sm_90. One lane: VOTEU, REDUX or POPC, and `@P0 ATOMS.ADD` for the lane
that FLO found; each for itself: ATOMS alone; both: `VOTE.ANY`, compared with all 32 lanes.
"""

from __future__ import annotations

import numpy as np
import pytest

from memsim import Analysis, analyze, load
from memsim.compile import compile_cuda

FRAME = """
extern "C" __global__ void k(int *out, const int *in, int n) {{
    __shared__ int s[64];
    const int i = threadIdx.x, x = in[i];
    {body}
}}
"""

# One lane asks for all that are there.
ONE = {
    "sum": "atomicAdd(s, x);",
    "constant": "atomicAdd(s + 3, 5);",
    "minus": "atomicSub(s, x);",
    "maximum": "atomicMax(s, x);",
    "unsigned minimum": "atomicMin((unsigned *)s, (unsigned)x);",
    "and": "atomicAnd(s, x);",
    "or": "atomicOr(s, x);",
    "xor": "atomicXor(s, x);",
    "place of a parameter": "atomicMax(s + n % 8, x);",
    "place of the block": "atomicMax(s + blockIdx.x, x);",
    "loaded place": "atomicMax(s + (in[n] & 7), x);",
    "voted place": "atomicMax(s + __popc(__ballot_sync(~0u, x > 3)), x);",
    "place of lane 0": "atomicMax(s + (__shfl_sync(~0u, x, 0) & 7), x);",
    "in a branch": "if (x > 3) { atomicMax(s, x); out[i] = 1; }",
    "in a loop of own length": "for (int t = 0; t < x; t++) { atomicMax(s, in[t]); __threadfence(); }",
    "place of the round": "for (int t = 0; t < n; t++) { atomicMax(s + t, x); __threadfence(); }",
    "number": "out[i] = atomicAdd(s, 1);",
    "number of some": "if (x > 3) out[i] = atomicAdd(s, 1);",
    "same step": "out[i] = atomicAdd(s, n);",
}

# Each lane asks for itself, though all ask for one address.
EACH = {
    "place of the warp": "atomicMax(s + (i >> 5), x);",
    "place of the lane's data": "atomicMax(s + in[i + 64], x);",
    "place of another lane's": "atomicMax(s + __shfl_xor_sync(~0u, in[i + 64], 1), x);",
    "place by another atomic": "atomicMax(s + atomicOr(out, 0), x);",
    "row of threads": "atomicMax(s + threadIdx.y, x);",
    "old maximum": "out[i] = atomicMax(s, x);",
    "old bits": "out[i] = atomicOr(s, x);",
    "exchange": "atomicExch(s, x);",
    "wrapping": "atomicInc((unsigned *)s, 7u);",
}

# It depends on what ptxas finds out, or on how it takes loops apart.
UNSURE = {
    "either of two places": "int j = 0; if (x > 3) { j = n; out[i] = 1; } atomicMax(s + (j >> 3), x);",
    "behind a loop": """
        int t = 0, j = 0;
        do { j = in[n + t]; t++; __threadfence(); } while (t < x);
        atomicMax(s + (j & 32), x);""",
    "by a routine": "atomicMax(s + (int)((float)n / (float)gridDim.x) % 8, x);",
}

WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"


def analyzed(body: str, lanes: int = 64, given: np.ndarray | None = None) -> Analysis:
    kernel = load(compile_cuda(FRAME.format(body=body), name="k.cu"), code="ptx")["k"]
    numbers = np.zeros(256, np.int32)
    numbers[:64] = np.arange(64) % 7
    return analyze(kernel, 2, lanes, [np.zeros(64, np.int32), numbers if given is None else given, 5])


def lanes_asking(found: Analysis) -> tuple[list[int], list[int]]:
    """Of each distinct request of the shared atomic: how many lanes ask, and how often it is made."""
    trace = found.trace
    places = [i for i, site in enumerate(trace.sites) if site.space == "shared"]
    rows = np.isin(trace.site, places)
    return trace.active[rows].sum(1).tolist(), trace.count[rows].tolist()


@pytest.mark.parametrize("name", ONE)
def test_one_lane_asks_for_its_warp(name: str) -> None:
    found = analyzed(ONE[name])
    (row,) = (row for row in found.sites if row.space == "shared")
    assert set(lanes_asking(found)[0]) == {1}
    assert row.wavefronts == row.requests == found.totals[WAVEFRONTS]
    assert (row.conflicts, row.max_ways) == (0, 1)


@pytest.mark.parametrize("name", EACH)
def test_each_lane_asks_for_itself(name: str) -> None:
    found = analyzed(EACH[name])
    (row,) = (row for row in found.sites if row.space == "shared")
    assert lanes_asking(found)[0] in ([32], [32, 32])
    assert (row.requests, row.wavefronts, row.max_ways) == (4, 4 * 32, 32)


@pytest.mark.parametrize("name", UNSURE)
def test_what_is_not_known_is_not_counted(name: str) -> None:
    found = analyzed(UNSURE[name])
    (row,) = (row for row in found.sites if row.space == "shared")
    assert row.unresolved is not None
    assert "ptxas's choice" in row.unresolved
    assert (row.instructions, row.wavefronts, found.totals[WAVEFRONTS]) == (4, None, None)


def test_where_lanes_differ_nothing_is_to_be_known() -> None:
    body = "int j = 0; if (x > 3) { j = n; out[i] = 1; } atomicMax(s + (j * i & 31), x);"
    found = analyzed(body, 32)
    (row,) = (row for row in found.sites if row.space == "shared")
    assert row.unresolved is None
    assert row.wavefronts == 2 * sum(x <= 3 or i == 0 for i, x in enumerate(np.arange(32) % 7))


@pytest.mark.parametrize(("lanes", "asking", "wavefronts"), [(32, [1], 2), (31, [31], 62), (40, [1, 8], 18)])
def test_a_read_sum_of_own_numbers_is_taken_together_in_full_warps(
    lanes: int, asking: list[int], wavefronts: int
) -> None:
    found = analyzed("out[i] = atomicAdd(s, x);", lanes)
    (row,) = (row for row in found.sites if row.space == "shared")
    assert sorted(lanes_asking(found)[0]) == sorted(asking)
    assert row.wavefronts == wavefronts


@pytest.mark.parametrize(("shape", "is_known"), [((64, 1), True), ((8, 8), False)])
def test_a_thread_picked_by_its_number(shape: tuple[int, int], is_known: bool) -> None:
    """Behind `threadIdx.x == 0` ptxas counts on one lane, and has each do its own where there are more."""
    ptx = compile_cuda(FRAME.format(body="if (i == 0) atomicMax(s, x);"), name="k.cu")
    kernel = load(ptx, code="ptx")["k"]
    arrays = [np.zeros(64, np.int32), np.zeros(256, np.int32), 5]
    (row,) = (row for row in analyze(kernel, 1, shape, arrays).sites if row.space == "shared")
    assert (row.unresolved is None) == is_known
    assert row.wavefronts == (1 if is_known else None)


def test_a_block_of_known_shape_leaves_it_to_ptxas() -> None:
    """With `.reqntid 64, 1, 1` ptxas knows that the warp's number is the same in a warp, and so forth."""
    ptx = compile_cuda(FRAME.format(body="atomicMax(s + (i >> 5), x);"), name="k.cu")
    assert ptx.count(")\n{") == 1
    kernel = load(ptx.replace(")\n{", ")\n.reqntid 64, 1, 1\n{"), code="ptx")["k"]
    arrays = [np.zeros(64, np.int32), np.zeros(256, np.int32), 5]
    (row,) = (row for row in analyze(kernel, 1, 64, arrays).sites if row.space == "shared")
    assert row.unresolved is not None


def test_global_atomics_are_left_alone() -> None:
    """One lane or 32 at one address: as many requests, sectors and lines."""
    (row,) = (row for row in analyzed("atomicAdd(out, x);").sites if row.op == "atomic")
    assert (row.requests, row.sectors, row.lines, row.ideal_sectors) == (4, 4, 4, 4)
