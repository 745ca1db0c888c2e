"""What random kernels compute: every word equal to that of plain Python, on each chip and from PTX."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from memsim.api.loading import Module, from_text
from memsim.api.running import run
from memsim.arch import ARCHS
from memsim.compile.compilers import find_nvcc, makes_code_for
from memsim.errors import MemsimError
from tests.ptx_front.loading import PtxKernels, load_cuda
from tests.random_values.expressions import PRELUDE
from tests.random_values.generate import THREADS, RandomKernel, random_kernel

#: Kernels of one compilation.
SEEDS = range(2, 3)
CHIPS = [pytest.param(chip, marks=() if chip == "sm_90" else pytest.mark.slow) for chip in ARCHS]


@cache
def kernels(seeds: range, chip: str, code: str = "sass") -> PtxKernels | Module:
    # For chips since sm_100 NVRTC 12.9 takes no conversion to an integer to be out of range.
    compiler = "nvcc" if int(chip.removeprefix("sm_")) >= 100 else None
    if (compiler or not makes_code_for(chip)) and find_nvcc() is None:
        pytest.skip(f"no compiler for {chip}")
    text = PRELUDE + "".join(random_kernel(seed).text for seed in seeds)
    options = ["-fmad=false"]
    return (
        load_cuda(text, options) if code == "ptx" else from_text(text, options, arch=chip, compiler=compiler)
    )


def results(module: PtxKernels | Module, made: RandomKernel) -> tuple[list[int], list[int]]:
    """What memsim computes: y and z."""
    x, y = np.array(made.x, np.uint64), np.zeros(max(1, len(made.y)), np.uint64)
    z = np.zeros(len(made.z), np.uint64)
    run(module[made.name], 1, THREADS, [x, y, z])
    return y.tolist()[: len(made.y)], z.tolist()


@pytest.mark.parametrize("chip", CHIPS)
def test_results_are_those_of_plain_python(chip: str) -> None:
    for seed in SEEDS:
        made = random_kernel(seed)
        assert results(kernels(SEEDS, chip), made) == (made.y, made.z), made.text


@pytest.mark.slow
@pytest.mark.parametrize("chip", [*ARCHS, "ptx"])
def test_results_of_more_kernels_are_equal_or_said_to_be_unknown(chip: str) -> None:
    seeds = range(1000, 1020)
    module = kernels(seeds, "sm_90", "ptx") if chip == "ptx" else kernels(seeds, chip)
    unknown = 0
    for made in map(random_kernel, seeds):
        try:
            found = results(module, made)
        except MemsimError as problem:
            assert "unknown" in str(problem)
            unknown += 1
        else:
            assert found == (made.y, made.z), made.text
    assert unknown <= 4


def test_ptx_and_machine_code_compute_the_same() -> None:
    made = random_kernel(SEEDS[0])
    assert results(kernels(SEEDS, "sm_90", "ptx"), made) == results(kernels(SEEDS, "sm_90"), made)


def test_a_wrong_result_is_seen() -> None:
    made = random_kernel(SEEDS[0])
    wrong = [made.y[0] ^ 1, *made.y[1:]]
    assert results(kernels(SEEDS, "sm_90"), made)[0] != wrong


def test_a_seed_always_makes_the_same_kernel() -> None:
    assert random_kernel(7) == random_kernel(7) != random_kernel(8)
