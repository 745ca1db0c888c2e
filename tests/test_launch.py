"""What an `ArrayArg` is filled with."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.launch import ArrayArg


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
