"""Atomics on shared memory that are loops of compare-and-swaps, beside the counters of launches of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import memsim
from memsim.analysis import Analysis
from memsim.counts import Count, Range
from memsim.guard.evaluate import GuardedKernel
from memsim.validate.predict import EXECUTED, THREADS, WAVEFRONTS, accesses_of, predict
from tests.few import few
from tests.guard.subjects import checked
from tests.simt.cuda import kernels_of, machine_kernel
from tests.validate.conftest import H200, TRACES

RECORDING: dict[str, Any] = json.loads((TRACES / H200 / "swap_loops.json").read_text("utf-8"))
SOURCE = "\n".join(RECORDING["source"])
ELEMENTS = {
    "add_float": "float32",
    "add_float_used": "float32",
    "add_double": "float64",
    "add_long": "uint64",
}
LAUNCHES = [tuple(launch) for launch in RECORDING["launches"]]
LOADS, SWAPS, LOAD_CONFLICTS, SWAP_CONFLICTS = RECORDING["metrics"]
LANES = np.arange(32)


def of_launch(launch: tuple[Any, ...]) -> Analysis:
    name, mode, zeros, warps, times, *_ = launch
    out = memsim.ArrayArg((64 * warps,), ELEMENTS[name])
    return memsim.analyze(kernels_of(SOURCE, "sass")[name], 2, 32 * warps, [out, mode, zeros, times])


def kept(launch: tuple[Any, ...]) -> bool:
    name, mode, _zeros, warps, times, *_ = launch
    return times == 1 and warps in (1, 8) and mode in (1, 3, 5) and name in ("add_float", "add_double")


def called(launch: tuple[Any, ...]) -> str:
    return "-".join(map(str, launch[:5]))


@pytest.mark.some(1)
@pytest.mark.parametrize("launch", few(LAUNCHES, {called(one) for one in LAUNCHES if kept(one)}, called))
def test_the_chip_lies_within_the_limits(launch: tuple[Any, ...]) -> None:
    """One warp of 4 bytes per lane is certain. What is counted above is arbitration, which no rule has."""
    found, runs = of_launch(launch), [run for run in launch[5:] if run is not None]
    assert found.trace.uncertain == ()
    for place, metric in enumerate((LOADS, SWAPS, LOAD_CONFLICTS)):
        limits = found.undecided.get(metric)
        for counted in (run[place] for run in runs):
            assert counted == found.totals[metric] if limits is None else counted in limits
        if launch[3] == 1 and ELEMENTS[launch[0]] == "float32":
            assert limits is None
    assert found.totals[SWAP_CONFLICTS] == 0
    if launch[3] == 1:
        assert all(run[3] == 0 for run in runs)


def test_every_kind_of_launch_is_there() -> None:
    assert len(LAUNCHES) > 200
    assert {launch[3] for launch in LAUNCHES} == {1, 2, 4, 8, 32}


HISTOGRAM = """
extern "C" __global__ void k(float *out, const int *keys) {
    __shared__ float s[64];
    if (threadIdx.x < 64) s[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&s[keys[threadIdx.x]], 1.0f);
    __syncthreads();
    if (threadIdx.x < 64) out[threadIdx.x] = s[threadIdx.x];
}
"""


def histogram(keys: np.ndarray) -> Analysis:
    return memsim.analyze(machine_kernel(HISTOGRAM), 1, len(keys), [np.zeros(64, np.float32), keys])


def test_a_histogram_of_floats_says_between_what_it_lies() -> None:
    found = histogram(np.arange(128, dtype=np.int32) % 64)
    assert "of 2 accesses only limits are known" in found.verdict
    assert found.undecided[SWAPS].least == 4 * 2 and found.undecided[SWAPS].most == 128 * 4 * 2
    assert found.totals[SWAP_CONFLICTS] == 0
    told = str(found)
    assert "8 to 1,024" in told and "takes at least 8, at most 1,024 wavefronts" in told


def test_its_sums_are_those_of_numpy() -> None:
    keys = (np.arange(256, dtype=np.int32) * 7) % 50
    out = np.zeros(64, np.float32)
    memsim.run(machine_kernel(HISTOGRAM), 1, 256, [out, keys])
    assert np.array_equal(out, np.bincount(keys, minlength=64))


def test_what_comes_back_from_such_an_atomic_is_not_certain_as_an_address() -> None:
    text = HISTOGRAM.replace("atomicAdd(", "float old = atomicAdd(").replace(
        "out[threadIdx.x] = s", "out[(int)old & 63] = s"
    )
    keys = np.arange(128, dtype=np.int32) % 64
    found = memsim.analyze(machine_kernel(text), 1, 128, [np.zeros(64, np.float32), keys])
    assert any("the result of an atomic decides the address" in why for why in found.trace.uncertain)
    assert histogram(keys).trace.uncertain == ()


@pytest.mark.parametrize(
    ("budget", "broken"),
    [
        ("wavefronts <= 100000", False),
        ("wavefronts <= 1000", True),  # it takes 1,024 if every lane of every warp collides
        ("sites(atomic_loop).conflicts == 0", False),
        ("sites(atomic_loop).wavefronts >= 8", False),
        ("sites(atomic_loop).wavefronts > 8", True),
        ("sites(atomic_loop).wavefronts == 8", True),
    ],
)
def test_a_budget_judges_the_worse_end(budget: str, broken: bool) -> None:
    kernel = GuardedKernel("k", histogram(np.arange(128, dtype=np.int32) % 64))
    found = checked(budget, kernel)
    assert found.broken == broken
    if broken:
        assert "compare-and-swaps goes round" in found.findings[0].reason


def source_page(keys: np.ndarray) -> dict[str, dict[str, Count | None]]:
    """What is predicted of each instruction of the loop, by its opcode."""
    found = histogram(keys)
    return {
        access.site.instruction.split()[0]: predict([access], found.arch)
        for access in accesses_of(found.trace, found.arch)
        if access.rounds is not None
    }


def test_every_lane_that_goes_round_executes_the_compare_and_swap() -> None:
    """Not only those that it tries: of one warp at one word 32, 31, ... lanes, as of the load.

    `fold_time_series_kernel` of peasoup on an H100: 2,569 threads of the load, and as many of the swap.
    """
    for keys, rounds, threads in ((LANES * 0, 32, 32 * 33 // 2), (LANES, 1, 32), (LANES // 2, 2, 48)):
        page = source_page(keys.astype(np.int32))
        assert set(page) == {"LDS", "ATOMS.CAST.SPIN"}
        assert all((one[EXECUTED], one[THREADS]) == (rounds, threads) for one in page.values())
        assert page["LDS"][WAVEFRONTS] == rounds


def test_of_several_warps_every_figure_of_the_loop_has_limits_or_none() -> None:
    for one in source_page(np.arange(128, dtype=np.int32) % 64).values():
        executed, threads = one.pop(EXECUTED), one.pop(THREADS)
        assert isinstance(executed, Range) and (executed.least, executed.most) == (4, 512)
        assert isinstance(threads, Range) and (threads.least, threads.most) == (128, 512 * 32)
        assert set(one.values()) == {None}


@pytest.mark.slow
def test_warps_that_never_update_the_same_word_go_round_as_one_warp_does() -> None:
    """Modes 0, 2 and 4 of the recording, and `ReturnFloat` of cudahandbook: 16 rounds by 16 warps."""
    keys = np.arange(64, dtype=np.int32)
    for own in (keys, keys[::-1].copy(), keys // 2 * 2):
        found = histogram(own)
        assert found.trace.uncertain == () and SWAPS not in found.undecided
    assert found.totals[SWAPS] == 2 * 2 * 2  # a pair of lanes goes round twice
    keys[40] = 0  # a lane of the second warp takes a word of the first one
    assert histogram(keys).undecided[SWAPS].most == 64 * 2 * 2
    apart = [launch for launch in LAUNCHES if launch[1] in (0, 2, 4) and launch[3] == 8 and launch[4] == 1]
    for launch in apart:
        if ELEMENTS[launch[0]] == "float32":
            assert SWAPS not in of_launch(launch).undecided
    assert len(apart) >= 6


def test_a_store_of_another_warp_that_no_barrier_orders_makes_the_rounds_uncertain() -> None:
    keys = (np.arange(64, dtype=np.int32) + 32) % 64
    text = HISTOGRAM.replace("    __syncthreads();\n    atomicAdd", "    atomicAdd")
    assert text != HISTOGRAM
    found = memsim.analyze(machine_kernel(text), 1, 64, [np.zeros(64, np.float32), keys])
    assert any("__syncthreads() missing" in why for why in found.trace.uncertain)
    assert histogram(keys).trace.uncertain == ()


def test_a_load_in_the_loop_s_line_is_counted_beside_it() -> None:
    on_one_line = HISTOGRAM.replace(";\n", "; ")
    assert on_one_line != HISTOGRAM
    lanes = np.arange(64, dtype=np.int32)
    for keys, least, most in (
        (lanes, 4, 4),
        (lanes // 9, 18 + 2, 64 * 2 + 2),
    ):  # 2: what is loaded in the end
        found = memsim.analyze(machine_kernel(on_one_line), 1, 64, [np.zeros(64, np.float32), keys])
        counted = found.undecided.get(LOADS) or Range("", found.totals[LOADS], found.totals[LOADS])
        assert (counted.least, counted.most) == (least, most)


def test_instructions_of_a_loop_have_the_limits_of_its_rows() -> None:
    keys = np.arange(128, dtype=np.int32) % 64
    loads = [
        one.counts
        for row in histogram(keys).instructions
        for one in row
        if one.text.startswith("LDS") and one.counts.space == "shared"
    ]
    assert sorted((one.wavefronts, one.count("wavefronts")) for one in loads if not one.ranges) == [(2, 2)]
    (in_loop,) = (one for one in loads if one.ranges)
    assert in_loop.wavefronts is None and in_loop.ranges["wavefronts"].most == 128 * 4
