"""The processor's fused multiply-adds are those of numpy's passes."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from memsim.driver.native_arithmetic import use_processor
from memsim.driver.native_build import libraries
from memsim.state import rounding
from memsim.state.rounding import fma32, fma64

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler"
)


@pytest.fixture
def processor() -> Iterator[None]:
    """Both functions compute by the processor."""
    use_processor(libraries())
    yield
    rounding.IN_MACHINE_CODE.clear()


def operands(dtype: type, bits: type) -> list[np.ndarray]:
    """Numbers of every size, subnormal and infinite ones, NaNs, and sums that cancel or are just a tie."""
    rng = np.random.default_rng(27)
    wild = [rng.integers(0, np.iinfo(bits).max, 4000, bits, endpoint=True).view(dtype) for _ in range(3)]
    tame = [rng.standard_normal(4000).astype(dtype) for _ in range(3)]
    special = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, np.finfo(dtype).tiny, np.finfo(dtype).max])
    mixed = np.meshgrid(*[special.astype(dtype)] * 3)
    one, last = dtype(1), np.finfo(dtype).eps
    near = [np.array([one + last]), np.array([one + last]), np.array([-one])]
    tie = [np.array([one]), np.array([one]), np.array([last / 2])]
    parts = (wild, tame, [tame[0], tame[1], -tame[0] * tame[1]], [one.ravel() for one in mixed], near, tie)
    return [np.concatenate([part[i] for part in parts]) for i in range(3)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("function", "dtype", "bits"), [(fma32, np.float32, np.uint32), (fma64, np.float64, np.uint64)]
)
def test_results_are_the_same(
    function: rounding.Fused, dtype: type, bits: type, request: pytest.FixtureRequest
) -> None:
    given = operands(dtype, bits)
    expected = function(*given)
    request.getfixturevalue("processor")
    found = function(*given)
    numbers = ~np.isnan(expected)
    assert (np.isnan(found) == ~numbers).all() and numbers.sum() > 8000
    assert (found[numbers].view(bits) == expected[numbers].view(bits)).all()


def test_shapes_broadcast(processor: None) -> None:
    rows, columns = np.float32([[1], [2]]), np.float32([[3, 4]])
    assert fma32(rows, columns, np.float32([[1]])).tolist() == [[4, 5], [7, 9]]
