"""What ptxas did is claimed only where it explains every figure. Counts are worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import memsim
from memsim.arch import SM_90
from memsim.compile import compile_cuda
from memsim.validate.predict import (
    EXECUTED,
    THREADS,
    WAVEFRONTS,
    Access,
    accesses_by_place,
    hardware_totals,
    predict,
)
from memsim.validate.ptxas import find_change, merge
from memsim.validate.report import SassRow

# A lane reads four floats side by side: one after the other, 4 lanes meet in a bank; as one load, none do.
SIDE_BY_SIDE = """
extern "C" __global__ void kernel(float *out) {
    __shared__ float tile[160];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    int i = 4 * threadIdx.x;
    out[threadIdx.x] = tile[i] * tile[i + 1] + tile[i + 2] * tile[i + APART];
}
"""


def loads(apart: int = 3) -> list[Access]:
    module = memsim.load(compile_cuda(SIDE_BY_SIDE, [f"-DAPART={apart}"]), code="ptx")
    analysis = memsim.analyze(module["kernel"], 1, 32, [memsim.ArrayArg((32,))])
    places = accesses_by_place(analysis.trace)
    (found,) = (group for place, group in places.items() if place.access == "shared load")
    return found


def row(sass: str, executed: int, wavefronts: int) -> SassRow:
    return SassRow(0, "kernel.cu", 6, sass, (executed, 32 * executed, wavefronts, 4, None, None, None))


def figures(executed: int, threads: int, wavefronts: int, ideal: int) -> dict[str, int | None]:
    return {EXECUTED: executed, THREADS: threads, WAVEFRONTS: wavefronts, f"{WAVEFRONTS}_ideal": ideal}


def test_four_loads_merged_into_one() -> None:
    found = loads()
    assert len(found) == 4
    assert predict(found, SM_90).figures == figures(4, 128, 16, 4)
    change = find_change(found, [row("LDS.128 R4, [R0]", 1, 4)], figures(1, 32, 4, 4), SM_90)
    assert change is not None and change.kind == "merged"
    assert change.what.startswith("4 loads of 4 B became 1, those now 16 B of ")
    totals = hardware_totals([change.predicted])
    assert totals["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == 4
    assert totals["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"] == 0


def test_four_loads_merged_into_two() -> None:
    rows = [row("LDS.64 R4, [R0]", 1, 4), row("LDS.64 R6, [R0+0x8]", 1, 4)]
    change = find_change(loads(), rows, figures(2, 64, 8, 4), SM_90)
    assert change is not None and change.what.startswith("4 loads of 4 B became 2")


@pytest.mark.parametrize(
    ("rows", "measured"),
    [
        ([row("LDS.128 R4, [R0]", 1, 5)], figures(1, 32, 5, 4)),  # one wavefront too many
        ([row("LDS.128 R4, [R0]", 2, 8)], figures(2, 64, 8, 8)),
        ([row("LDS R4, [R0]", 3, 12)], figures(3, 96, 12, 3)),  # one load is gone, and none is wider
        ([], figures(0, 0, 0, 0)),
    ],
)
def test_what_merging_does_not_explain(rows: list[SassRow], measured: dict[str, int | None]) -> None:
    assert find_change(loads(), rows, measured, SM_90) is None


def test_only_neighbours_merge() -> None:
    assert [access.width for access in merge(loads(), 16)] == [16]
    assert [access.width for access in merge(loads(), 8)] == [8, 8]
    assert [access.width for access in merge(loads(apart=7), 16)] == [4, 4, 4, 4]
    assert sorted(access.width for access in merge(loads(apart=7), 8)) == [4, 4, 8]
    assert [access.width for access in merge(loads()[1:], 16)] == [4, 4, 4]  # the aligned one is not there


def test_predication_needs_a_guard_and_equal_lanes() -> None:
    found = loads()
    measured = figures(9, 128, 16, 4)
    guarded = [row("@!P0 LDS R4, [R0]", 9, 16)]
    change = find_change(found, guarded, measured, SM_90)
    assert change is not None and change.kind == "predicated"
    assert "5 instructions ran with every lane off" in change.what
    assert find_change(found, [row("LDS R4, [R0]", 9, 16)], measured, SM_90) is None
    assert find_change(found, guarded, {**measured, THREADS: 127}, SM_90) is None
    assert find_change([], guarded, measured, SM_90) is None


def test_predictions_add_up_to_the_analysis() -> None:
    for kernel in ("kernel_v3", "transpose_naive", "sgemm_128x128x8"):
        analysis = memsim.catalog()[kernel].analyze(None)
        places = accesses_by_place(analysis.trace).values()
        totals = hardware_totals(predict(group, SM_90) for group in places)
        assert totals == {metric: total for metric, total in analysis.totals.items() if total is not None}
        assert sum(int(np.sum(group[0].requests.times)) > 0 for group in places) == len(places)
