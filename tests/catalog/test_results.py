"""Every kernel of the catalogue computes the right answer, in sizes of every shape that it takes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsim.kernels import catalog
from tests.few import few

SGEMM = [name for name, spec in catalog().items() if spec.family.name == "sgemm"]
TRANSPOSE = [name for name, spec in catalog().items() if spec.family.name == "transpose"]

SGEMM_SIZES = {
    "one tile": (128, 128, 8),
    "square": (256, 256, 32),
    "tall": (300, 4, 20),
    "wide": (4, 300, 20),
    "aligned edges": (136, 132, 72),
    "odd edges": (137, 165, 41),
    "odd k only": (64, 128, 13),
    "odd n only": (64, 130, 12),
    "deep": (16, 16, 100),
    "tiny": (1, 1, 1),
    "a vector": (1, 37, 9),
}
TRANSPOSE_SIZES = {
    "one tile": (32, 32),
    "square": (128, 128),
    "tall": (160, 32),
    "wide": (64, 192),
    "odd": (67, 101),
    "tiny": (1, 1),
    "a row": (1, 70),
    "a column": (70, 1),
}


def rounding_bound(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How far float32 sums of products can be from exact, in any order of summation.

    Higham, Accuracy and Stability of Numerical Algorithms, section 3.1: n u / (1 - n u) |A| |B|, u = 2^-24.
    """
    roundings = a.shape[1] * 2.0**-24
    bound: np.ndarray = roundings / (1 - roundings) * (np.abs(a).astype(np.float64) @ np.abs(b))
    return bound


def taken(name: str, size: tuple[int, ...]) -> tuple[int, ...]:
    """The size, or the next one that the kernel takes."""
    spec = catalog()[name]
    divisors = dict.fromkeys(spec.family.sizes, 1) | dict(spec.requires)
    return tuple(-(-value // divisor) * divisor for value, divisor in zip(size, divisors.values()))


def is_right(name: str, size: tuple[int, ...], seed: int) -> bool:
    spec = catalog()[name]
    arrays = spec.run(size, seed)
    error = np.abs(arrays["C"] - spec.expected(arrays)["C"])
    if spec.family.name == "transpose":
        return not error.any()
    return bool((error <= rounding_bound(arrays["A"], arrays["B"])).all())


@pytest.mark.some(4)
@pytest.mark.parametrize("size", SGEMM_SIZES.values(), ids=SGEMM_SIZES.keys())
@pytest.mark.parametrize("name", few(SGEMM, ("kernel_v4", "sgemm_tuned")))
def test_a_product_is_right_to_float32_rounding(name: str, size: tuple[int, ...]) -> None:
    assert is_right(name, taken(name, size), seed=1)


@pytest.mark.parametrize("size", TRANSPOSE_SIZES.values(), ids=TRANSPOSE_SIZES.keys())
@pytest.mark.parametrize("name", TRANSPOSE)
def test_a_transpose_is_exact(name: str, size: tuple[int, ...]) -> None:
    assert is_right(name, taken(name, size), seed=2)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.sampled_from(SGEMM), st.tuples(st.integers(1, 140), st.integers(1, 140), st.integers(1, 70)))
def test_any_size_is_right(name: str, size: tuple[int, ...]) -> None:
    assert is_right(name, taken(name, size), seed=3)


def test_a_term_left_out_is_more_than_rounding() -> None:
    arrays = catalog()["kernel_v1"].run((8, 8, 40))
    a, b = arrays["A"], arrays["B"]
    without_the_last = a[:, :-1].astype(np.float64) @ b[:-1]
    assert (np.abs(without_the_last - a.astype(np.float64) @ b) > rounding_bound(a, b)).any()


def test_inputs_are_not_changed_and_depend_on_the_seed() -> None:
    spec = catalog()["kernel_v1"]
    first, again, other = (
        spec.run((5, 6, 7), seed=1),
        spec.run((5, 6, 7), seed=1),
        spec.run((5, 6, 7), seed=2),
    )
    assert list(first) == ["A", "B", "C"]
    made = {name: arg.make() for name, arg in zip("AB", spec.job((5, 6, 7), seed=1).args)}  # type: ignore[union-attr]
    for name in "AB":
        assert np.array_equal(first[name], made[name])
        assert not np.array_equal(first[name], other[name])
    assert np.array_equal(first["C"], again["C"])
