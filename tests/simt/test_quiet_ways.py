"""Lanes of a warp that meet where the code has no barrier: counts are certain where that changes none."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.captured.analyze_any import analyze
from memsim.isa.op import BARRIER
from memsim.sass.decode import decode
from memsim.simt.control_graph import ControlGraph
from memsim.simt.groups import Groups, waits_behind
from tests.simt.cuda import kernels_of
from tests.simt.listings import listing

ADD, LOAD, VOTE = "IADD3 R2, R2, R3, RZ", "LDS R4, [R2]", "VOTE.ANY R4, PT, P0"


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        (f"{ADD}\n BSYNC B0", {0}),
        (f"{ADD}\n .on:\n {ADD}\n BSYNC B0\n @P1 BRA `(.on)", {0}),  # where others branch to
        ("EXIT", set()),
        ("WARPSYNC.ALL\n EXIT", set()),
        (f"@P0 EXIT\n {ADD}\n EXIT", set()),
        (f"@P0 EXIT\n {LOAD}\n EXIT", None),
        (f"{ADD}\n {LOAD}\n BSYNC B0", None),
        (f"{VOTE}\n BSYNC B0", None),
        (f"@P0 BREAK B1\n @P0 BRA `(.out)\n BSYNC B1\n {LOAD}\n .out:\n BSYNC B0\n {LOAD}", {0, 1}),
        (f"@P0 BREAK B1\n @P0 BRA `(.out)\n BSYNC B1\n .out:\n {LOAD}\n BSYNC B0", None),
        (f"BSSY B1, `(.in)\n @P0 BRA `(.in)\n {ADD}\n .in:\n BSYNC B1\n {ADD}\n BSYNC B0", {0}),
        (f"BSSY B1, `(.in)\n @P0 BRA `(.in)\n {ADD}\n .in:\n BSYNC B1\n {LOAD}\n BSYNC B0", None),
        (f".loop:\n {ADD}\n @P0 BRA `(.loop)\n BSYNC B0", {0}),
        (f".loop:\n {LOAD}\n @P0 BRA `(.loop)\n BSYNC B0", None),
        ("RET.REL.NODEC R2 `(kernel)", None),
        (f"BAR.SYNC 0x0\n {ADD}\n BSYNC B0", None),
    ],
)
def test_ways_end_where_lanes_wait_or_make_an_access(text: str, waits: set[int] | None) -> None:
    graph = ControlGraph(decode(listing(f"{text}\n EXIT")))
    found = waits_behind(graph, 0)
    assert found == (None if waits is None else {BARRIER + number for number in waits})


INNER = f"""
    BSSY B1, `(.in)
    @P0 BRA `(.in)
    {ADD}
.in:
    BSYNC B1
    {{more}}
    BSYNC B0
    EXIT
"""


@pytest.mark.parametrize(("more", "ends"), [(ADD, {BARRIER}), (LOAD, None)])
def test_a_barrier_at_which_others_are_not_waited_for_ends_no_way(more: str, ends: set[int] | None) -> None:
    graph = ControlGraph(decode(listing(INNER.replace("{more}", more))))
    inside = next(op.index for op in graph.ops if op.text == ADD)
    assert waits_behind(graph, inside) == {BARRIER + 1}
    assert waits_behind(graph, inside, frozenset((BARRIER + 1,))) == ends


MERGE = """
extern "C" __global__ void merge(const int *a, int *out, int n) {
    __shared__ int s[64 * 32];
    int t = threadIdx.x * n;
    for (int k = threadIdx.x; k < 64 * n; k += 64) { s[k] = a[k]; s[1024 + k] = a[64 * n + k]; }
    __syncthreads();
    int i = n - 1, j = n - 1, k = 2 * n - 1;
    while (j >= 0) {
        if (i < 0) {
            for (; k >= 0; k--) s[k + t] = s[1024 + k + t];
            break;
        }
        if (s[i + t] <= s[1024 + j + t]) { if (k < n) s[k + t] = s[i + t]; i--; }
        else { if (k < n) s[k + t] = s[1024 + j + t]; j--; }
        k--;
    }
    out[threadIdx.x] = s[t];
}
"""


@pytest.mark.some(1)
@pytest.mark.parametrize("wait", [True, False])
def test_lanes_that_meet_before_they_wait_for_each_other_leave_counts_certain(
    wait: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of lists that each lane merges in its own time. If they did not wait, they were not."""
    if not wait:
        monkeypatch.setattr(Groups, "_wait_for_each_other", lambda *_: False)
    lists = np.sort(np.random.default_rng(0).integers(0, 99, (128, 5)).astype(np.int32), 1)
    arguments = [lists, np.zeros(64, np.int32), np.int32(5)]
    found = analyze(kernels_of(MERGE, "sass")["merge"], 1, 64, arguments).trace.uncertain
    assert (found == ()) is wait
    assert all("may reconverge early" in reason for reason in found)


SWITCH = """
extern "C" __global__ void choose(int *o, const int *a) {
    int t = threadIdx.x, r;
    switch (a[t]) {
        case 0: r = t; break; case 1: r = t * 2; break; case 2: r = t ^ 5; break; case 3: r = t + 77; break;
        case 4: r = t * t; break; case 5: r = t << 2; break; case 6: r = 63 - t; break;
        case 7: r = t / 3; break; case 8: r = t % 5; break; default: r = 9;
    }
    o[r] = 1;
}
"""


def test_lanes_of_a_switch_of_nine_cases_wait_for_each_other() -> None:
    cases = np.random.default_rng(0).integers(0, 11, 64).astype(np.int32)
    found = analyze(kernels_of(SWITCH, "sass")["choose"], 1, 64, [np.zeros(8192, np.int32), cases])
    assert found.trace.uncertain == ()
    of_global = [site.requests for site in found.sites if site.space == "global"]
    assert of_global == [2, 2]  # a load and a store of two warps
