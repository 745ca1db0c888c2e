"""What the kernel's parameters decide of arguments that leave it open; what they do not decide is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memsim
from memsim.api.running import run
from memsim.argument_types import ArrayArg, StructFields
from memsim.argument_types.launch_arguments import accessors_of, fit_arguments
from memsim.captured.analyze_any import analyze
from memsim.errors import MemsimError
from memsim.isa.program import Parameter
from tests.simt.cuda import kernel

SCALE = """
extern "C" __global__ void k(float *by, float plus, float *out) { out[threadIdx.x] = *by + plus; *by = 0; }"""


def parameter(size: int) -> Parameter:
    return Parameter("p", f"b{8 * size}" if size <= 8 else "b8", 8, size, 0)


def parts(size: int, *given: Any) -> Any:
    (found,) = fit_arguments([parameter(size)], [list(given)], "k")
    return found


def test_an_array_without_dimensions_is_a_pointer_or_a_number() -> None:
    """As its parameter needs it; it is written in place."""
    k, by, out = kernel(SCALE), np.array(3, np.float32), np.zeros(32, np.float32)
    run(k, 1, 32, [by, np.array(0.5, np.float32), out])
    assert (out == 3.5).all() and by == 0
    found = analyze(k, 1, 32, [ArrayArg(()), 0.5, out])
    assert [(site.array, site.sectors) for site in found.sites] == [("by", 1), ("out", 4), ("by", 1)]
    with pytest.raises(MemsimError, match=r"argument by of k must be an array \(pointer\)"):
        run(k, 1, 32, [np.float32(3), 0.5, out])


class Tensor:
    """What a tensor of PyTorch without dimensions, on the device meta, says of itself."""

    dtype, layout, shape, is_meta = "torch.float32", "torch.strided", (), True

    def data_ptr(self) -> int:
        return 0

    def storage_offset(self) -> int:
        return 3

    def stride(self) -> tuple[int, ...]:
        return ()


def test_a_tensor_without_dimensions_is_a_pointer() -> None:
    found = analyze(kernel(SCALE), 1, 32, [Tensor(), 0.5, np.zeros(32, np.float32)])
    assert found.sites[0].sectors == 1


A = ArrayArg((64,))


@pytest.mark.parametrize(
    ("size", "given", "types"),
    [
        (16, (A, 5), [np.int64]),  # of an int, too: what is behind it is padding
        (16, (5, A), [np.int64]),
        (16, (A, 5, 6), [np.int32, np.int32]),
        (12, (A, 5), [np.int32]),  # packed
        (16, (A, np.int32(5)), [np.int32]),
        (16, (A, 5, np.float32(1)), [np.int32, np.float32]),
        (24, (A, 1 << 31, 1, None), [np.uint32, np.int32, np.uint64]),
        (16, (A, 1 << 40), [np.int64]),
        (16, (A, 1.5, 2), [np.float32, np.int32]),
        (12, (True, 5, 6), [np.bool_, np.int32, np.int32]),
        (16, (A, 1.5, True), [np.float32, np.bool_]),
    ],
)
def test_plain_numbers_in_a_struct_have_the_types_of_its_size(
    size: int, given: Any, types: list[type]
) -> None:
    found = parts(size, *given)
    assert [type(part) for part in found if not isinstance(part, ArrayArg)] == types
    assert [0 if part is None else part for part in given] == list(found)


@pytest.mark.parametrize(("size", "given"), [(16, (A, 1.5)), (16, (5, 6, 7))])
def test_a_size_that_leaves_two_structs_is_told(size: int, given: Any) -> None:
    with pytest.raises(MemsimError, match=f"a struct of {size} bytes leaves open how large") as caught:
        parts(size, *given)
    assert caught.value.hint is not None and "np.float32(3)" in caught.value.hint


def test_parts_that_make_up_no_such_struct_stay_as_they_are() -> None:
    for given in ([A, 5, 6, 7], [A, "5"], [1, object()], [0] * 64):
        assert parts(48, *given) == given
    named = StructFields((A, 5), ("data", "n"))
    (found,) = fit_arguments([parameter(16)], [named], "k")
    assert found.names == named.names and type(found[1]) is np.int64


def test_a_struct_is_read_as_its_plain_numbers_say() -> None:
    k = kernel("""
struct View { float *data; int n; };
extern "C" __global__ void k(View v, float *out) { out[threadIdx.x] = v.data[threadIdx.x] + v.n; }""")
    for n in (5, -5):
        data, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
        run(k, 1, 32, [[data, n], out])
        assert (out == data + n).all()


ACCESSORS = """
#include <torch/extension.h>
typedef torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> rows;
__global__ void scale(const rows x, at::PackedTensorAccessor64<float, 2> y, rows z) {
    for (int j = 0; j < x.size(1); j++) z[threadIdx.x][j] = x[threadIdx.x][j] * y[0][j] + x.stride(0);
}
void launch(torch::Tensor x) { scale<<<1, 32>>>(x.packed_accessor32<float, 2, torch::RestrictPtrTraits>()); }
"""


NAME = (
    "_Z5scaleN2at27GenericPackedTensorAccessorIfLm2ENS_17RestrictPtrTraitsEiEENS0_IfLm2ENS_16DefaultPtrTraits"
    "ExEES2_"
)


@pytest.fixture(scope="module")
def accessors(tmp_path_factory: pytest.TempPathFactory) -> memsim.api.loading.Module:
    path: Path = tmp_path_factory.mktemp("torch") / "accessors.cu"
    path.write_text(ACCESSORS)
    return memsim.load(path, compiler="nvrtc")


@pytest.mark.slow
def test_an_array_is_the_accessor_of_it(accessors: memsim.api.loading.Module) -> None:
    """With its own strides; and given by its parts it is the same."""
    (k,) = (accessors[name] for name in accessors.kernels)
    x, y = np.arange(256, dtype=np.float32).reshape(8, 32).T, np.arange(8, dtype=np.float32)[None]
    z = np.zeros((32, 8), np.float32)
    run(k, 1, 32, [x, y, z])
    assert (z == x * y + 1).all()
    rows = analyze(k, 1, 32, [x, y, z]).sites
    by_parts = [
        [x, *np.array([32, 8, 1, 32], np.int32)],
        "f32[8]+i64(1,8,8,1)",
        [z, 32, 8, 8, 1],
    ]
    assert [one.sectors for one in analyze(k, 1, 32, by_parts).sites] == [one.sectors for one in rows]
    assert {(one.array, one.op, one.sectors) for one in rows} == {
        ("x", "load", 32), ("y", "load", 8), ("z", "store", 256),
    }  # fmt: skip


@pytest.mark.slow
def test_an_accessor_of_other_dimensions_is_told(accessors: memsim.api.loading.Module) -> None:
    (k,) = (accessors[name] for name in accessors.kernels)
    for wrong in ("f32[256]", "f32[4,8,8]"):
        with pytest.raises(MemsimError, match=r"an accessor of 24 bytes takes an array of 2 dimensions, not"):
            analyze(k, 1, 32, [wrong, "f32[1,8]", "f32[32,8]"])


def test_two_accessors_of_one_size_are_told_apart_by_their_parts() -> None:
    kernel = NAME.replace("Lm2ENS_16Default", "Lm1ENS_16Default")
    with pytest.raises(MemsimError, match="takes an array of 1 or 2 dimensions") as caught:
        fit_arguments([parameter(24)], [ArrayArg((64, 64))], kernel)
    assert caught.value.hint is not None and "pass the parts" in caught.value.hint
    assert len(fit_arguments([parameter(24)], [ArrayArg((64, 64))], NAME)[0]) == 5


def test_accessors_are_known_by_the_kernel_s_name() -> None:
    assert accessors_of(NAME) == {(2, 4), (2, 8)}
    assert accessors_of(NAME.replace("PackedTensorAccessor", "PackedTensorAccess0r")) == frozenset()
