"""Texture fetches against numpy, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.analysis import analyze_trace
from memsim.api.running import run, trace
from memsim.argument_types import ArrayArg, Texture1D
from memsim.errors import MemsimError
from memsim.kernel import Kernel
from tests.simt.cuda import kernel

FETCH = """
extern "C" __global__ void k(cudaTextureObject_t texture, const int *index, float4 *out) {
    out[threadIdx.x] = tex1Dfetch<float4>(texture, index[threadIdx.x]);
}"""

rng = np.random.default_rng(11)


def fetch(k: Kernel, texture: Texture1D, index: np.ndarray) -> np.ndarray:
    out = np.full((len(index), 4), np.nan, np.float32)
    run(k, 1, len(index), [texture, index.astype(np.int32), out])
    return out


def test_texels_by_index_and_zeros_outside() -> None:
    k = kernel(FETCH)
    array = rng.normal(size=(5, 8)).astype(np.float32)  # 10 texels
    index = np.array([0, 9, 10, -1, 3, 3, 2**31 - 1, -(2**31), 7, 1])
    inside = (index >= 0) & (index < 10)
    expected = np.where(inside[:, None], array.reshape(-1, 4)[np.clip(index, 0, 9)], 0)
    assert np.array_equal(fetch(k, Texture1D(array), index), expected)


def test_an_array_that_is_described_is_made() -> None:
    k = kernel(FETCH)
    array = ArrayArg((3, 4), fill="iota")
    assert np.array_equal(fetch(k, Texture1D(array), np.arange(3)), array.make())


def test_a_guarded_fetch_leaves_the_other_threads_alone() -> None:
    k = kernel("""
extern "C" __global__ void k(cudaTextureObject_t a, cudaTextureObject_t b, float *out) {
    float x = -1.0f;
    if (threadIdx.x % 3 == 0) x = tex1Dfetch<float4>(a, threadIdx.x).y;
    else if (threadIdx.x % 3 == 1) x = tex1Dfetch<float4>(b, blockIdx.x).w;
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}""")
    a, b = rng.normal(size=(2, 40, 4)).astype(np.float32)
    out = np.zeros((2, 40), np.float32)
    run(k, 2, 40, [Texture1D(a), Texture1D(b), out])
    expected = np.full((2, 40), -1, np.float32)
    expected[:, 0::3] = a[0::3, 1]
    expected[:, 1::3] = b[:2, 3, None]
    assert np.array_equal(out, expected)


def test_the_texture_keeps_what_was_there_before_the_launch() -> None:
    k = kernel("""
extern "C" __global__ void k(cudaTextureObject_t texture, float4 *same) {
    same[threadIdx.x] = make_float4(9, 9, 9, 9);
    float4 before = tex1Dfetch<float4>(texture, threadIdx.x);
    same[threadIdx.x] = make_float4(before.x + 1, before.y, before.z, before.w);
}""")
    array = np.arange(32, dtype=np.float32).reshape(8, 4)
    expected = array + np.array([1, 0, 0, 0], np.float32)
    run(k, 1, 8, [Texture1D(array), array])
    assert np.array_equal(array, expected)


def test_an_address_may_depend_on_a_fetch() -> None:
    k = kernel("""
extern "C" __global__ void k(cudaTextureObject_t texture, const float *data, float *out) {
    __shared__ float s[32];
    s[(int)tex1Dfetch<float4>(texture, threadIdx.x).x] = data[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}""")
    order = rng.permutation(32)
    texture = np.zeros((32, 4), np.float32)
    texture[:, 0] = order
    found = trace(k, 1, 32, [Texture1D(texture), ArrayArg((32,)), ArrayArg((32,))])
    (store,) = [i for i, s in enumerate(found.sites) if (s.space, s.op) == ("shared", "store")]
    assert (found.addresses[found.site == store][0] == 4 * order).all()
    assert [(s.op, s.width, s.array) for s in found.sites if s.space == "texture"] == [
        ("fetch", 16, "texture")
    ]


def test_fetches_are_counted_like_other_accesses() -> None:
    k = kernel("""
extern "C" __global__ void k(cudaTextureObject_t texture, float *out) {
    float sum = 0;
    for (int i = 0; i < 5; ++i) sum += tex1Dfetch<float4>(texture, threadIdx.x + i).x;
    if (threadIdx.x < 32) sum += tex1Dfetch<float4>(texture, 0).y;
    out[threadIdx.x] = sum;
}""")
    arguments = [Texture1D(ArrayArg((96, 4))), ArrayArg((70,))]
    for everything in (False, True):
        found = trace(k, 2, 70, arguments, everything=everything)
        assert not found.uncounted
        fetches = [site for site in found.sites if site.space == "texture"]
        assert {(site.op, site.array) for site in fetches} == {("fetch", "texture")}
        assert sum(site.instructions for site in fetches) == 2 * (3 * 5 + 1)


def test_a_lane_outside_executes_the_fetch_and_touches_nothing() -> None:
    given = [Texture1D(ArrayArg((8, 4))), ArrayArg((32,), "int32", "iota"), ArrayArg((32, 4))]
    found = trace(kernel(FETCH), 1, 32, given)
    (row,) = [i for i, site in enumerate(found.sites) if site.space == "texture"]
    assert found.active[found.site == row].all()
    lane = np.arange(32)
    assert np.array_equal(found.addresses[found.site == row][0], np.where(lane < 8, lane * 16, -1))
    (counts,) = [site for site in analyze_trace(found).sites if site.space == "texture"]
    assert (counts.requests, counts.sectors, counts.lines) == (2, 4, 2)


# Refused


@pytest.mark.parametrize("argument", [ArrayArg((8, 4)), 17])
def test_what_is_no_texture_object(argument: object) -> None:
    k = kernel(FETCH)
    with pytest.raises(MemsimError, match="a handle that is not a texture object") as caught:
        run(k, 1, 8, [argument, np.zeros(8, np.int32), np.zeros((8, 4), np.float32)])
    assert "Texture1D" in (caught.value.hint or "") and "--arg 'tex2d(" in (caught.value.hint or "")
    assert caught.value.line is not None
    assert trace(k, 1, 8, [Texture1D(ArrayArg((8, 4))), ArrayArg((8,), "int32", "zeros"), ArrayArg((8, 4))])


def test_a_texture_is_no_pointer() -> None:
    k = kernel("__global__ void k(const float *a, float *b) { b[threadIdx.x] = a[threadIdx.x]; }", "k")
    with pytest.raises(MemsimError, match="out-of-bounds"):
        trace(k, 1, 8, [Texture1D(ArrayArg((8,))), ArrayArg((8,))])
    with pytest.raises(MemsimError, match="must be a float"):
        run(kernel('extern "C" __global__ void k(float a) {}'), 1, 1, [Texture1D(ArrayArg((8,)))])


def test_textures_that_differ_between_threads() -> None:
    k = kernel("""
extern "C" __global__ void k(cudaTextureObject_t a, cudaTextureObject_t b, float4 *out) {
    out[threadIdx.x] = tex1Dfetch<float4>(threadIdx.x % 2 ? a : b, threadIdx.x);
}""")
    texture = Texture1D(ArrayArg((8, 4)))
    with pytest.raises(MemsimError, match="several texture objects"):
        run(k, 1, 8, [texture, texture, np.zeros((8, 4), np.float32)])


def test_a_fetch_of_another_kind_of_texture_is_not_counted() -> None:
    k = kernel("""
extern "C" __global__ void k(cudaTextureObject_t a, float *out) {
    out[threadIdx.x] = tex2D<float>(a, threadIdx.x, 0.5f);
}""")
    arguments = [Texture1D(ArrayArg((8, 4))), np.zeros(8, np.float32)]
    assert trace(k, 1, 8, arguments).uncounted == {"texture request": 1}


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((3, 5), np.float32), r"float32\[3, 5\]"),
        (np.zeros(8, np.float64), r"float64\[8\]"),
        (ArrayArg((6,)), r"float32\[6\]"),
        (np.zeros((0, 4), np.float32), r"float32\[0, 4\]"),
    ],
)
def test_arrays_that_are_no_texels(array: np.ndarray | ArrayArg, said: str) -> None:
    with pytest.raises(MemsimError, match=f"texels cannot lie over {said}"):
        Texture1D(array)
    assert Texture1D(np.zeros((3, 4), np.float32)).texels.shape == (3, 4)
