"""Struct arguments: by bytes, by a numpy scalar, by their parts; arrays behind pointers in them."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.api.running import run
from memsim.argument_types import ArrayArg
from memsim.captured.analyze_any import analyze
from memsim.errors import MemsimError
from tests.simt.cuda import kernel, machine_kernel

VIEW = """
struct View { float *data; int pitch; const int *pick; };
extern "C" __global__ void k(View v, float *out) {
    int i = blockIdx.x * v.pitch + threadIdx.x;
    out[i] = v.data[v.pick[i]];
    v.data[v.pick[i]] = -1.0f;
}"""


def test_arrays_in_a_struct_are_read_and_written_in_place() -> None:
    k = kernel(VIEW)
    data, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    pick = np.arange(64, dtype=np.int32)[::-1].copy()
    run(k, 2, 32, [[data, np.int32(32), pick], out])
    assert (out == np.arange(64)[::-1]).all()
    assert (data == -1).all()
    assert (pick == np.arange(64)[::-1]).all()


def test_arrays_in_a_struct_have_names_and_decide_addresses() -> None:
    k = kernel(VIEW)
    for step, sectors in ((1, 4), (8, 32)):
        pick = np.arange(32, dtype=np.int32) * step
        found = analyze(k, 1, 32, [(ArrayArg((256,)), np.int32(32), pick), ArrayArg((32,))])
        rows = {(site.array, site.op): site.sectors for site in found.sites}
        assert rows == {
            ("v.2", "load"): 4,
            ("v.0", "load"): sectors,
            ("v.0", "store"): sectors,
            ("out", "store"): 4,
        }


def test_a_store_through_a_struct_is_seen_through_it() -> None:
    """A trace runs only what addresses need, and here they need what was stored."""
    text = """
struct View { int *data; int n; };
extern "C" __global__ void k(View v, float *out) {
    v.data[threadIdx.x] = threadIdx.x * v.n;
    __syncthreads();
    out[v.data[threadIdx.x ^ 1]] = 1.0f;
}"""
    k = kernel(text)
    for n, sectors in ((1, 4), (8, 32)):
        found = analyze(k, 1, 32, [[ArrayArg((32,), "int32"), np.int32(n)], ArrayArg((256,))])
        assert [site.sectors for site in found.sites if site.array == "out"] == [sectors]


PARAMS = """
struct Params { float alpha; int n; float3 shift; double scale; };
extern "C" __global__ void k(Params p, double *out) {
    out[threadIdx.x] = p.alpha + p.n + p.shift.x + p.shift.y + p.shift.z + p.scale;
}"""
FIELDS = np.dtype(
    [("alpha", "f4"), ("n", "i4"), ("x", "f4"), ("y", "f4"), ("z", "f4"), ("scale", "f8")], align=True
)


def test_a_struct_by_its_fields_and_by_its_parts_is_the_same() -> None:
    k = kernel(PARAMS)
    values = (0.5, 64, 1.0, 2.0, 3.0, 0.25)
    array = np.array(values, FIELDS)
    parts = [np.float32(0.5), np.int32(64), *np.array([1, 2, 3], np.float32), np.float64(0.25)]
    for given in (array, array[()], array.tobytes(), parts):
        out = np.zeros(4)
        run(k, 1, 4, [given, out])
        assert (out == sum(values)).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((), "f4,i4"), "a struct of 32 bytes"),
        ([np.float32(1), np.int32(2)], "p is a struct of 32 bytes, but its parts have 8"),
        ([1.0, 64], "a part of the struct p is 1.0, which has no size"),
        (np.float64(1), "a struct of 32 bytes"),
    ],
)
def test_a_struct_that_does_not_fit_is_refused(given: object, message: str) -> None:
    with pytest.raises(MemsimError, match=message):
        run(kernel(PARAMS), 1, 4, [given, np.zeros(4)])


def test_a_view_in_a_struct_begins_where_it_begins() -> None:
    k = kernel(VIEW)
    whole, pick = np.zeros(65, np.float32), np.arange(32, dtype=np.int32)
    for data, sectors in ((whole[:64], 4), (whole[1:], 5)):
        found = analyze(k, 1, 32, [[data, np.int32(32), pick], np.zeros(64, np.float32)])
        assert {site.sectors for site in found.sites if site.array == "v.0"} == {sectors}


def test_a_pointer_in_a_struct_may_be_of_any_array() -> None:
    k = kernel("""
struct View { float *data; int pitch; int pad; };
extern "C" __global__ void k(View v, float *other, int which) {
    float *p = which ? v.data : other;
    p[threadIdx.x] = threadIdx.x;
}""")
    for which in (0, 1):
        data, other = np.zeros(32, np.float32), np.zeros(32, np.float32)
        run(k, 1, 32, [[data, np.int32(1), np.int32(0)], other, which])
        assert ((data if which else other) == np.arange(32)).all()
        assert not (other if which else data).any()


def test_a_parameter_is_read_through_a_pointer_to_it() -> None:
    """By an index that only lanes know, and by a generic address."""
    text = """
struct Pack { int first[6]; int *out; };
__device__ __noinline__ int pick(const int *from, int i) { return from[i]; }
extern "C" __global__ void k(const __grid_constant__ Pack p) {
    p.out[threadIdx.x] = pick(threadIdx.x < 6 ? p.first : p.out, threadIdx.x); }"""
    out = np.arange(100, 132, dtype=np.int32)
    run(machine_kernel(text), 1, 32, [[*np.arange(6, dtype=np.int32), out]])
    assert (out == [0, 1, 2, 3, 4, 5, *range(106, 132)]).all()


def test_a_struct_in_itself_is_refused() -> None:
    k = kernel(PARAMS)
    shallow: list[object] = [np.float32(1)]
    deep: list[object] = []
    deep.append([deep])
    for _ in range(100):
        shallow = [shallow]
    for endless in (deep, shallow):
        with pytest.raises(MemsimError, match="structs within structs"):
            analyze(k, 1, 32, [endless, ArrayArg((32,), "float64")])
    parts = [np.float32(1), np.int32(2), *np.zeros(3, np.float32), np.float64(5)]
    assert analyze(k, 1, 32, [parts, ArrayArg((32,), "float64")]).sites
    with pytest.raises(MemsimError, match="a part of the struct p is"):
        analyze(k, 1, 32, [[parts], ArrayArg((32,), "float64")])


def test_a_half_is_given_as_a_number_of_its_size() -> None:
    text = """
#include <cuda_fp16.h>
extern "C" __global__ void k(__half a, float *out) { out[threadIdx.x] = __half2float(a) * threadIdx.x; }"""
    k = kernel(text)
    out = np.zeros(32, np.float32)
    run(k, 1, 32, [np.float16(1.5), out])
    assert (out == 1.5 * np.arange(32)).all()
    with pytest.raises(
        MemsimError, match=r"argument a of k must be a struct of 2 bytes .*, not np.float32\(1.5\)"
    ):
        run(k, 1, 32, [np.float32(1.5), out])
