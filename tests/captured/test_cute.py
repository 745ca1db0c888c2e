"""CuTe DSL itself, without a GPU: launches of its host code are kept, and cost what they should."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import memsim
from memsim.captured.launched import Launched
from memsim.errors import MemsimError
from tests.captured.compiled import CUTE, check

cutlass = pytest.importorskip("cutlass")
pytestmark = pytest.mark.filterwarnings("default")

from cutlass import cute  # noqa: E402
from cutlass.cute.runtime import from_dlpack  # noqa: E402

sys.path.insert(0, str(Path(__file__).with_name("corpus")))
import cute_kernels  # type: ignore[import-not-found]  # noqa: E402


@pytest.fixture(scope="module")
def launches() -> list[Launched]:
    with memsim.capture("sm_90") as found:
        cute_kernels.launch_all()
    return found


def test_launches_cost_what_they_should(launches: list[Launched]) -> None:
    for launched, costs in zip(launches, CUTE, strict=True):
        check(launched, costs, "cute_kernels.py")


def test_what_a_launch_is(launches: list[Launched]) -> None:
    scale, plain, padded, moved = launches
    assert scale.kernel.called == "scale_kernel"
    assert scale.kernel.argument_names == ("x", "out", "arg2")
    assert (scale.grid, scale.block, scale.shared_bytes) == ((8, 1, 1), (128, 1, 1), 0)
    assert (plain.grid, plain.block, plain.shared_bytes) == ((2, 2, 1), (32, 32, 1), 4096)
    assert padded.shared_bytes == 4 * (33 * 31 + 32)
    assert moved.kernel.argument_names == ("a", "out")
    assert [(one.array.shape, one.box, one.swizzle) for one in moved.args] == [
        ((64, 96), (32, 32), 0),
        ((96, 64), (32, 32), 0),
    ]


def test_memsim_runs_it(launches: list[Launched]) -> None:
    for launched in launches:
        launched.run()
    x, out, _ = launches[0].args
    np.testing.assert_array_equal(out[0], 3 * x[0][::2])
    for launched in launches[1:3]:
        a, turned = launched.args
        np.testing.assert_array_equal(turned[0], a[0].T)


def test_a_function_that_was_compiled_before_is_refused() -> None:
    x, out = np.zeros(256, np.float32), np.zeros(128, np.float32)
    settings = cutlass.cutlass_dsl.CuTeDSL._get_dsl().envar
    arch, settings._arch = settings._arch, "sm_90a"
    try:
        compiled = cute.compile(cute_kernels.scale, from_dlpack(x), from_dlpack(out), 2.0)
    finally:
        settings._arch = arch
    with (
        memsim.capture("sm_90") as found,
        pytest.raises(MemsimError, match="compiled before the capture") as refused,
    ):
        compiled(from_dlpack(x), from_dlpack(out), 2.0)
    assert "inside the capture" in str(refused.value.hint)
    assert not found


def test_a_tensor_that_was_made_before_is_refused() -> None:
    x, out = from_dlpack(np.zeros(256, np.float32)), from_dlpack(np.zeros(128, np.float32))
    with memsim.capture("sm_90") as found, pytest.raises(MemsimError, match="x became a CuTe tensor"):
        cute_kernels.scale(x, out, 2.0)
    assert not found


def test_a_benchmark_calls_once() -> None:
    """Its own way, by a driver's events, is back afterwards."""
    testing = cute.testing
    own = testing.benchmark
    with memsim.capture("sm_90") as found:
        x, out = from_dlpack(np.zeros(256, np.float32)), from_dlpack(np.zeros(128, np.float32))
        compiled = cute.compile(cute_kernels.scale, x, out, 2.0)
        for how in (
            {"kernel_arguments": testing.JitArguments(x, out, 2.0), "iterations": 100},
            {"workspace_generator": lambda: testing.JitArguments(x, out, 2.0), "workspace_count": 3},
        ):
            assert testing.benchmark(compiled, **how) == 1.0
    assert len(found) == 2 and testing.benchmark is own


def test_an_error_of_the_keepers_is_not_lost() -> None:
    def refuse(launched: Launched) -> None:
        raise MemsimError("no room for it")

    with pytest.raises(MemsimError, match="no room for it"), memsim.capture("sm_90", refuse):
        cute_kernels.launch_all()


def test_the_package_is_as_it_was_afterwards() -> None:
    from cutlass.cute.runtime import _Tensor

    settings = cutlass.cutlass_dsl.CuTeDSL._get_dsl().envar
    before = settings._arch, settings.lineinfo, _Tensor.__init__
    with memsim.capture("sm_90"):
        assert (settings._arch, settings.lineinfo) == ("sm_90a", True)
    assert (settings._arch, settings.lineinfo, _Tensor.__init__) == before
