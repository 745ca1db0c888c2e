"""`launch.json`: what is written is what is read, and mistakes are said."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docs.schemas import launch_schema
from memsim.api.loading import from_cubin
from memsim.argument_types import (
    ArrayArg,
    Pointers,
    StructFields,
    TensorMap,
    TensorMaps,
    Texture,
    Texture1D,
)
from memsim.argument_types.argument import ArgumentPlaces, Parameter, argument_of
from memsim.argument_types.array_arg import dtype_of
from memsim.captured.launched import Launched, snapshot
from memsim.captured.saved_launch import read_launch, write_launch
from memsim.compile.cuda_source import compile_cubin
from memsim.errors import MemsimError
from memsim.kernel import Kernel

SOURCE = """
struct View { const float *data; int pitch; };
struct alignas(64) Map { unsigned long long words[16]; };
extern "C" __global__ void k(const float *x, float *y, const float *const *table, View view, int n, float f,
                             const __grid_constant__ Map map, const int *none, const Map *maps) {
    int i = threadIdx.x;
    if (i < n) y[i] = x[i] + table[i & 1][i] + view.data[i * view.pitch] + f;
}"""
NAMES = ("x", "y", "table", "view", "n", "f", "map", "none", "maps")


@pytest.fixture(scope="module")
def cubin() -> bytes:
    return compile_cubin(SOURCE).cubin


def launch(cubin: bytes, **changes: Any) -> Launched:
    memory = np.arange(200, dtype=np.float32)
    args = (
        memory[1:33],
        memory[100:132],
        Pointers([ArrayArg((32,)), memory[40:72]]),
        [ArrayArg((32, 2), strides=(8, 4)), np.int32(2)],
        np.int32(32),
        np.float32(0.5),
        TensorMap(ArrayArg((64, 64), "bfloat16"), (32, 32)),
        None,
        TensorMaps([TensorMap(ArrayArg((64, 64), "float16"), (8, 8), 0)]),
    )
    kernel = replace(from_cubin(cubin, "somebody 1.0")["k"], names=NAMES)
    made = Launched(kernel, (1, 1, 1), (32, 1, 1), snapshot(args), 16, note="n=32")
    return replace(made, **changes)


def rows(launched: Launched) -> list[tuple[object, ...]]:
    return [(s.line, s.op, s.array, s.width, s.requests, s.sectors) for s in launched.analyze().sites]


def test_what_is_written_is_what_is_read(cubin: bytes, tmp_path: Path) -> None:
    before = launch(cubin)
    path = write_launch(before, tmp_path / "run")
    record = json.loads(path.read_text("utf-8"))
    jsonschema.validate(record, launch_schema())
    after = read_launch(path)
    assert rows(after) == rows(before)
    assert after.kernel.origin == before.kernel.origin
    assert {array for _, _, array, *_ in rows(after)} == {
        "x, y, table[1]",
        "table",
        "table[0]|x, y, table[1]",
        "view.0",
    }
    assert after.kernel.machine.module.content == cubin
    same = ("grid", "block", "shared_bytes", "note", "cluster")
    assert [getattr(after, name) for name in same] == [getattr(before, name) for name in same]
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "array0.npy",
        "kernel.cubin",
        "kernel.sass.gz",
        "launch.json",
    ]


def test_arrays_of_one_allocation_lie_in_one_again(cubin: bytes, tmp_path: Path) -> None:
    after = read_launch(write_launch(launch(cubin), tmp_path))
    x, y = after.args[0], after.args[1]
    assert np.shares_memory(x, after.args[2].arrays[1]) is False  # side by side
    assert y.__array_interface__["data"][0] - x.__array_interface__["data"][0] == 99 * 4
    after.run()
    assert y[0] == 1 + after.args[2].arrays[0].make()[0] + after.args[3][0].make()[0, 0] + np.float32(0.5)


def test_a_launch_keeps_its_arrays_as_they_were(cubin: bytes) -> None:
    mine = np.arange(64, dtype=np.float32)
    first, second = snapshot([mine[:32], mine[32:]])
    mine[:] = 0
    assert first[5] == 5 and second[5] == 37
    assert np.shares_memory(first.base, second.base)


@pytest.mark.parametrize(
    "texture",
    [
        Texture1D(ArrayArg((8, 4))),
        Texture(ArrayArg((8, 8, 4), "uint8"), filter="linear", integers="normalized"),
        Texture(ArrayArg((3, 8, 8)), layered=True, address="wrap", normalized=True),
        Texture(ArrayArg((64,), "float16"), 1, memory="linear"),
    ],
)
def test_any_texture_comes_back(texture: Texture, tmp_path: Path) -> None:
    assert read_launch(write_launch(launch_of(texture), tmp_path / "launch")).args[0] == texture


@settings(max_examples=40, deadline=None)
@given(
    dtype=st.sampled_from(["float32", "int8", "float64", "complex64", "bfloat16", "float8_e5m2", "bool"]),
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    order=st.permutations(range(3)),
    steps=st.lists(st.sampled_from([1, 2, -1, -3]), min_size=3, max_size=3),
    described=st.booleans(),
)
def test_any_array_comes_back(
    dtype: str, shape: list[int], order: list[int], steps: list[int], described: bool, tmp_path_factory: Any
) -> None:
    made = ArrayArg(tuple(extent * 3 for extent in shape), dtype, seed=7).make()
    view = made.transpose([axis for axis in order if axis < made.ndim])
    view = view[tuple(slice(None, None, step) for step in steps[: made.ndim])]
    array: Any = view
    if described:
        array = ArrayArg(view.shape, dtype, "iota", strides=view.strides)
    folder = tmp_path_factory.mktemp("launch")
    found: Any = read_launch(write_launch(launch_of(array), folder)).args[0]
    if described:
        assert found.extent == array.extent and found.start == array.start
        assert (found.make() == array.make()).all()
        return
    assert (found.shape, found.strides, found.dtype) == (view.shape, view.strides, view.dtype)
    assert found.tobytes() == view.tobytes()


@cache
def pointer_kernel() -> Kernel:
    """A kernel of one pointer."""
    return from_cubin(compile_cubin('extern "C" __global__ void k(char *x) { x[0] = 1; }\n').cubin)["k"]


def launch_of(argument: Any) -> Launched:
    return Launched(pointer_kernel(), (1, 1, 1), (1, 1, 1), snapshot([argument]))


def test_a_hand_written_launch_of_a_source_file(tmp_path: Path) -> None:
    text = 'extern "C" __global__ void k(float *x, int n) { x[threadIdx.x * STRIDE] = n; }\n'
    (tmp_path / "k.cu").write_text(text)
    record = {
        "kernel": "k",
        "code": "k.cu",
        "options": ["-DSTRIDE=2"],
        "grid": [1],
        "block": [32],
        "arguments": [
            {"kind": "array", "dtype": "float32", "shape": [64], "fill": "zeros", "offset": 4},
            {"kind": "scalar", "value": 3},
        ],
    }
    path = tmp_path / "launch.json"
    path.write_text(json.dumps(record))
    (site,) = read_launch(path).analyze().sites
    assert (site.sectors, site.array, site.source) == (8, "x", text.strip())
    record["arguments"][0]["values"] = [0.0] * 64  # type: ignore[index]
    del record["arguments"][0]["offset"]  # type: ignore[attr-defined,index]
    path.write_text(json.dumps(record))
    launched = read_launch(path)
    launched.run()
    assert launched.args[0][::2].tolist() == [3.0] * 32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grid": [0]}, r"this is not a launch: Expected `int` >= 1 - at `\$.grid\[0\]`"),
        ({"arguments": [{"kind": "matrix"}]}, "this is not a launch"),
        ({"arguments": [{"kind": "scalar", "dtype": "int8", "value": 300}]}, "300 is not of type int8"),
        ({"size": 1}, "this is not a launch: Object contains unknown field `size`"),
        ({"code": "other.cubin"}, "there is no other.cubin beside it"),
        ({"kernel": "other"}, "no kernel 'other'"),
        ({"arguments": []}, "takes 1 arguments, but 0 were given"),
        (
            {"arguments": [{"kind": "array", "dtype": "int8", "shape": [4], "values": "x.npy"}]},
            "there is no x.npy beside it",
        ),
        (
            {"arguments": [{"kind": "array", "dtype": "int8", "shape": [5], "values": "four.npy"}]},
            "does not contain",
        ),
        (
            {"arguments": [{"kind": "array", "dtype": "int8", "shape": [5], "values": "huge.npy"}]},
            "cannot read huge.npy: it is truncated",
        ),
        (
            {"arguments": [{"kind": "array", "dtype": "intact", "shape": [4]}]},
            "unknown element type 'intact'",
        ),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = write_launch(launch_of(ArrayArg((4,), "int8")), tmp_path)
    np.save(tmp_path / "four.npy", np.zeros(4, np.int8))
    (tmp_path / "huge.npy").write_bytes(
        (tmp_path / "four.npy").read_bytes().replace(b"(4,), }        ", b"(1099511627776,), }")
    )
    record = json.loads(path.read_text("utf-8"))
    assert read_launch(path).analyze().sites
    path.write_text(json.dumps({**record, **change}))
    with pytest.raises(MemsimError, match=message):
        read_launch(path).analyze()


def test_a_file_that_is_no_json_is_said(tmp_path: Path) -> None:
    with pytest.raises(MemsimError, match=r"none\.json: there is no such file"):
        read_launch(tmp_path / "none.json")
    (tmp_path / "half.json").write_text("{")
    with pytest.raises(MemsimError, match="this is not a launch"):
        read_launch(tmp_path / "half.json")


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5_000, '{"grid": "\\ud800"}', ""])
def test_what_is_hardly_json_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "launch.json").write_text(text)
    with pytest.raises(MemsimError, match="this is not a launch"):
        read_launch(tmp_path / "launch.json")


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 1.5, 3, True, np.complex64(1 - 2j)])
def test_a_number_comes_back(tmp_path: Path, value: Any) -> None:
    found = read_launch(write_launch(launch_of(value), tmp_path)).args
    assert found == (value,) and type(found[0]) is type(value)


@pytest.mark.parametrize(
    "number",
    [np.float32(1.5), np.float32("inf"), dtype_of("bfloat16").type(2), np.complex64(complex(1, np.inf))],
)
def test_a_number_keeps_its_place_in_a_struct(tmp_path: Path, number: Any) -> None:
    """It lies behind a byte, at a multiple of its own size."""
    found = read_launch(write_launch(launch_of((np.int8(1), number)), tmp_path)).args[0]
    size = 2 * number.nbytes
    parameter = Parameter("s", f"b{8 * size}", number.nbytes, size, 0)
    for struct in ((np.int8(1), number), found):
        raw = argument_of(struct).encode(parameter, cast(ArgumentPlaces, None), 0)
        assert raw == b"\1".ljust(number.nbytes, b"\0") + number.tobytes()


def test_the_published_schema_is_the_one_that_is_used() -> None:
    published = Path(__file__).parents[2] / "docs" / "launch.schema.json"
    assert json.loads(published.read_text("utf-8")) == json.loads(json.dumps(launch_schema())), (
        "run python docs/generate.py"
    )
    jsonschema.Draft202012Validator.check_schema(launch_schema())


def test_names_of_a_structs_parts_come_back(tmp_path: Path) -> None:
    array = np.arange(4, dtype=np.float32)
    for names in (("", "inner"), ("", "")):
        given = StructFields((array, np.int64(3)), names)
        found = read_launch(write_launch(launch_of(given), tmp_path)).args[0]
        assert isinstance(found, StructFields) and found.names == names
        np.testing.assert_array_equal(found[0], array)
        assert found[1] == 3
    plain = launch_of((array, np.int64(3)))
    assert not isinstance(read_launch(write_launch(plain, tmp_path)).args[0], StructFields)


@pytest.mark.parametrize("name", ["k.cu", "kernel.cubin", "kernel.sass.gz", "array0.npy", "launch.json"])
def test_a_source_of_any_name_is_saved_beside_the_rest(name: str, cubin: bytes, tmp_path: Path) -> None:
    before = launch(cubin)
    named = replace(before, kernel=replace(before.kernel, sources={f"/somewhere/{name}": SOURCE}))
    after = read_launch(write_launch(named, tmp_path))
    assert after.kernel.machine.module.content == cubin
    assert rows(after) == rows(before)
    assert after.kernel.sources == {name: SOURCE}


def test_textures_and_tables_are_made_of_arrays() -> None:
    array = ArrayArg((64, 64))
    assert len(Pointers([array, None]).arrays) == len(TensorMaps([TensorMap(array, (8, 8))]).maps) + 1
    assert Texture(array).size == (64, 64)
    assert Texture1D(array).size == (1024,)
    for wrong in (5, None, "f32[4]", [1.0, 2.0]):
        for kind in (Texture, Texture1D):
            with pytest.raises(MemsimError, match="a texture is over an array of numpy or an ArrayArg, not"):
                kind(cast("Any", wrong))
    for made_of in (5, None, array, iter([array])):
        for table in (Pointers, TensorMaps):
            with pytest.raises(MemsimError, match="a table is made of a list of"):
                table(cast("Any", made_of))
    with pytest.raises(MemsimError, match="a border has four channels"):
        Texture(array, border=cast("Any", 5))
