"""Totals of atomics on global memory: limits where they depend on where an array lies."""

from __future__ import annotations

import numpy as np
import pytest

import memsim
from memsim.analysis import Range
from memsim.analysis.totals import BY_PLACE, COUNTS, METRIC
from memsim.api.loading import Module
from tests.simt.cuda import kernels_of

SOURCE = """
extern "C" __global__ void near(unsigned *out) { atomicAdd(&out[threadIdx.x % 4], threadIdx.x); }
extern "C" __global__ void far(unsigned *out) {
    atomicAdd(&out[threadIdx.x % 2 * 64 + threadIdx.x / 2], threadIdx.x);
}
extern "C" __global__ void alone(unsigned *out) { atomicAdd(&out[threadIdx.x % 4 * 64], threadIdx.x); }
extern "C" __global__ void lines(unsigned *out) { atomicAdd(&out[threadIdx.x % 4 * 33], threadIdx.x); }
extern "C" __global__ void swap(unsigned *out) { out[threadIdx.x] = atomicCAS(&out[threadIdx.x], 1u, 2u); }
typedef unsigned long long Wide;
extern "C" __global__ void wide(Wide *out) { atomicAdd(&out[threadIdx.x % 2], 3ull * threadIdx.x); }
extern "C" __global__ void none(unsigned *out) { out[threadIdx.x] = 1; }
"""


@pytest.fixture(scope="module")
def module() -> Module:
    return kernels_of(SOURCE)


def totals(module: Module, kernel: str) -> tuple[list[int | None], dict[str, Range]]:
    """Requests, sectors and lines of a launch of two warps, and what is undecided."""
    found = memsim.analyze(
        module[kernel], 2, 32, [np.zeros(1024, np.uint64 if kernel == "wide" else np.uint32)]
    )
    end = "atom" if kernel == "swap" else "red"
    return [found.totals.get(METRIC.format(count, end), -1) for count in COUNTS], dict(found.undecided)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("near", [2, 16, 16]),  # eight lanes at each of four places of a line: eight times
        ("lines", [2, 2 * 4 * 8, 2 * 4 * 8]),  # four lines, and places that differ
        ("swap", [2, 8, 4]),  # lines of 64 bytes
        ("wide", [2, 32, 32]),
    ],
)
def test_where_no_place_is_in_two_lines_totals_are_known(
    module: Module, kernel: str, expected: list[int]
) -> None:
    assert totals(module, kernel) == (expected, {})


def test_one_place_of_several_lines_depends_on_where_the_array_lies(module: Module) -> None:
    sectors, lines = (METRIC.format(count, "red") for count in COUNTS[1:])
    known, limits = totals(module, "far")
    assert known == [2, None, None]
    # Two lines: each is served at once if none waits for the other, else the 16 lanes of one of them alone.
    assert limits == {sectors: Range(BY_PLACE, 2 * 4, 2 * 18), lines: Range(BY_PLACE, 2 * 2, 2 * 17)}
    assert totals(module, "alone") == ([2, 2 * 32, 2 * 32], {})  # eight lanes at each address: one by one


def test_a_kernel_without_atomics_has_no_such_totals(module: Module) -> None:
    assert totals(module, "none") == ([-1, -1, -1], {})
