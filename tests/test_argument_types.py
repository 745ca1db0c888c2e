"""What an `ArrayArg` is filled with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim.argument_types import ArrayArg, TensorMap
from memsim.argument_types.argument import Parameter, argument_of
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
        (((64,), "f32", "zeros", -1), "an array's seed must be integers, not -1"),
        (((64,), "f32", "zeros", 0, 4), "an array's strides must be integers, not 4"),
        (((64,), "f32", "zeros", 0, (4.0,)), r"an array's strides must be integers, not \(4.0,\)"),
        (((64,), "f32", "zeros", 0, ()), "do not match an array of shape"),
        (((64,), "f32", "zeros", 0, None, 1.5), "an array's offset must be integers, not 1.5"),
    ],
)
def test_an_array_that_cannot_be_is_refused(wrong: tuple[Any, ...], message: str) -> None:
    with pytest.raises(MemsimError, match=message):
        ArrayArg(*wrong)


def test_integers_of_numpy_are_integers() -> None:
    given = np.arange(9)
    found = ArrayArg([given[8]], "f32", "zeros", given[1], [given[4]], given[8])
    assert found == ArrayArg((8,), "f32", "zeros", 1, (4,), 8)
    assert {type(one) for one in (*found.shape, *found.strides, found.offset)} == {int}


@pytest.mark.parametrize(("kind", "most"), [("f16", 65504), ("f32", 3e38), ("f64", 1e308), ("b32", 3e38)])
def test_a_number_that_no_float_of_the_size_holds_is_refused(kind: str, most: float) -> None:
    size = int(kind[1:]) // 8
    parameter = Parameter("x", kind, size, size, 0)
    assert parameter.takes(most) and parameter.takes(np.inf)
    assert not parameter.takes(10**400) and not (kind != "f64" and parameter.takes(1e300))


def test_an_array_of_objects_is_no_argument() -> None:
    pointer = Parameter("x", "u64", 8, 8, 0)
    assert argument_of(np.ones(4)).fits(pointer, "x")
    assert not argument_of(np.array([None])).fits(pointer, "x")


def test_a_tensor_map_is_over_an_array() -> None:
    assert TensorMap(np.ones((4, 4)), (2, 2)).box == (2, 2)
    wrong: tuple[tuple[Any, Any], ...] = (("x", (2, 2)), (np.ones((4, 4)), 2))
    for array, box in wrong:
        with pytest.raises(MemsimError, match="tensor map"):
            TensorMap(array, box)


def test_an_array_has_short_names_of_types() -> None:
    assert ArrayArg((64,), "i32") == ArrayArg((64,), "int32")
    assert ArrayArg((64,), "i32").make().dtype == "int32"
