"""An access that a loop makes again and again is worked out once, and counted each time."""

from __future__ import annotations

import numpy as np
import pytest

import memsim
from memsim.simt import steps
from memsim.simt.launch_code import _dataflow_of
from memsim.state.registers import content, from_array
from memsim.trace import record
from tests.simt.cuda import kernels_of

#: Reads that repeat, reads whose lanes change, reads at addresses that change, and stores between them.
LOOP = """
__global__ void turns(const float *in, float *out, int n) {
    __shared__ float tile[32][33];
    int lane = threadIdx.x;
    tile[threadIdx.y][lane] = in[threadIdx.y * 32 + lane];
    __syncthreads();
    float sum = 0;
#pragma unroll 1
    for (int turn = 0; turn < n; turn++) {
        sum += tile[lane][threadIdx.y];
        if (lane < turn) sum *= tile[threadIdx.y][lane * 2 % 32];
        sum += tile[turn % 32][lane];
        __syncthreads();
        tile[lane][threadIdx.y] = sum;
        __syncthreads();
    }
    out[threadIdx.y * 32 + lane] = sum;
}
"""


#: A load that leaves its array in each second turn.
ASTRAY = """
__global__ void astray(float *out, int n) {
    __shared__ float row[64];
    __shared__ float next[64];
    row[threadIdx.x] = 1;
    next[threadIdx.x] = 2;
    __syncthreads();
    float sum = 0;
#pragma unroll 1
    for (int turn = 0; turn < n; turn++) sum += row[threadIdx.x + (turn & 1) * 64];
    out[threadIdx.x] = sum + next[63 - threadIdx.x];
}
"""


@pytest.mark.some(1)
@pytest.mark.parametrize("remembered", [record.MOST_REMEMBERED, 0])
def test_counts_are_those_of_accesses_that_are_each_worked_out(
    monkeypatch: pytest.MonkeyPatch, remembered: int
) -> None:
    """Also where the recorder forgets every access at once."""
    kernel = kernels_of(LOOP)["turns"]
    launch = 5, (32, 8), [memsim.ArrayArg((256,)), memsim.ArrayArg((256,)), 40]
    repeating: list[str] = []
    monkeypatch.setattr(record, "MOST_REMEMBERED", remembered)
    repeating_step = steps.repeating_step
    monkeypatch.setattr(
        steps, "repeating_step", lambda op, access: repeating.append(op.name) or repeating_step(op, access)
    )
    _dataflow_of.cache_clear()  # and with it the steps of launches before
    once = memsim.analyze(kernel, *launch)
    assert repeating
    monkeypatch.setattr(steps, "REPEATABLE", set())
    _dataflow_of.cache_clear()
    repeating.clear()
    each = memsim.analyze(kernel, *launch)
    assert not repeating
    assert once.totals == each.totals
    for mine, other in zip(once.trace.sites, each.trace.sites, strict=True):
        assert mine == other
    assert np.array_equal(once.trace.count, each.trace.count)
    warps, turns = 5 * 8, 40
    is_load = np.array([(site.space, site.op) == ("shared", "load") for site in once.trace.sites])
    assert once.trace.count[is_load[once.trace.site]].sum() == warps * (turns + turns - 1 + turns)


def test_an_access_to_another_array_is_counted_in_each_turn() -> None:
    """Also where it is one that was made before."""
    (found,) = memsim.sanitize(kernels_of(ASTRAY)["astray"], 1, 64, [memsim.ArrayArg((64,)), 9]).findings
    assert (found.tool, found.count) == ("bounds", 4 * 64)
    assert found.kind == "4 bytes beyond the end of row, which has 256 bytes: in next"


def test_addresses_are_one_if_all_threads_have_the_same() -> None:
    """Made anew or not; many elements are one object only."""
    few, many = np.arange(64)[None, :], np.arange(1 << 13)[None, :]
    assert content(from_array(few, 4)) == content(from_array(few.copy(), 4))
    assert content(from_array(few, 4)) != content(from_array(few, 8))
    assert content(from_array(few, 4)) != content(from_array(few.T, 4))
    assert content(from_array(many, 4)) != content(from_array(many.copy(), 4))
    assert content(few) == content(from_array(few)) and content(7) == 7


def test_an_instruction_that_reads_no_register_is_computed_once() -> None:
    found: list[object] = []

    def compute(registers: list[object]) -> object:
        found.append(registers)
        return 7

    once = steps.computed_once(compute)
    assert [once([]), once([]), once([])] == [7, 7, 7]
    assert len(found) == 1
