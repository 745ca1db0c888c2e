"""Between which numbers a function's results lie on any chip: around its value, by the error that CUDA's
documentation gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from memsim.isa.documented_errors import ERRORS, limits, limits_between
from memsim.isa.multi_function import FUNCTIONS
from memsim.isa.op import Form

FULL = 2 * math.pi
#: By function: its value, and how far a result may be from it. Of an argument, and of its value.
DOCUMENTED: dict[str, tuple[Callable[[float], float], Callable[[float, float], float]]] = {
    "RCP": (lambda x: 1 / x, lambda x, y: abs(y) * 2**-23),
    "SQRT": (math.sqrt, lambda x, y: abs(y) * 2**-23),
    "RSQ": (lambda x: 1 / math.sqrt(x), lambda x, y: abs(y) * 2**-22.9),
    "EX2": (lambda x: 2.0**x, lambda x, y: abs(y) * 2**-22),
    "LG2": (math.log2, lambda x, y: 2**-22 * (1 if 0.5 < x < 2 else abs(y))),
    "TANH": (math.tanh, lambda x, y: abs(y) * 2**-11),
    "SIN": (lambda x: math.sin(FULL * x), lambda x, y: 2**-20 if abs(x) <= 1 else math.nan),
    "COS": (lambda x: math.cos(FULL * x), lambda x, y: 2**-20 if abs(x) <= 1 else math.nan),
}
SPECIAL = np.array([0.0, -0.0, 1e-40, -1e-40, np.inf, -np.inf, np.nan], np.float32)


def arguments(name: str) -> np.ndarray:
    chance = np.random.default_rng(len(name))
    sizes = np.exp2(chance.uniform(-100, 100, 200))
    found = np.concatenate([chance.uniform(-3, 3, 200), sizes, -sizes, [0.5, 1, 2, -0.5, -1, 1.25]])
    return np.abs(found).astype(np.float32) if name in ("SQRT", "RSQ", "LG2") else found.astype(np.float32)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_limits_are_the_value_less_and_plus_its_error(name: str) -> None:
    value_of, error_of = DOCUMENTED[name]
    x = arguments(name)
    with np.errstate(all="ignore"):
        low, high = limits(name, x)
        chip = FUNCTIONS[name](x)
    known = 0
    for i, argument in enumerate(x.tolist()):
        try:
            value = value_of(argument)
        except OverflowError:
            value = math.inf
        error = error_of(argument, value)
        is_known = max(abs(value), error) >= 2**-125 and abs(value) + error <= float(np.finfo(np.float32).max)
        assert (not math.isnan(low[i])) == (not math.isnan(high[i])) == is_known
        if is_known:
            known += 1
            one = float(np.spacing(np.float32(abs(value) + error)))
            assert value - error - 2 * one <= low[i] <= value - error
            assert value + error <= high[i] <= value + error + 2 * one
            assert low[i] <= chip[i] <= high[i]
    assert known > 100


@pytest.mark.parametrize("name", ERRORS)
def test_limits_of_what_all_chips_make_the_same(name: str) -> None:
    x = SPECIAL if name not in ("SQRT", "RSQ", "LG2") else np.append(SPECIAL, np.float32([-1, -2.5]))
    with np.errstate(all="ignore"):
        same = FUNCTIONS[name](x)
        found = limits(name, x)
    assert all((one.view(np.int32) == same.view(np.int32)).all() for one in found)


def test_limits_between_two_arguments() -> None:
    one, two = np.float32([[1.5, 2.0]]), np.float32([[1.5, 3.0]])
    for name in FUNCTIONS:
        alike = limits_between(Form("MUFU", (name,), ()), one, one)
        assert alike is not None
        wanted = limits(name, one)
        assert all(
            np.array_equal(a, b, equal_nan=True) for a, b in zip(alike, (*wanted, *wanted), strict=True)
        )
        apart = limits_between(Form("MUFU", (name, "FTZ"), ()), one, two)
        assert (apart is None) == (name in ("SIN", "COS"))
        if apart is not None:
            wanted = (*limits(name, one), *limits(name, two))
            assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(apart, wanted, strict=True))
        assert limits_between(Form("MUFU", (name,), ()), one, -two) is None
        assert limits_between(Form("MUFU", (name, "F16"), ()), one, one) is None
    assert limits_between(Form("MUFU", ("RCP64H",), ()), one, one) is None
