"""Totals that are not certain are no numbers: what is known of them stands beside them, with the reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import memsim
from memsim.analysis import Analysis, Range, analyze_trace
from memsim.counts import total
from memsim.launch import Launch
from memsim.views.analyze.costs import limits_of_totals
from tests.simt.cuda import kernels_of
from tests.traces import LANES, Request, make_trace, site

CLEAN = Request(LANES * 4, count=10)
LOAD, READ = site(), site(space="global", array="A", line=4)
LDS_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
LDG_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
STS_WAVEFRONTS = LDS_WAVEFRONTS.replace("_ld.", "_st.")
ATOM_WAVEFRONTS = LDS_WAVEFRONTS.replace("_ld.", "_atom.")
LDL_REQUESTS, STL_REQUESTS = (f"l1tex__t_requests_pipe_lsu_mem_local_op_{op}.sum" for op in ("ld", "st"))

SOURCE = r"""
#include <cstdio>
__device__ void turned(float *out, const float *in) {
    __shared__ float s[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x ^ 1] = in[i];
    __syncthreads();
    out[i] = s[threadIdx.x];
}
extern "C" __global__ void quiet(float *out, const float *in) { turned(out, in); }
extern "C" __global__ void prints(float *out, const float *in) {
    turned(out, in);
    if (threadIdx.x == 3) printf("block %d\n", blockIdx.x);
}
extern "C" __global__ void seldom(float *out, const float *in) {
    turned(out, in);
    if (blockIdx.x == 99) printf("block %d\n", blockIdx.x);
}
extern "C" __global__ void locked(int *lock, int *sum) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;
    __syncwarp();
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1)) { if (sum[1]) sum[2] = 3; }
        *(volatile int *)sum += s[31];
        atomicExch(lock, 0);
    }
}
"""


def analysis(name: str) -> Analysis:
    arguments = [np.zeros(32, np.int32)] * 2 if name == "locked" else [np.zeros(512, np.float32)] * 2
    block = 32 if name == "locked" else 128
    return memsim.analyze(kernels_of(SOURCE)[name], 4, block, [one.copy() for one in arguments])


def test_what_printf_does_is_named_and_takes_no_count_away() -> None:
    """A total is at least what the kernel itself counts; one that printf does not reach is that."""
    quiet, prints = analysis("quiet"), analysis("prints")
    assert quiet.undecided == {} and None not in quiet.totals.values()
    assert prints.trace.uncounted == {"printf call": 4}
    assert prints.verdict.startswith("prints: 4 printf calls are not counted; the rest is conflict-free")
    assert [row for row in prints.sites if row.unresolved] == []
    assert prints.totals[LDS_WAVEFRONTS] == quiet.totals[LDS_WAVEFRONTS] == 16
    for metric, limits in prints.undecided.items():
        own = quiet.totals.get(metric, 0)
        assert prints.totals[metric] is None and own is not None
        if metric not in quiet.totals:  # the caller may load constants by their index for it
            assert metric == "idc__requests.sum" and limits.least > 0
        elif "local" in metric:  # the caller stores the arguments, and that is counted
            assert limits.least == (0 if "_ld." in metric else 4)
        else:
            assert limits == Range("4 printf calls are not counted", least=own)
    assert prints.undecided[STL_REQUESTS].least == 4


def test_a_printf_that_nobody_calls_changes_nothing() -> None:
    seldom = analysis("seldom")
    assert seldom.trace.uncounted == {} and seldom.undecided == {}
    assert {metric: count for metric, count in seldom.totals.items() if count} == {
        metric: count for metric, count in analysis("quiet").totals.items() if count
    }


def test_what_a_lock_counts_is_no_fact() -> None:
    """How often it goes round depends on time; what it gives in one order is an estimate."""
    found = analysis("locked")
    assert found.trace.uncertain
    made = {metric for metric, count in found.totals.items() if count is None}
    assert made == set(found.undecided)
    of_loads = found.undecided[LDG_SECTORS]
    assert of_loads.estimate == sum(row.sectors or 0 for row in found.sites if row.op == "load") > 0
    assert not of_loads.is_limited and str(of_loads) == "not known"
    # stores that no warp made here, but that another order of warps makes
    stores = found.undecided[LDG_SECTORS.replace("_ld.", "_st.")]
    assert stores.estimate is not None
    # no instruction of the kernel counts there, in any order
    assert found.totals[ATOM_WAVEFRONTS] == 0 and found.totals[LDL_REQUESTS] == 0


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([3, 4], 7),
        ([3, Range("a", 1, 5)], Range("a", 4, 8)),
        ([Range("a", 1, 5, 2), Range("b", 0, None, 1)], Range("a; b", 1, None, 3)),
        ([Range("a", 2, 2), 1], 3),
        ([Range("a"), Range("a")], Range("a")),
    ],
)
def test_sums_have_the_limits_of_their_parts(counts: list[int | Range], expected: int | Range) -> None:
    assert total(counts) == expected


@pytest.mark.parametrize(
    ("limits", "text", "inside", "outside"),
    [
        (Range("", 32, 1024), "at least 32, at most 1,024", (32, 1024), (31, 1025)),
        (Range("", 5), "at least 5", (5, 10**9), (4,)),
        (Range("", 0, 5), "at least 0, at most 5", (0, 5), (6,)),
        (Range(""), "not known", (0, 7), ()),
    ],
)
def test_limits_in_words(limits: Range, text: str, inside: tuple[int, ...], outside: tuple[int, ...]) -> None:
    assert str(limits) == text
    assert all(count in limits for count in inside) and not any(count in limits for count in outside)


def test_an_access_that_is_not_analyzed_leaves_its_totals_open() -> None:
    unknown = site(line=9, unresolved="it depends on a call")
    found = analyze_trace(make_trace((LOAD, [CLEAN]), (unknown, []), (READ, [CLEAN])))
    assert found.undecided[LDS_WAVEFRONTS] == Range("it depends on a call", least=10)
    assert LDG_SECTORS not in found.undecided and found.totals[LDG_SECTORS] == 40


def test_requests_of_other_tools_traces_to_local_memory_are_not_zero() -> None:
    found = analyze_trace(make_trace((READ, [CLEAN]), uncounted={"local memory request": 4}))
    assert found.totals[LDL_REQUESTS] is None and found.totals[LDG_SECTORS] == 40
    textured = analyze_trace(make_trace((READ, [CLEAN]), uncounted={"texture request": 4}))
    assert textured.totals[LDL_REQUESTS] == 0
    unheard_of = analyze_trace(make_trace((READ, [CLEAN]), uncounted={"LDX request": 4}))
    assert unheard_of.undecided[LDG_SECTORS].least == 40


def test_many_totals_of_one_reason_are_one_line() -> None:
    few = analyze_trace(make_trace((LOAD, [CLEAN]), uncounted={"local memory request": 4}))
    many = analyze_trace(make_trace((LOAD, [CLEAN]), uncounted={"printf call": 4}))
    told = "Not certain: {} of ncu's metrics, whose limits --metrics shows: 4 {} are not counted"
    assert list(limits_of_totals(few)) == [told.format(5, "local memory requests")]
    assert list(limits_of_totals(many)) == [told.format(len(many.undecided), "printf calls")]
    assert list(limits_of_totals(analyze_trace(make_trace((LOAD, [CLEAN]))))) == []


COPY_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum"


def test_conflicts_of_a_copy_have_the_limits_of_hits_and_misses() -> None:
    """Four rows of eight lanes, which may be read together or lane by lane."""
    rows = LANES // 8 * 4096 + LANES % 8 * 4
    many, other = site(op="cp_async"), site(op="cp_async", space="global", array="in")
    trace = make_trace(
        (many, [Request(LANES * 4, count=10, partner=rows)]),
        (other, [Request(rows, count=10, partner=LANES * 4)]),
    )
    for block, most in ((32, 10 * 31), (64, None)):  # of several warps arbitration adds some
        found = analyze_trace(replace(trace, launch=Launch((1, 1, 1), (block, 1, 1))))
        limits = found.undecided[COPY_CONFLICTS]
        assert found.totals[COPY_CONFLICTS] is None
        assert (limits.least, limits.most, limits.estimate) == (0, most, found.sites[0].conflicts)
        assert found.sites[0].ranges == {"conflicts": limits}
        assert "if they miss the L1 cache" in limits.why
        assert ("arbitration between warps" in limits.why) == (most is None)


def test_conflicts_of_a_copy_side_by_side_are_a_number() -> None:
    found = analyze_trace(make_trace((site(op="cp_async"), [Request(LANES * 4, partner=LANES * 4)])))
    assert found.totals[COPY_CONFLICTS] == 0 and found.sites[0].ranges == {}


@pytest.mark.parametrize(
    ("instruction", "sectors"),
    [
        ("LDGSTS.E.BYPASS.128 [R3], desc[UR4][R2.64]", 16),
        ("@P3 LDGSTS.E.BYPASS.128 [R3], desc[UR4][R2.64]", 16),
        ("@P0 LDGSTS.E.BYPASS.128 [R3], desc[UR4][R2.64]", 0),  # ncu takes it for false
        ("@P2 LDGSTS.E.BYPASS.128 [R3], desc[UR4][R2.64]", None),
        ("LDGSTS.E.BYPASS.128 [R3], desc[UR4][R2.64], P0", None),
    ],
)
def test_copies_past_the_cache_take_no_total_away(instruction: str, sectors: int | None) -> None:
    """The profiler's own formulas, which have no rule for copies under some predicates."""
    read = site(op="cp_async_cg", width=16, space="global", instruction=instruction)
    found = analyze_trace(make_trace((read, [Request(LANES * 16, partner=LANES * 16)]), (READ, [CLEAN])))
    of_loads = 10 * 4
    assert found.totals["memory_l1_tag_requests_global"] == 10 + 4
    total = found.totals["memory_l2_theoretical_sectors_global"]
    assert total == (None if sectors is None else of_loads + sectors)
