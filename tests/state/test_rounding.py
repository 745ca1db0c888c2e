"""Rounded once, in each mode: the nearest numbers around the exact rational result."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from memsim.state.rounding import (
    fma32,
    fma64,
    higher,
    integer_sum,
    lower,
    narrow,
    odd_sum,
    round_directed,
    round_exactly,
    saturate_float,
    to_bf16,
    two_product,
    two_sum,
)

TOWARDS = {"rz": 0.0, "rm": -math.inf, "rp": math.inf}
SOME = [0.0, -0.0, 1.0, -1.0, 1 + 2**-52, 3.0, -0.1, 1e-30, 2.0**-1074, -(2.0**-1022), 1e300, 2.0**53, 1 / 3]


def rounded(exact: Fraction, mode: str) -> float:
    """The f64 of a number other than 0 in a mode."""
    near = exact.numerator / exact.denominator
    if mode != "rn" and near != exact:
        upward = mode == "rp" or (mode == "rz" and exact < 0)
        if upward and near < exact:
            return math.nextafter(near, math.inf)
        if not upward and near > exact:
            return math.nextafter(near, -math.inf)
    return near


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("operation", ["add", "mul", "fma"])
def test_rare_cases(operation: str, mode: str) -> None:
    for a in SOME:
        for b in SOME[2:]:
            operands = (a, b, -a * b / 3)[: 3 if operation == "fma" else 2]
            if not all(map(math.isfinite, operands)):
                continue
            x, y, *z = map(Fraction, operands)
            exact = x + y if operation == "add" else x * y + (z[0] if z else 0)
            if exact == 0 or abs(exact) >= 2**1023:
                continue
            arrays = [np.array([one]) for one in operands]
            nearest = np.array([rounded(exact, "rn")])
            if operation == "fma":  # which may have been rounded twice
                nearest = np.nextafter(nearest, 0)
            assert round_exactly(operation, mode, nearest, *arrays)[0] == rounded(exact, mode)


@pytest.mark.parametrize("mode", TOWARDS)
def test_directed_sums(mode: str) -> None:
    x, y = (np.array(one).reshape(-1) for one in np.meshgrid(SOME, SOME))
    total, error = two_sum(x, y)
    found = round_directed(total, error, mode)
    for one, other, sum_ in zip(x, y, found):
        exact = Fraction(one) + Fraction(other)
        assert exact == 0 or sum_ == rounded(exact, mode)


def test_zeros_of_sums_towards_minus_infinity() -> None:
    one, zero, minus = np.array([1.0]), np.array([0.0]), np.array([-0.0])
    for x, y, negative in ((zero, zero, False), (minus, zero, True), (one, -one, True), (zero, minus, True)):
        assert np.signbit(odd_sum(x, y, "rm"))[0] == negative
        assert np.signbit(round_exactly("add", "rm", x + y, x, y))[0] == negative
    assert not np.signbit(odd_sum(one, -one))[0]
    assert not np.signbit(round_exactly("fma", "rm", zero, zero, zero, zero))[0]
    assert np.signbit(round_exactly("fma", "rm", zero, minus, zero, zero))[0]


def test_what_is_not_finite_is_kept_and_what_overflows_is_infinite() -> None:
    big, two, inf = np.array([1e308]), np.array([2.0]), np.array([np.inf])
    assert round_exactly("fma", "rn", inf, big, two * 8, two)[0] == np.inf
    assert round_exactly("fma", "rn", -inf, -big, two * 8, two)[0] == -np.inf
    assert round_exactly("mul", "rz", inf, inf, two)[0] == np.inf
    assert np.isnan(round_exactly("mul", "rz", np.array([np.nan]), two, two))[0]


def test_sums_rounded_to_odd() -> None:
    """An inexact sum ends in 1 and lies next to the exact one; an exact one is itself."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal(200) * 2.0 ** rng.integers(-40, 40, 200)
    y = rng.standard_normal(200)
    for one, other, sum_ in zip(x, y, odd_sum(x, y)):
        exact = Fraction(one) + Fraction(other)
        if Fraction(sum_) != exact:
            assert int(np.float64(sum_).view(np.int64)) & 1
            lower_one, upper_one = math.nextafter(sum_, -math.inf), math.nextafter(sum_, math.inf)
            assert lower_one < exact < upper_one
    assert odd_sum(np.array([1.0]), np.array([2.0]))[0] == 3.0


def test_errors_are_exact() -> None:
    x, y = np.random.default_rng(4).standard_normal((2, 100))
    for a, b, total, error in zip(x, y, *two_sum(x, y)):
        assert Fraction(total) + Fraction(error) == Fraction(a) + Fraction(b)
    for a, b, product, error in zip(x, y, *two_product(x, y)):
        assert Fraction(product) + Fraction(error) == Fraction(a) * Fraction(b)
    for dtype in (np.int64, np.uint64):
        numbers = np.array([1, (1 << 62) + 1, (1 << 63) - 1, 0xFFFFFFFF, 1 << 33], dtype)
        for number, total, error in zip(numbers.tolist(), *integer_sum(numbers)):
            assert Fraction(total) + Fraction(error) == number
    negative = np.array([-1, -(1 << 62) - 1], np.int64)
    assert [int(t) + int(e) for t, e in zip(*integer_sum(negative))] == negative.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_narrower(dtype: type) -> None:
    x = np.array([1 / 3, -1 / 3, 2 / 3, -2 / 3, 1.0, -0.0, 0.1, -0.1])
    assert np.array_equal(narrow(x, dtype), x.astype(dtype))
    zero, down, up = (narrow(x, dtype, mode).astype(float) for mode in ("rz", "rm", "rp"))
    assert (down <= x).all() and (x <= up).all() and (abs(zero) <= abs(x)).all()
    assert (np.where(x < 0, up, down) == zero).all()
    inexact = x != x.astype(dtype)
    assert (np.nextafter(down.astype(dtype), dtype(np.inf)) == up.astype(dtype))[inexact].all()
    assert (down == up)[~inexact].all()


def test_bfloat16() -> None:
    x = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-40, -(1 + 2**-9), 2.0**-140])
    one = 0x3F80
    assert to_bf16(x)[:5].tolist() == [one, one, one + 2, one + 1, 0x8000 | one]
    assert to_bf16(x, "rz")[:5].tolist() == [one, one, one + 1, one, 0x8000 | one]
    assert to_bf16(x, "rp")[:5].tolist() == [one, one + 1, one + 2, one + 1, 0x8000 | one]
    assert to_bf16(x, "rm")[:5].tolist() == [one, one, one + 1, one, 0x8000 | one + 1]
    assert to_bf16(np.array([np.nan, np.inf])).tolist() == [0x7FFF, 0x7F80]


def test_fused_multiply_add_of_32_bits() -> None:
    """Halfway cases and denormals too, which f64 rounds twice."""
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 300)).astype(np.float32)
    c = rng.standard_normal(300).astype(np.float32)
    a[:4] = [1 + 2**-12, 1, 2.0**-75, 2.0**-80]
    b[:4] = [1 + 2**-12, 2.0**-24, 2.0**-75, 2.0**-69]
    c[:4] = [2.0**-60, 1 + 2**-23, 2.0**-149, -(2.0**-149)]
    for x, y, z, found in zip(a, b, c, fma32(a, b, c)):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        below, above = (np.nextafter(found, np.float32(to)) for to in (-np.inf, np.inf))
        distance = abs(Fraction(float(found)) - exact)
        assert all(distance <= abs(Fraction(float(one)) - exact) for one in (below, above))
        if any(distance == abs(Fraction(float(one)) - exact) for one in (below, above)):
            assert int(found.view(np.int32)) & 1 == 0
    tie = (np.array([one], np.float32) for one in (1.0, 2.0**-24, 1.0))
    assert fma32(*tie)[0] == 1
    more = (np.array([one], np.float32) for one in (1 + 2**-23, 2.0**-24, 1.0))
    assert fma32(*more)[0] == np.float32(1 + 2**-23)
    shapes = [np.array(one, np.float32) for one in ([[1], [2]], [[3]], [[1, 2]])]
    assert fma32(*shapes).tolist() == [[4, 5], [7, 8]]


def test_fused_multiply_add_of_64_bits() -> None:
    rng = np.random.default_rng(6)
    a, b, c = rng.standard_normal((3, 100)) * 2.0 ** rng.integers(-30, 30, (3, 100))
    a[:5] = [1e200, 1e-200, 2.0**-600, 2.0**500, 1e-320]
    b[:5] = [1e-100, 1e-200, 2.0**-400, 2.0**460, 3.0]
    c[:5] = [1e100, 1e-300, 2.0**-1000, -(2.0**960), 1.0]
    for x, y, z, found in zip(a, b, c, fma64(a, b, c)):
        assert found == rounded(Fraction(x) * Fraction(y) + Fraction(z), "rn")
    one, inf, huge = np.array([1.0]), np.array([np.inf]), np.array([1e200])
    with np.errstate(invalid="ignore", over="ignore"):
        assert fma64(one, one, inf)[0] == np.inf and fma64(one, one, -inf)[0] == -np.inf
        assert fma64(huge, huge, -inf)[0] == -np.inf
        assert np.isnan(fma64(inf, np.array([0.0]), one))[0]
    assert np.signbit(fma64(np.array([-0.0]), one, np.array([-0.0])))[0]
    assert not np.signbit(fma64(one, one, -one))[0]


def test_minimum_maximum_and_saturation() -> None:
    nan, zero, minus = np.array([np.nan]), np.array([0.0]), np.array([-0.0])
    for a, b in ((zero, minus), (minus, zero)):
        assert np.signbit(lower(a, b))[0] and not np.signbit(higher(a, b))[0]
    one, two = zero + 1, zero + 2
    assert lower(one, two)[0] == lower(two, one)[0] == 1 and higher(one, two)[0] == higher(two, one)[0] == 2
    assert [pick(*pair)[0] for pick in (lower, higher) for pair in ((nan, two), (two, nan))] == [2] * 4
    assert saturate_float(np.array([-1.0, -0.0, 0.25, 1.0, 3.0, np.nan])).tolist() == [0, 0, 0.25, 1, 1, 0]
    assert not np.signbit(saturate_float(minus))[0]
