"""Warps as rows of their own: the same requests and executions as blocks as rows, divided or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import memsim
from memsim.api.loading import Module
from memsim.api.running import trace
from memsim.simt import engine, prepared_launch, warp_rows
from memsim.state.parts import select
from memsim.trace.trace import Trace
from tests.benchmarks.irregular import SOURCE, case
from tests.few import few
from tests.simt.cuda import kernels_of
from tests.trace.test_whole_kernels import assert_same

#: Loops of any length, one in the other, with branches, early ends, and values that lanes tell each other.
NESTED = """\
extern "C" __global__ void nested(const int *a, int *out, int n, int reverse) {
    int x = threadIdx.x, y = threadIdx.y, i = (blockIdx.x * blockDim.y + y) * blockDim.x + x;
    if (i >= n || a[i] % 11 == 3) return;
    int sum = 0;
    for (int j = 0; j < a[i] % 29; j++) {
        if (a[i + j] & 1) {
            for (int k = j; k < a[i + j] % 7; k++) sum += a[(i * 7 + k * 31) % n];
        } else if (__any_sync(__activemask(), a[i + j] > 500)) {
            sum ^= a[(sum & 1023) + j];
        }
        if (sum == 77) break;
    }
    out[reverse ? n - 1 - i : i] = sum;
}
extern "C" __global__ void waits(volatile int *a, int *out) { out[threadIdx.x + blockIdx.x * 32] = a[a[0]]; }
extern "C" __global__ void meets(const int *a, int *out) {
    int at = a[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = a[at];
}
extern "C" __global__ void adds(int *a, int *out) { out[atomicAdd(a, 1)] = 1; }
extern "C" __global__ void plain(const int *a, int *out) { out[threadIdx.x] = a[threadIdx.x]; }
extern "C" __global__ void follows(const int *a, int *out) { out[threadIdx.x] = a[a[threadIdx.x]]; }
"""


@pytest.fixture(scope="module")
def nested() -> Module:
    return kernels_of(NESTED)


def both_ways(monkeypatch: pytest.MonkeyPatch, window: int, *launch: Any) -> tuple[Trace, Trace]:
    """The trace with each warp as a row, divided as often as can be, and with blocks as rows."""
    monkeypatch.setattr(engine, "FEWEST", 1)
    monkeypatch.setattr(engine, "WINDOW", window)
    apart = trace(*launch)
    monkeypatch.setattr(prepared_launch, "are_independent", lambda *_: False)
    return apart, trace(*launch)


@pytest.mark.some(1)
@pytest.mark.parametrize("window", [pytest.param(1, marks=pytest.mark.slow), 5])
@pytest.mark.parametrize("name", few(["gather", "spmv", "join", "attention"], ("gather", "join")))
def test_whole_kernels(name: str, window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = case(name, 1500, seed=3)
    launch = memsim.load(SOURCE)[name], made.grid, made.block, made.arguments
    assert_same(*both_ways(monkeypatch, window, *launch))


@pytest.mark.some(1)
@pytest.mark.parametrize("window", [24, 1, 2])
@pytest.mark.parametrize("block", [(32, 1), (8, 4), (16, 6), (7, 9)])
def test_nested_loops(
    block: tuple[int, int], window: int, nested: Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of whole warps, and with threads that fill the last one; lanes in one or several dimensions."""
    values = np.random.default_rng(block[0]).integers(0, 1000, 4096, dtype=np.int32)
    launch = nested["nested"], 23, block, (values, np.zeros(4096, np.int32), 2000, 1)
    apart, blocks = both_ways(monkeypatch, window, *launch)
    assert_same(apart, blocks)
    assert apart.uncertain == blocks.uncertain == ()


@pytest.mark.parametrize(
    ("name", "apart"),
    [("waits", False), ("meets", False), ("adds", False), ("plain", False), ("follows", True)],
)
def test_who_runs_apart(name: str, apart: bool, nested: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those that meet, that may wait for each other, or of which no value that is loaded is needed."""
    found = []
    asked = prepared_launch.are_independent
    monkeypatch.setattr(prepared_launch, "are_independent", lambda *a: found.append(asked(*a)) or found[-1])
    arrays = np.zeros(64, np.int32), np.zeros(64, np.int32)
    trace(nested[name], 2, 32, arrays)
    assert found == [apart]


@pytest.mark.slow
def test_rows_of_many_chunks_are_joined(nested: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    join = warp_rows.join_rows
    monkeypatch.setattr(warp_rows, "join_rows", lambda states: found.append(len(states)) or join(states))
    monkeypatch.setattr(prepared_launch, "APART_THREADS", 512)
    values = np.random.default_rng(1).integers(0, 1000, 4096, dtype=np.int32)
    launch = nested["nested"], 23, 64, (values, np.zeros(4096, np.int32), 1472, 0)
    assert_same(*both_ways(monkeypatch, 2, *launch))
    assert max(found) > 1


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_select_is_where(width: int) -> None:
    random = np.random.default_rng(width)
    mask = random.random((5, 32)) < 0.5
    yes, no = (random.integers(0, 100, (rows, 32)).astype(f"i{width}") for rows in (5, 1))
    assert (select(mask, yes, no) == np.where(mask, yes, no)).all()
    assert (select(mask[:, :1], yes, no) == np.where(mask[:, :1], yes, no)).all()


def test_an_error_names_thread_and_block(nested: Module) -> None:
    index = np.zeros(64, np.int32)
    index[41] = 1 << 20
    with pytest.raises(memsim.MemsimError, match=r"thread \(41, 0, 0\) of block \(0, 0, 0\)"):
        trace(nested["follows"], 1, 64, (index, np.zeros(64, np.int32)))
