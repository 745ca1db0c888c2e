"""`--arg`: every right form with the wrong one beside it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim.argument_types import DTYPES, ArrayArg, Pointers, TensorMap, TensorMaps, Texture, dtype_of
from memsim.arguments import describe, read_arguments
from memsim.errors import MemsimError
from memsim.isa.program import Parameter

POINTER = Parameter("f_param_0", "u64", 8, 8, 0)
INT = Parameter("f_param_1", "u32", 4, 4, 8)
FLOAT = Parameter("f_param_2", "f32", 4, 4, 12)
BOOL = Parameter("f_param_5", "u8", 1, 1, 48)
STRUCT = Parameter("f_param_3", "b8", 4, 8, 16)
MAP = Parameter("f_param_6", "b8", 64, 128, 64)
VIEW = Parameter("f_param_4", "b8", 8, 24, 24)  # struct { float *data; int pitch; int8_t *kinds; }


def read(text: str, parameter: Parameter) -> object:
    (value,) = read_arguments([text], {"x": parameter})
    return value


@pytest.mark.parametrize(
    ("text", "parameter", "value"),
    [
        ("1024", INT, 1024),
        ("-1", INT, -1),
        ("0x10", INT, 16),
        ("1", FLOAT, 1.0),
        ("-2.5e3", FLOAT, -2500.0),
        ("256", POINTER, 256),
        ("true", BOOL, 1),
        ("false", BOOL, 0),
        ("2", BOOL, 2),
    ],
)
def test_a_number_is_read_by_its_parameter(text: str, parameter: Parameter, value: float) -> None:
    made = read(text, parameter)
    assert made == value
    assert type(made) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("tex1d(f32[64])", Texture(ArrayArg((64,)), 1, memory="linear")),
        ("tex1d(f32[64],memory=array,filter=linear)", Texture(ArrayArg((64,)), 1, filter="linear")),
        ("tex2d(f16[8,8,4]=zeros)", Texture(ArrayArg((8, 8, 4), "float16", "zeros"))),
        (
            "tex2d(u8[8,8],filter=linear,address=wrap,normalized,as_floats)",
            Texture(
                ArrayArg((8, 8), "uint8"),
                filter="linear",
                address="wrap",
                normalized=True,
                integers="normalized",
            ),
        ),
        ("tex2d(f32[8,8],memory=linear)", Texture(ArrayArg((8, 8)), memory="linear")),
        ("tex3d(f32[8,8,8])", Texture(ArrayArg((8, 8, 8)), 3)),
        ("tex2dlayered(f32[3,8,8])", Texture(ArrayArg((3, 8, 8)), layered=True)),
    ],
)
def test_a_texture_by_its_array_and_words(text: str, value: Texture) -> None:
    assert read(text, POINTER) == value
    assert describe(value) == text


@pytest.mark.parametrize(
    ("text", "parameter", "said"),
    [
        ("tex2d(f32[8])", POINTER, "no texture of 2 dimensions"),
        ("tex2d(f32[8,8],filter=cubic)", POINTER, "unknown word 'filter=cubic'"),
        ("tex2d(f32[8,8]", POINTER, "a texture is"),
        ("tex2d(@m.npy)", POINTER, "a texture is"),
        ("tex2d(f32[8,8],address=wrap)", POINTER, "needs normalized"),
        ("tex2d(f32[8,8])", INT, "a texture for x, which is u32"),
    ],
)
def test_a_text_that_is_no_texture(text: str, parameter: Parameter, said: str) -> None:
    with pytest.raises(MemsimError, match=re.escape(said)) as caught:
        read(text, parameter)
    assert caught.value.column is not None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("tensormap(f32[128,128])", TensorMap(ArrayArg((128, 128)))),
        ("tensormap(f16[64,32]=iota,box=8x16)", TensorMap(ArrayArg((64, 32), "float16", "iota"), (8, 16))),
        ("tensormap(bf16[512],box=64,swizzle=128)", TensorMap(ArrayArg((512,), "bfloat16"), (64,), 128)),
    ],
)
def test_a_tensor_map_by_its_array_box_and_swizzle(text: str, value: TensorMap) -> None:
    assert read(text, MAP) == value
    assert describe(value) == text


@pytest.mark.parametrize(
    ("text", "parameter", "said"),
    [
        ("tensormap(f32[8,8],swizzle=16)", MAP, "swizzles over 0, 32, 64 or 128 bytes"),
        ("tensormap(f32[8,8],box=8y8)", MAP, "a tensor map is"),
        ("tensormap(f32[8;8])", MAP, "a shape is a list"),
        ("tensormap(f32[8,8])", INT, "for x, which is u32"),
    ],
)
def test_a_text_that_is_no_tensor_map(text: str, parameter: Parameter, said: str) -> None:
    with pytest.raises(MemsimError, match=re.escape(said)) as caught:
        read(text, parameter)
    assert caught.value.column is not None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("f32[1024,64]", ArrayArg((1024, 64), "float32", "random")),
        ("f32[8]=random", ArrayArg((8,), "float32", "random")),
        ("i32[64]=iota", ArrayArg((64,), "int32", "iota")),
        ("u8[2, 3, 4]=zeros", ArrayArg((2, 3, 4), "uint8", "zeros")),
    ],
)
def test_an_array_by_type_and_shape(text: str, value: ArrayArg) -> None:
    assert read(text, POINTER) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("f32(1,-2)", np.array([1, -2], np.float32).tobytes()),
        ("f16(1, 2, 3, 4)", np.array([1, 2, 3, 4], np.float16).tobytes()),
        ("i32(0x10)+f32(1e+5)", np.int32(16).tobytes() + np.float32(1e5).tobytes()),
    ],
)
def test_a_struct_is_its_numbers(text: str, value: bytes) -> None:
    assert read(text, STRUCT) == value


def test_a_struct_with_arrays_keeps_its_parts(tmp_path: Path) -> None:
    np.save(tmp_path / "kinds.npy", np.arange(4, dtype=np.int8))
    (made,) = read_arguments(["f32[8]=iota+i32(3)+@kinds.npy"], {"x": VIEW}, tmp_path)
    assert isinstance(made, tuple)
    data, pitch, kinds = made
    assert data == ArrayArg((8,), "float32", "iota")
    assert isinstance(pitch, np.int32) and pitch == 3
    assert isinstance(kinds, np.ndarray) and kinds.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("text", "padded"),
    [
        ("u8(1)+f64(2)+i32(3)", "u8(1,0,0,0,0,0,0,0)+f64(2)+i32(3,0)"),
        ("f64(2)+i32(3)+i64(4)", "f64(2)+i32(3)+i32(0)+i64(4)"),
        ("i64(1)+u8(1)+u16(2)+f32(3)+i16(4)", "i64(1)+u8(1,0)+u16(2)+f32(3)+i16(4,0,0,0)"),
    ],
)
def test_parts_lie_where_c_puts_them(text: str, padded: str) -> None:
    assert read(text, VIEW) == read(padded, VIEW)


def test_every_type_name_is_one_of_numpy() -> None:
    assert len(DTYPES) == 14
    bits = {"bf16": 16, "e4m3": 8, "e5m2": 8}
    for name, dtype in DTYPES.items():
        assert dtype_of(dtype).itemsize * 8 == (bits.get(name) or int(name[1:]))
        assert name in bits or np.dtype(dtype).kind == name[0]


def test_an_array_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "m.npy"
    np.save(path, np.arange(6, dtype=np.int16).reshape(2, 3).T)
    made = read(f"@{path}", POINTER)
    assert isinstance(made, np.ndarray)
    assert made.flags.c_contiguous
    assert made.tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize(
    ("text", "parameter", "message", "column"),
    [
        ("1.5", INT, "invalid value for x, which is u32", 1),
        ("true", INT, "invalid value for x, which is u32", 1),
        ("True", BOOL, "invalid value for x, which is u8", 1),
        ("ten", FLOAT, "invalid value for x, which is f32", 1),
        ("", INT, "invalid value for x", 1),
        ("f32[8]", INT, "an array for x, which is u32, not a pointer", 1),
        ("f32[8]", FLOAT, "an array for x, which is f32, not a pointer", 1),
        ("f32[8", POINTER, "TYPE", 4),
        ("f32[8]zeros", POINTER, "TYPE", 4),
        ("[8]", POINTER, "TYPE", 1),
        ("float[8]", POINTER, "unknown type 'float'; known: f16", 1),
        ("f32[]", POINTER, "a shape", 5),
        ("f32[8,,8]", POINTER, "a shape", 5),
        ("f32[0]", POINTER, "a shape", 5),
        ("f32[-8]", POINTER, "a shape", 5),
        ("f32[8x8]", POINTER, "a shape", 5),
        ("f32[8]=twos", POINTER, "unknown content 'twos'; known: random", 8),
        ("f32[8]=", POINTER, "unknown content ''", 8),
        ("0x" + "f" * 5000, INT, "invalid value for x, which is u32", 1),
        ("1", STRUCT, "a number for x, which is a struct of 8 bytes", 1),
        ("f32(1)", STRUCT, "x is a struct of 8 bytes, but its parts have 4", 1),
        ("f32(1,2)", INT, "x is u32 of 4 bytes, but its parts have 8", 1),
        ("1024", VIEW, "a number for x, which is a struct of 24 bytes", 1),
        ("f32[8]", VIEW, "x is a struct of 24 bytes, but its parts have 8", 1),
        ("u8(1)+f64(1)", VIEW, "its parts have 9 packed, 16 aligned", 1),
        ("f32[8]+i32(1)+float[8]", VIEW, "unknown type 'float'; known: f16", 15),
        ("i32(1)+f32[8]+", VIEW, "joined by +", 15),
        ("f32(1)f32(2)", STRUCT, "joined by +", 7),
        ("f32(1)+", STRUCT, "joined by +", 8),
        ("f32(1)+float(2)", STRUCT, "unknown type 'float'; known: f16", 8),
        ("f32(1)+i32(1.5)", STRUCT, "no i32 numbers", 12),
        ("f32(1)+u8(1,2,3,256)", STRUCT, "no u8 numbers", 11),
        ("f32()", STRUCT, "no f32 numbers", 5),
        ("f32(1e39,1)", STRUCT, "no f32 numbers", 5),
        ("@none.npy", POINTER, "there is no such file (none.npy)", 2),
    ],
)
def test_a_wrong_one_is_shown_with_a_caret_and_examples(
    text: str, parameter: Parameter, message: str, column: int
) -> None:
    with pytest.raises(MemsimError) as caught:
        read(text, parameter)
    assert message in caught.value.message
    assert (caught.value.source, caught.value.column) == (text, column)
    assert "examples: 1024, 1.0, 'f32[1024,1024]'" in str(caught.value)
    assert "    " + " " * (column - 1) + "^" in str(caught.value).splitlines()


def test_a_file_that_is_no_array_is_an_error(tmp_path: Path) -> None:
    text, pickled, several = tmp_path / "text.npy", tmp_path / "pickle.npy", tmp_path / "several.npz"
    text.write_text("1 2 3")
    np.save(pickled, np.array([{}], object), allow_pickle=True)
    np.savez(several, a=np.zeros(3), b=np.zeros(3))
    for path in (text, pickled, several):
        with pytest.raises(MemsimError, match=r"not a \.npy file"):
            read(f"@{path}", POINTER)


def test_too_few_or_too_many_are_counted() -> None:
    parameters = {"n": INT, "x": FLOAT}
    assert read_arguments(["1", "2.0"], parameters) == [1, 2.0]
    for texts in (["1"], ["1", "2.0", "3"]):
        with pytest.raises(MemsimError, match=rf"takes 2 arguments \(n: u32, x: f32\).* {len(texts)}"):
            read_arguments(texts, parameters)


@pytest.mark.parametrize(
    ("ways", "text"),
    [
        (("f32[64,2]", "f32[64, 2]=random", ArrayArg((64, 2)), np.zeros((64, 2), np.float32)), "f32[64,2]"),
        (("i32[8]=iota", ArrayArg((8,), "int32", "iota")), "i32[8]=iota"),
        (("1000", 1000), "1000"),
        (("f32[8]+i32(3)", (ArrayArg((8,)), np.int32(3)), [ArrayArg((8,)), np.int32(3)]), "f32[8]+i32(3)"),
        (("@pick.npy",), "@pick.npy"),
    ],
)
def test_an_argument_is_described_alike_however_it_is_given(ways: tuple[Any, ...], text: str) -> None:
    assert [describe(given) for given in ways] == [text] * len(ways)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        ("bf16[8]", ArrayArg((8,), "bfloat16")),
        ("e4m3[8]=ones", ArrayArg((8,), "float8_e4m3fn", "ones")),
        ("e5m2[2,4]=zeros", ArrayArg((2, 4), "float8_e5m2", "zeros")),
    ],
)
def test_null_pointers_and_types_that_numpy_lacks(text: str, value: object) -> None:
    (found,) = read_arguments([text], {"p": POINTER})
    assert found == value
    assert describe(found) == text


def test_views_and_tables_in_words() -> None:
    whole = np.zeros((4, 8), np.float32)
    told = {
        "f32[4,8]": whole,
        "f32[4,4]@16/(32,4)": whole[:, 4:],
        "f32[8]@32": whole[1],
        "f32[4]@12/(-4,)": ArrayArg((4,), strides=(-4,)),
        "pointers(f32[4,8],null)": Pointers([whole, None]),
        "tensormap(bf16[8]=zeros)": TensorMap(ArrayArg((8,), "bfloat16", "zeros")),
        "tensormaps(f32[4,8])": TensorMaps([TensorMap(whole, (4, 8))]),
    }
    assert {describe(value): value for value in told.values()}.keys() == told.keys()
