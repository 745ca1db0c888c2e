"""What an `ArrayArg` is filled with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim.argument_types import ArrayArg
from memsim.errors import MemsimError


@pytest.mark.parametrize(
    ("dtype", "least", "most"),
    [
        ("uint8", 0, 255),
        ("int8", -128, 127),
        *((f"{k}{b}", 0, 127) for k in ("int", "uint") for b in (16, 32, 64)),
    ],
)
def test_random_integers_have_the_range_that_the_help_says(dtype: str, least: int, most: int) -> None:
    made = ArrayArg((100_000,), dtype).make()
    assert made.dtype == dtype
    assert np.unique(made).tolist() == list(range(least, most + 1))
    assert (made == ArrayArg((100_000,), dtype).make()).all()
    assert (made != ArrayArg((100_000,), dtype, seed=1).make()).any()


def test_random_floats_lie_around_zero() -> None:
    made = ArrayArg((100_000,), "float32").make()
    assert -1 <= made.min() < -0.999 and 0.999 < made.max() <= 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (((64,), "bfloat17"), "unknown element type 'bfloat17'"),
        (((64,), "object"), "unknown element type 'object'"),
        (((64,), None), "unknown element type None"),
        (((64,), "f32", "twos"), "unknown content 'twos'"),
        ((64, "f32"), "an array's shape must be integers"),
        (((-1,), "f32"), "an array's shape must be integers"),
        (((2**30, 2**30), "f32"), "larger than any GPU's memory"),
        (((10**5000,), "f32"), "larger than any GPU's memory"),
    ],
)
def test_an_array_that_cannot_be_is_refused(wrong: tuple[Any, ...], message: str) -> None:
    with pytest.raises(MemsimError, match=message):
        ArrayArg(*wrong)


def test_an_array_has_short_names_of_types() -> None:
    assert ArrayArg((64,), "i32") == ArrayArg((64,), "int32")
    assert ArrayArg((64,), "i32").make().dtype == "int32"
