"""The Python interface taken wrongly: each mistake with its message, and the right thing beside it."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memsim
from memsim.api.loading import Module, from_text
from memsim.kernel import Kernel
from memsim.launch import dim3
from memsim.views.analyze.terminal import write

ONE = 'extern "C" __global__ void scale(int *a) { a[threadIdx.x] = threadIdx.x; }\n'


@pytest.fixture
def module() -> Module:
    return from_text(ONE)


@pytest.fixture
def kernel(module: Module) -> Kernel:
    return module["scale"]


def refusal(call: Any, *args: Any, **named: Any) -> str:
    with pytest.raises(memsim.MemsimError) as caught:
        call(*args, **named)
    return str(caught.value)


@pytest.mark.slow
def test_source_is_loaded_as_text(tmp_path: Path) -> None:
    file = tmp_path / "kernel.cu"
    file.write_text(ONE)
    counts = [
        memsim.analyze(module["scale"], 1, 32, ["i32[32]"]).to_dict()["sites"]
        for module in (memsim.load(ONE.strip()), memsim.load(file, name="kernel.cu"))
    ]
    assert counts[0] == counts[1]
    assert counts[0][0]["file"] == "kernel.cu"
    assert "mine.cu:1: does not compile" in refusal(memsim.load, ONE.replace(";", "", 1), name="mine.cu")


@pytest.mark.some(1)
@pytest.mark.parametrize("verb", [memsim.analyze, memsim.run])
def test_what_is_no_kernel_is_told_how_to_get_one(verb: Any, module: Module) -> None:
    data = np.zeros(32, np.int32)
    two = memsim.load(ONE + ONE.replace("scale", "other"))
    assert "a module is not a kernel: choose a kernel from it" in refusal(verb, two, 1, 32, [data])
    assert "'scale' is not a kernel" in refusal(verb, "scale", 1, 32, [data])
    assert "a Spec is not a kernel" in refusal(verb, memsim.catalog()["kernel_v4"], 1, 32, [data])
    verb(module["scale"], 1, 32, [data])


def test_the_only_kernel_of_a_module_is_meant(module: Module) -> None:
    mine, named = (memsim.analyze(one, 1, 32, ["i32[32]"]).to_dict() for one in (module, module["scale"]))
    assert mine == named and mine["sites"]


def test_a_kernel_is_chosen_by_name(module: Module) -> None:
    assert "write module['scale']" in refusal(module.__getitem__, 0)
    assert module["scale"].name == "scale"


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        ({"grid": 4.0}, {"grid": 4}, "grid must be one to three positive integers, not 4.0"),
        ({"grid": None}, {"grid": [2, 2]}, "grid must be one to three positive integers, not None"),
        ({"block": (32.0,)}, {"block": (32,)}, "block must be one to three positive integers"),
        ({"block": "32"}, {"block": np.int64(32)}, "block must be one to three positive integers"),
        ({"blocks": 1.5}, {"blocks": 1}, "blocks must be an integer of at least 1, not 1.5"),
        ({"blocks": 0}, {"blocks": 9}, "blocks must be an integer of at least 1, not 0"),
        ({"shared_bytes": "1"}, {"shared_bytes": 1}, "dynamic shared memory cannot be '1' bytes"),
        ({"args": None}, {}, "the arguments must be a list with one for each parameter, not None"),
        ({"args": np.zeros(1)}, {}, r"the arguments must be a list .* not an array float64\[1\]"),
    ],
)
def test_a_launch_of_the_wrong_types(
    kernel: Kernel, wrong: dict[str, Any], right: dict[str, Any], message: str
) -> None:
    launch = {"grid": 1, "block": 32, "args": [memsim.ArrayArg((32,), "int32")]}
    memsim.analyze(kernel, **{**launch, **right})
    with pytest.raises(memsim.MemsimError, match=message):
        memsim.analyze(kernel, **{**launch, **wrong})


def test_dim3_takes_whatever_can_be_counted_through() -> None:
    assert dim3(8) == dim3(np.int32(8)) == dim3([8]) == dim3(np.array([8, 1])) == (8, 1, 1)


def test_load_says_what_it_takes(tmp_path: Path) -> None:
    for nothing in ("", None, 3):
        assert "load takes the path of a .cu, .ptx or .cubin file" in refusal(memsim.load, nothing)
    path = tmp_path / "scale.cu"
    path.write_text(ONE)
    assert list(memsim.load(path)) == list(memsim.load(str(path))) == ["scale"]
    assert "write options=['-DN=1', '-DM=2']" in refusal(memsim.load, "scale.cu", "-DN=1 -DM=2")


def test_a_source_can_be_taken_to_hold_another_text(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text('#include "n.cuh"\nextern "C" __global__ void one(int *p) { *p = N; }\n')
    (tmp_path / "n.cuh").write_text("#define N 1\n")
    text = path.read_text().replace("one", "two")
    module = memsim.load(path, text=text)
    assert (list(memsim.load(path)), list(module)) == (["one"], ["two"])
    assert module["two"].sources[path.as_posix()] == text
    ptx = tmp_path / "scale.ptx"
    ptx.write_text(ONE)
    assert "so its text cannot be replaced" in refusal(memsim.load, ptx, text="x")


@pytest.mark.parametrize("size", [128, 128.0, object()])
def test_a_size_is_several_numbers(size: Any) -> None:
    spec = memsim.catalog()["kernel_v4"]
    assert spec.sizes((128, 128, 16)) == spec.sizes("128,128,16")
    assert "takes a size M,N,K of 3 positive integers, not" in refusal(spec.analyze, size=size)


def test_a_repr_is_a_line(module: Module, kernel: Kernel) -> None:
    analysis = memsim.analyze(kernel, 1, 32, [memsim.ArrayArg((32,), "int32")])
    assert repr(module) == "<Module with scale>"
    assert repr(kernel) == "<Kernel scale(a)>"
    assert repr(analysis) == f"<Analysis {analysis.verdict}>"
    assert repr(analysis.trace) == "<Trace of scale: 1 sites, 1 distinct requests, 1 of 1 blocks>"
    for name, spec in memsim.catalog().items():
        assert repr(spec) == f"<{type(spec).__name__} {name}: {spec.story}>"


def test_a_printed_analysis_is_the_text_report(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = memsim.analyze(kernel, 1, 32, [memsim.ArrayArg((32,), "int32")])
    printed = str(analysis)
    stream = StringIO()
    write(analysis.timed, stream)
    assert printed == stream.getvalue().rstrip("\n")
    assert printed.splitlines()[0] == analysis.verdict
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert str(analysis) == printed
    write(analysis, coloured := StringIO())
    assert "\x1b[" in coloured.getvalue()
