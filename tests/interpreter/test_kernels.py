"""Whole kernels leave the same memory by native/interpreter.c as in the emulator."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from memsim.access import Listener
from memsim.api.loading import from_text, load
from memsim.api.running import job_of, prepared_launch
from memsim.driver.native_build import libraries
from memsim.errors import MemsimError
from memsim.interpreter import lowered_kernel, native_launch
from memsim.interpreter.lowered_op import NotLowered
from memsim.interpreter.native_launch import NativeInterpreter, TouchedAllocations
from memsim.kernels import catalog
from memsim.simt.faults import KernelFault
from tests.random_values.expressions import PRELUDE
from tests.random_values.generate import THREADS, random_kernel

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler"
)


@pytest.fixture(scope="module")
def interpreter() -> NativeInterpreter:
    return NativeInterpreter(libraries())


def memory_after(job: Any, interpreter: NativeInterpreter | None) -> np.ndarray:
    """Global memory after a launch."""
    launch = prepared_launch(job, everything=True)
    if interpreter is None:
        launch.run(Listener())
    else:
        interpreter.run(launch, Listener(), TouchedAllocations(set(), set()))
    found: np.ndarray = launch.memory.space("global").data
    return found


def assert_same(job: Any, interpreter: NativeInterpreter) -> None:
    expected = memory_after(job, None)
    assert expected.any()
    assert np.array_equal(memory_after(job, interpreter), expected)


HERE = Path(__file__).parent
NAMES = (
    *(
        "diverging",
        "barriers",
        "named",
        "lanes",
        "some_lanes",
        "atomics",
        "waits",
        "calls",
        "pointers",
        "switches",
        "asserts",
        "exclusive",
        "collective",
    ),
    *(
        "local_memory",
        "generic",
        "constants",
        "floats",
        "doubles",
        "longs",
        "bytes",
        "halves",
        "half_arithmetic",
    ),
    *("vectors", "half_atomics", "products"),
)
TYPES = {
    **{"floats": np.float32, "doubles": np.float64, "longs": np.int64, "bytes": np.uint8},
    "half_atomics": np.uint32,
    **{"halves": np.float16, "half_arithmetic": np.float16, "vectors": np.float32, "products": np.float16},
}


@pytest.fixture(scope="module")
def kernels() -> Any:
    return load(HERE / "kernels.cu", ["-std=c++17"])


def job_for(kernels: Any, name: str, blocks: int = 4, threads: int = 128) -> Any:
    rng = np.random.default_rng(31)
    kind = np.dtype(TYPES.get(name, np.int32))
    count = 4 * blocks * threads
    if kind.kind == "f":
        x = (rng.standard_normal(count) * 4).astype(kind)
    else:
        x = rng.integers(0, min(10_000, np.iinfo(kind).max), count).astype(kind)
    return job_of(kernels[name], blocks, threads, [np.zeros(count, kind), x])


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_the_same(name: str, kernels: Any, interpreter: NativeInterpreter) -> None:
    assert_same(job_for(kernels, name), interpreter)


@pytest.mark.parametrize("name", ["diverging", "barriers", "lanes", "some_lanes", "local_memory"])
def test_part_of_a_warp(name: str, kernels: Any, interpreter: NativeInterpreter) -> None:
    if name == "barriers":
        assert_same(job_for(kernels, name, 3, 64), interpreter)
    elif name != "lanes":
        assert_same(job_for(kernels, name, 3, 50), interpreter)
    else:
        assert_same(job_for(kernels, name, 7, 32), interpreter)


@pytest.mark.parametrize("seed", [2, 5, pytest.param(1003, marks=pytest.mark.slow)])
def test_random_kernels(seed: int, interpreter: NativeInterpreter) -> None:
    made = random_kernel(seed)
    kernel = from_text(PRELUDE + made.text, ["-fmad=false"])[made.name]
    x, y = np.array(made.x, np.uint64), np.zeros(max(1, len(made.y)), np.uint64)
    z = np.zeros(len(made.z), np.uint64)
    assert_same(job_of(kernel, 1, THREADS, [x, y, z]), interpreter)


def of_the_catalogue() -> list[Any]:
    quick = {"kernel_v4", "tile_32x64x32_any", "permuted_write"}
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in sorted(catalog())]


def job_of_catalogue(name: str) -> Any:
    spec = catalog()[name]
    multiples = dict(spec.requires)
    sizes = [
        3 if one == "parts" else -(-70 // multiples.get(one, 1)) * multiples.get(one, 1)
        for one in spec.family.sizes
    ]
    return spec.job(sizes)


@pytest.mark.parametrize("name", of_the_catalogue())
def test_the_catalogue(name: str, interpreter: NativeInterpreter) -> None:
    job = job_of_catalogue(name)
    if "texld" in name:
        for _ in range(2):  # the second time it is known
            with pytest.raises(NotLowered, match="TLD"):
                memory_after(job, interpreter)
    else:
        assert_same(job, interpreter)


def test_blocks_in_several_threads(kernels: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first moment on, on however many processors there are."""
    monkeypatch.setattr(native_launch, "ALONE", 0.0)
    interpreter = NativeInterpreter(libraries(), 3)
    for name in ("diverging", "barriers", "local_memory", "floats"):
        assert_same(job_for(kernels, name, 40, 64), interpreter)


def test_a_launch_has_the_operations_of_one_that_was_told_the_same(
    interpreter: NativeInterpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Launches by turns with two parameters are lowered twice."""
    made = Mock(side_effect=lowered_kernel.LoweredKernel)
    monkeypatch.setattr(lowered_kernel, "LoweredKernel", made)
    kernel = from_text("__global__ void add(int *a, int plus) { a[threadIdx.x] += plus; }")["add"]
    for plus in (3, 4, 3, 4):
        assert_same(job_of(kernel, 1, 32, [np.arange(32, dtype=np.int32), np.int32(plus)]), interpreter)
    assert made.call_count == 2


def test_what_was_accessed_is_known_of_a_launch_that_fails(interpreter: NativeInterpreter) -> None:
    """A launch that is remembered must not count on what another one has changed before its fault."""
    kernel, y = load(HERE / "wrong.cu")["misaligned"], np.zeros(4096, np.int32)
    accessed = TouchedAllocations(set(), set())
    with pytest.raises(MemsimError, match="misaligned"):
        interpreter.run(prepared_launch(job_of(kernel, 1, 64, [y]), everything=True), Listener(), accessed)
    assert accessed == ({"y"}, {"y"})


def test_what_calls_the_driver_is_left_to_the_emulator(kernels: Any, interpreter: NativeInterpreter) -> None:
    with pytest.raises(NotLowered):
        memory_after(job_for(kernels, "prints"), interpreter)


# --- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["outside", "misaligned", "traps", "asserts", "endless", "deadlock", "shared_outside"]
)
def test_errors_are_told_as_the_emulator_tells_them(name: str, interpreter: NativeInterpreter) -> None:
    kernel = load(HERE / "wrong.cu")[name]
    given = [np.zeros(4096, np.int32), *([200] if name == "shared_outside" else [])]
    job = job_of(kernel, 1, 64, given, max_steps=20_000)
    said = []
    for engine in (None, interpreter):
        with pytest.raises(MemsimError) as error:
            memory_after(job, engine)
        said.append(str(error.value))
    assert said[0] == said[1]


def test_an_assertion_that_holds_afterwards_has_failed(interpreter: NativeInterpreter) -> None:
    kernel = load(HERE / "wrong.cu")["asserts_once"]
    with pytest.raises(KernelFault, match="assertion failed") as error:
        memory_after(job_of(kernel, 1, 32, [np.zeros(4096, np.int32)]), interpreter)
    assert error.value.kind == "assert"


def test_lanes_at_several_places_that_shuffle_together_are_left_to_the_emulator(
    interpreter: NativeInterpreter,
) -> None:
    kernel = load(HERE / "wrong.cu")["shuffles_on_two_ways"]
    job = job_of(kernel, 1, 64, [np.ones((5, 70), np.float32), np.zeros(10, np.float32), 5, 70])
    with pytest.raises(NotLowered, match="at several places"):
        memory_after(job, interpreter)
