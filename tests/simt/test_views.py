"""Arrays as they lie: views, strides, offsets, tables of pointers, null pointers, types that numpy lacks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memsim
from memsim.api.running import run
from memsim.argument_types import ArrayArg, Pointers, TensorMap
from memsim.captured.analyze_any import analyze
from memsim.errors import MemsimError
from tests.simt.cuda import kernel

COPY = """
extern "C" __global__ void k(const float *x, float *y, int xs, int ys, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i * ys] = x[i * xs];
}"""

FORMS = pytest.mark.parametrize("code", ["ptx", "sass"])


def sectors_of(array: np.ndarray, first: int) -> int:
    """32-byte sectors that the warps touch which read `array` in order, at byte `first` of its allocation."""
    addresses = [first + index * array.strides[0] for index in range(len(array))]
    warps = [addresses[start : start + 32] for start in range(0, len(addresses), 32)]
    return sum(len({address // 32 for address in warp}) for warp in warps)


@pytest.mark.some(1)
@FORMS
def test_a_view_starts_where_it_starts(code: str) -> None:
    k = kernel(COPY, code=code)
    whole, out = np.zeros(257, np.float32), np.zeros(256, np.float32)
    for x, sectors in ((whole[:256], 32), (whole[1:], 40), (whole[::-1][:256], 40), (whole[:256][::-1], 32)):
        found = analyze(k, 1, 256, [x, out, x.strides[0] // 4, 1, 256])
        assert [site.sectors for site in found.sites] == [sectors, 32]


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    before=st.integers(0, 40),
    step=st.integers(-5, 5).filter(bool),
    count=st.integers(1, 100),
    described=st.booleans(),
)
def test_sectors_are_those_of_the_addresses(before: int, step: int, count: int, described: bool) -> None:
    k = kernel(COPY)
    whole = np.arange(600, dtype=np.float32)
    start = before if step > 0 else before + (count - 1) * -step
    view = whole[start:][::step][:count] if step > 0 else whole[: start + 1][::step][:count]
    x = ArrayArg((count,), "float32", strides=(4 * step,), offset=4 * start) if described else view
    found = analyze(k, 4, 32, [x, np.zeros(count, np.float32), step, 1, count])
    assert found.sites[0].sectors == sectors_of(view, 4 * start)


@FORMS
def test_a_run_reads_and_writes_views_in_place(code: str) -> None:
    k = kernel(COPY, code=code)
    whole, out = np.arange(20, dtype=np.float32), np.zeros((8, 3), np.float32)
    run(k, 1, 32, [whole[::-2], out[:, 1], -2, 3, 8])
    assert (out[:, 1] == [19, 17, 15, 13, 11, 9, 7, 5]).all()
    assert not out[:, [0, 2]].any()


@pytest.mark.some(1)
@FORMS
def test_views_of_one_array_share_its_memory(code: str) -> None:
    k = kernel(COPY, code=code)
    whole = np.arange(64, dtype=np.float32)
    run(k, 1, 32, [whole[:32], whole[32:], 1, 1, 32])
    assert (whole[32:] == np.arange(32)).all()
    found = analyze(k, 1, 32, [whole[:32], whole[32:], 1, 1, 32])
    assert {site.array for site in found.sites} == {"x, y"}


def test_as_strided_knows_the_array_below() -> None:
    k = kernel(COPY)
    x = np.lib.stride_tricks.as_strided(np.zeros(70, np.float32)[7:], (32,), (8,))
    assert analyze(k, 1, 32, [x, np.zeros(32, np.float32), 2, 1, 32]).sites[0].sectors == 9


GATHER = """
extern "C" __global__ void k(const float *const *table, float *out, int n) {
    int i = threadIdx.x;
    const float *row = table[i % n];
    out[i] = row ? row[i] : -1.0f;
}"""


@pytest.mark.some(1)
@FORMS
def test_a_table_of_pointers(code: str) -> None:
    k = kernel(GATHER, code=code)
    a, b, out = np.arange(32, dtype=np.float32), np.full(33, 7, np.float32), np.zeros(32, np.float32)
    run(k, 1, 32, [Pointers([a, b[1:], None]), out, 3])
    assert (out == np.where(np.arange(32) % 3 == 0, a, np.where(np.arange(32) % 3 == 1, 7, -1))).all()
    found = analyze(k, 1, 32, [Pointers([a, b[1:], None]), out, 3])
    assert {site.array for site in found.sites} == {"table", "table[0]|table[1]", "out"}
    with pytest.raises(MemsimError, match="a pointer in a table points to an array, not to 3"):
        Pointers([a, 3])  # type: ignore[list-item]


@FORMS
def test_none_is_a_null_pointer(code: str) -> None:
    text = """
extern "C" __global__ void k(const float *x, float *out, int n) {
    out[threadIdx.x] = x ? x[threadIdx.x] : n;
}"""
    k, out = kernel(text, code=code), np.zeros(32, np.float32)
    run(k, 1, 32, [None, out, 5])
    assert (out == 5).all()
    with pytest.raises(MemsimError, match="argument n of k must be an integer"):
        run(k, 1, 32, [out, out, None])


@pytest.mark.parametrize(
    ("dtype", "one"), [("bfloat16", 0x3F80), ("float8_e4m3fn", 0x38), ("float8_e5m2", 0x3C)]
)
def test_types_that_numpy_lacks(dtype: str, one: int) -> None:
    array = ArrayArg((1000,), dtype)
    made = array.make()
    assert array.nbytes == made.nbytes == 1000 * (2 if dtype == "bfloat16" else 1)
    assert 0.5 < float(made.astype(np.float32).max()) <= 1 and float(made.astype(np.float32).min()) < -0.5
    ones = ArrayArg((8,), dtype, "ones").make()
    assert (ones.view(f"u{ones.itemsize}") == one).all()
    k = kernel('extern "C" __global__ void k(const unsigned char *x, int *y) { y[0] = x[1] << 8 | x[0]; }')
    out = np.zeros(1, np.int32)
    run(k, 1, 1, [ones, out])
    assert out[0] == (one if ones.itemsize == 2 else one << 8 | one)


def test_what_no_array_can_be() -> None:
    with pytest.raises(MemsimError, match="unknown content 'twos'"):
        ArrayArg((4,), fill="twos")
    with pytest.raises(MemsimError, match="unknown element type 'floaty'"):
        ArrayArg((4,), "floaty").make()
    with pytest.raises(MemsimError, match="before its allocation"):
        ArrayArg((4,), strides=(-4,), offset=8)
    assert ArrayArg((4,), strides=(-4,)).start == 12
    with pytest.raises(MemsimError, match="do not match an array of shape"):
        ArrayArg((4,), strides=(4, 4))


def test_a_tensor_map_is_128_bytes_that_are_not_read() -> None:
    text = """
struct alignas(64) Map { unsigned long long words[16]; };
extern "C" __global__ void k(const __grid_constant__ Map map, int *out) { out[0] = 3 + !!map.words[1]; }"""
    k, out = kernel(text), np.zeros(1, np.int32)
    run(k, 1, 1, [TensorMap(ArrayArg((64, 64))), out])
    assert out[0] == 3
    with pytest.raises(MemsimError, match="argument out of k must be an array"):
        run(k, 1, 1, [TensorMap(ArrayArg((64, 64))), TensorMap(ArrayArg((64, 64)))])


def test_the_names_of_arguments_are_at_hand() -> None:
    assert memsim.Pointers is Pointers
    assert memsim.TensorMap is TensorMap


@pytest.mark.some(1)
@FORMS
def test_dynamic_shared_memory_that_is_not_known(code: str) -> None:
    text = """
extern __shared__ float tile[];
extern "C" __global__ void k(float *out) {
    __shared__ float more[32];
    more[threadIdx.x] = 1;
    tile[threadIdx.x * 512] = 1;
    out[threadIdx.x] = tile[threadIdx.x] + more[threadIdx.x ^ 1];
}"""
    k, out = kernel(text, code=code), ArrayArg((32,))
    with pytest.raises(MemsimError, match="out-of-bounds"):
        memsim.analyze(k, 1, 32, [out])
    found = memsim.analyze(k, 1, 32, [out], shared_bytes=None)
    assert [s.wavefronts for s in found.sites if s.array == "tile" and s.op == "store"] == [32]
    assert "Not certain: dynamic shared memory was not given; assuming the maximum of a block" in str(found)
    assert found.trace.launch.shared_bytes == 232448 - 128
    assert "Not certain" not in str(memsim.analyze(k, 1, 32, [out], 65536))
