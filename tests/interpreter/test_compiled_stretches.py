"""Kernels whose stretches are compiled leave the same memory as in the emulator."""

from __future__ import annotations

import shutil
import sys
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from memsim.api.loading import from_text, load
from memsim.api.running import job_of
from memsim.driver.native_build import compile_library, libraries
from memsim.interpreter import compiled_stretches, native_launch
from memsim.interpreter.compiled_stretches import StretchCompiler
from memsim.interpreter.lowered_kernel import known_of
from memsim.interpreter.native_launch import NativeInterpreter
from memsim.kernels import catalog
from tests.interpreter.test_kernels import HERE, NAMES, assert_same, job_for, job_of_catalogue, memory_after
from tests.random_values.expressions import PRELUDE
from tests.random_values.generate import THREADS, random_kernel

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler"
)


class Compiling:
    """An interpreter that compiles each kernel before its first launch. asked: the texts."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.interpreter = NativeInterpreter(libraries(), compile=self.compile)
        if self.interpreter.compiler is None:
            pytest.skip("needs a processor with AVX2")

    def compile(self, text: str) -> bytes | None:
        self.asked.append(text)
        return compile_library(text)


@pytest.fixture
def compiling(monkeypatch: pytest.MonkeyPatch) -> Compiling:
    monkeypatch.setattr(compiled_stretches, "WORTH_COMPILING", -1.0)
    monkeypatch.setattr(compiled_stretches, "WORTH_LOOKING", -1.0)
    known_of.cache_clear()  # nothing is left of other tests
    return Compiling()


@pytest.fixture(scope="module")
def kernels() -> Any:
    return load(HERE / "kernels.cu", ["-std=c++17"])


QUICK = {"diverging", "some_lanes", "floats", "longs", "half_arithmetic"}


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one in QUICK else pytest.mark.slow) for one in NAMES]
)
def test_memory_is_the_same(name: str, kernels: Any, compiling: Compiling) -> None:
    for _ in range(2):
        assert_same(job_for(kernels, name), compiling.interpreter)
    assert len(compiling.asked) == 1 and "STRETCH(stretch_0)" in compiling.asked[0]


@pytest.mark.parametrize("seed", [2, *(pytest.param(one, marks=pytest.mark.slow) for one in (5, 1003))])
def test_random_kernels(seed: int, compiling: Compiling) -> None:
    made = random_kernel(seed)
    kernel = from_text(PRELUDE + made.text, ["-fmad=false"])[made.name]
    x, y = np.array(made.x, np.uint64), np.zeros(max(1, len(made.y)), np.uint64)
    assert_same(job_of(kernel, 1, THREADS, [x, y, np.zeros(len(made.z), np.uint64)]), compiling.interpreter)


SPECIAL = """__global__ void special(float *y, const float *x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i % 3 ? x[i] : x[i] * 2, r[8] = {
    1 / v, rsqrtf(v), sqrtf(v), __sinf(v), exp2f(v), __log2f(v), __fdividef(v, v + 1), __frcp_rz(v)};
  for (int k = 0; k < 8; k++) {
    if (i % 5) r[k] = r[k] * 1.5f + fminf(r[k], 3);
    y[8 * i + k] = isnan(r[k]) ? 1 : r[k];
  }
}"""


def test_special_functions_of_any_bits(compiling: Compiling) -> None:
    """They read tables."""
    chance = np.random.default_rng(3)
    x = chance.integers(0, 1 << 32, 2048, np.uint64).astype(np.uint32).view(np.float32)
    x[1024:] = chance.standard_normal(1024) * 5
    job = job_of(from_text(SPECIAL)["special"], 16, 128, [np.zeros(8 * 2048, np.float32), x])
    assert_same(job, compiling.interpreter)
    assert "lane_polynomial" in compiling.asked[0] and "lane_table_h" in compiling.asked[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(one for one in catalog() if "texld" not in one)[::16])
def test_the_catalogue(name: str, compiling: Compiling) -> None:
    assert_same(job_of_catalogue(name), compiling.interpreter)
    assert compiling.asked


def test_a_launch_is_hastened_while_it_runs(
    kernels: Any, compiling: Compiling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Warps are amid stretches then; and one that is short is not."""
    monkeypatch.setattr(native_launch, "ALONE", 0.0)
    monkeypatch.setattr(native_launch, "SLICE", 0.0)
    monkeypatch.setattr(StretchCompiler, "begin", lambda *given: None)
    job = job_for(kernels, "diverging", 40, 64)
    assert_same(job, compiling.interpreter)
    assert len(compiling.asked) == 1
    monkeypatch.setattr(compiled_stretches, "WORTH_COMPILING", 1000.0)
    known_of.cache_clear()
    other = Compiling()
    assert_same(job, other.interpreter)
    assert not other.asked


def test_without_a_compiler_operations_are_executed(
    kernels: Any, compiling: Compiling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "compile_library", lambda text: None)
    for _ in range(2):
        assert_same(job_for(kernels, "floats"), compiling.interpreter)
    assert len(compiling.asked) == 1


def test_parameters_are_no_part_of_the_code(compiling: Compiling, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a launch with others is done by what was compiled before, and its stretches are not looked for."""
    looked = Mock(side_effect=compiled_stretches.stretches_of)
    monkeypatch.setattr(compiled_stretches, "stretches_of", looked)
    kernel = from_text(
        "__global__ void scaled(float *a, float by, int plus) { a += threadIdx.x, *a = *a * by + plus; }"
    )["scaled"]
    for by, plus in ((2.0, 3), (0.5, 7)):
        job = job_of(kernel, 1, 32, [np.ones(32, np.float32), np.float32(by), np.int32(plus)])
        assert_same(job, compiling.interpreter)
        assert memory_after(job, compiling.interpreter).view(np.float32).max() == by + plus
    assert len(compiling.asked) == looked.call_count == 1


def test_what_does_not_compile_is_left() -> None:
    assert compile_library("no C at all") is None
