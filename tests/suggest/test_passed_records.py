"""Records that a kernel passes on to a function: what is written, its results, and what is left alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memsim.job import Job
from memsim.source.syntax import parse, walk
from memsim.suggest.footprints import AccessedElements, Footprints
from memsim.suggest.other_values import SAME, at_other_values
from memsim.suggest.prove import differing_results
from memsim.suggest.records import NAME, records_of_threads
from memsim.suggest.threads import Remapped
from tests.suggest.kernels import analyzed, launched

THREADS = 150
TEXT = """
#define SIDES 5
__device__ float area(const float *box) { return (box[2] - box[0]) * (box[3] - box[1]) * box[4]; }
__device__ float ratio(const float *one, const float two[]) { return area(one) / (1 + area(two)); }
__device__ float some(const float *box) {
    if (box[0] < 0.5f) return 0;
    return box[SIDES - 1];
}
__device__ void filled(float *box, float value) {
    int k;
    for (k = 0; k < 2; ++k) {
        box[k] = value * k;
        box[k + 2] = value - k;
    }
    box[4] = value;
}
__device__ void filled_in_part(float *box, float value) {
    box[0] = value;
    if (value < 0.5f) box[1] = 0;
    box[4] = value;
}
__device__ void doubled(float *box) { for (int k = 0; k < SIDES; ++k) box[k] *= 2; }
__device__ void doubled_in_part(float *box) { for (int k = 1; k < SIDES; ++k) box[k] += box[0]; }
template <typename T, int N> __device__ T sum(const T *box) {
    T all = 0;
    for (int k = 0; k < N; ++k) all += box[k];
    return all;
}
extern "C" __global__ void k(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    BODY
}
"""
READ = "const float *box = in + i * SIDES; out[i] = ratio(box, in);"
IN_PLACE = "out[i] = area(&in[SIDES * i]);"
WRITTEN = "float *box = out + SIDES * i; filled(box, in[i]);"
LOOP = (
    "const float *box = in + i * SIDES; float best = 0; for (int j = i; j < n - 1; j++)"
    " { if (ratio(box, in) > best) best += 1; } out[i] = best;"
)


def cures(folder: Path, body: str) -> tuple[Job, tuple[Remapped, ...]]:
    """What is written for a kernel with a body; the last elements of each array are a record's last."""
    draw = np.random.default_rng(5)
    args = [draw.random(5 * THREADS).astype(np.float32), np.zeros(5 * THREADS, np.float32), THREADS]
    job = launched(folder, TEXT.replace("BODY", body), args, (160,))
    return job, records_of_threads(job, analyzed(job))


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("body", "written"),
    [
        (READ, "ratio(&box_passed0[0], in)"),
        (IN_PLACE, "auto in_passed0 = record_at<5, 5>(&in[SIDES * i]);"),
        (WRITTEN, "box_passed0.store(box);"),
        ("out[i] = sum<float, SIDES>(in + SIDES * i);", "record_at<5, 5>(in + SIDES * i);"),
        ("filled(&out[SIDES * i], in[i]);", "out_passed0.store("),
        ("doubled(out + SIDES * i);", "out_passed0.store(out + SIDES * i);"),
        (LOOP, "if (i < n - 1) box_passed0.load(box);"),
    ],
)
def test_each_sector_of_records_is_moved_once(tmp_path: Path, body: str, written: str) -> None:
    job, (cure,) = cures(tmp_path, body)
    assert cure.name == NAME
    assert written in cure.edit.new
    needless = [sum(site.needless_sectors for site in one.sites) for one in (cure.before, cure.analysis)]
    assert needless[1] < needless[0] * 0.1
    assert differing_results(job, cure.job) == ()
    tried = [one.outcome for one in at_other_values(job, cure) if one.name in ("blockDim.x", "n")]
    assert set(tried) <= {SAME, ""}


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "body",
    [
        "out[i] = some(in + SIDES * i);",  # the last element is not always read
        "if (i & 1) out[i] = in[0] > 0 && area(in + SIDES * i) > 0;",
        "float *box = out + SIDES * i; filled_in_part(box, in[i]);",
        "float *box = out + SIDES * i; out[0] = (filled(box, in[i]), box[1]);",  # meanwhile
        "float *box = out + SIDES * i; if (i & 1) doubled(box);",
        "doubled_in_part(out + SIDES * i);",
        "const float *box = in + SIDES * i; for (int j = i; j < n; j++) out[i] = area(box++);",
        "const float *box = out + SIDES * i; out[i] = area(box);",  # written meanwhile
    ],
)
def test_what_may_not_be_moved_is_left_alone(tmp_path: Path, body: str) -> None:
    assert not any("_passed" in cure.edit.new for cure in cures(tmp_path, body)[1])


def test_footprints() -> None:
    tree = parse(
        TEXT.replace("BODY", "area(in); some(in); filled(out, 1); filled_in_part(out, 1); other(in);")
    )
    found = Footprints(tree, {"SIDES": 5})
    kernel = TEXT.index("extern")
    of = {
        tree.text(node.children[0]): found.of_call(node, 0)
        for node in walk(tree.root)
        if node.type == "call_expression" and node.start_byte > kernel
    }
    five = frozenset(range(5))
    assert of["area"] == AccessedElements(five, five, loads=True, stores=False)
    assert of["some"] == AccessedElements(frozenset({0}), frozenset({0, 4}), loads=True, stores=False)
    assert of["filled"] == AccessedElements(five, five, loads=False, stores=True)
    assert of["filled_in_part"] == AccessedElements(
        frozenset({0, 4}), frozenset({0, 1, 4}), loads=False, stores=True
    )
    assert of["other"] is None
    assert [None if one is None else one.length for one in of.values()] == [5, None, 5, None, None]


MEMBERS = """
#include "sizes.cuh"
template <int N> struct rows {
    float *data;
    const int *order;
    __device__ float *at(int i) const { return data + i * N; }
};
using pairs = rows<2>;
template <int N> __device__ float dot(const float *a, const float *b) {
    return dot<N - 1>(a, b) + a[N - 1] * b[N - 1];
}
template <> __device__ float dot<1>(const float *a, const float *b) { return a[0] * b[0]; }
typedef void (*action)(float *, float);
__device__ void assign(float *to, float value) { *to = value; }
__device__ void added(float *to, float value) { *to += value; }
template <int M, int N, action DO = assign>
__device__ void product(const float *a, const float *x, float *to) {
    for (int i = 0; i < M; ++i) DO(to + i, dot<N>(a + i * N, x));
}
extern "C" __global__ void k(rows<6> a, rows<3> x, pairs out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sums[2] = {0, 0};
    for (int j = i; j < n && j < i + 2; j++) product<2, WIDTH, added>(a.at(j), x.at(n - 1 - j), sums);
    product<2, 1>(sums, sums, out.at(i));
}
"""


def members(folder: Path, text: str) -> tuple[Job, tuple[Remapped, ...]]:
    """What is written for a kernel whose parameters have records."""
    (folder / "sizes.cuh").write_text("constexpr int WIDTH = 3;\n")
    draw = np.random.default_rng(5)
    order = draw.permutation(THREADS).astype(np.int32)
    arrays = (draw.random(size * THREADS).astype(np.float32) for size in (6, 3, 2))
    args = [*((array, order) for array in arrays), THREADS]
    job = launched(folder, text, args, (160,))
    return job, records_of_threads(job, analyzed(job))


def test_records_to_which_a_member_function_returns_pointers(tmp_path: Path) -> None:
    """By templates that recur, and get functions, of a size that an included file has."""
    job, (cure,) = members(tmp_path, MEMBERS)
    for written in ("record_at<6, 5, true>(a.at(j));", "record_at<3, 5, true>(x.at(n - 1 - j));"):
        assert written in cure.edit.new
    assert "product<2, 1>(sums, sums, &out_passed2[0]);" in cure.edit.new
    needless = [sum(site.needless_sectors for site in one.sites) for one in (cure.before, cure.analysis)]
    assert needless[1] < needless[0] * 0.1
    assert differing_results(job, cure.job) == ()


@pytest.mark.parametrize(
    ("old", "new", "stays"),
    [
        ("return data + i * N;", "return data + order[i] * N;", "_passed"),  # as long as nobody changes it
        ("return data + i * N;", "return data ? data + i * N : 0;", "_passed"),
        ("sums[2] = {0, 0};", "sums[2] = {a.at(0)[0], *out.at(i) + *x.at(0)};", "_passed"),  # used twice
        ("DO(to + i,", "DO(to + i * warpSize % 2,", "out_passed"),  # to where?
        ("return a[0] * b[0];", "return *(a + 0) * b[0];", "a_passed"),
    ],
)
def test_records_that_are_not_known_as_such_stay(tmp_path: Path, old: str, new: str, stays: str) -> None:
    assert MEMBERS.count(old) == 1
    cures = members(tmp_path, MEMBERS.replace(old, new))[1]
    assert not any(stays in cure.edit.new for cure in cures)


CLASSES = """
#include "classes.cuh"
using three = fixed<float, 3>;
template <int ROWS, int COLUMNS> class view {
    float *data;
public:
    __device__ view(float *from) : data(from) {}
    __device__ float operator()(int row, int column) const { return data[column * ROWS + row]; }
    __device__ float &operator()(int row, int column) { return data[column * ROWS + row]; }
    __device__ float last() const { return data[ROWS * COLUMNS - 1]; }
};
typedef view<2, 3> six;
struct limits {
    float low, high;
    __device__ explicit limits(const float *from) : low(from[0]), high(from[1]) {}
};
__device__ float norm(const float *from) {
    three one(from), two(from + 3);
    float sum = 0;
    for (int k = 0; k < 3; k++) sum += one[k] * two[k];
    return sum;
}
__device__ float trace(six a) { return a(0, 0) + a(1, 1) * a.last(); }
__device__ void filled(float *to, float value) {
    six a(to);
    for (int row = 0; row < 2; row++)
        for (int column = 0; column < 3; column++) a(row, column) = value * row + column;
}
extern "C" __global__ void k(float *in, float *pairs, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    limits pair(pairs + 2 * i);
    float value = norm(in + 6 * i);
    value = min(max(value + trace(in + 6 * i), pair.low), pair.high);
    filled(out + 6 * i, value);
}
"""
FIXED = """
template <typename T, int N> struct fixed {
    __device__ fixed() {}
    __device__ fixed(const T *values) { for (int i = 0; i < N; i++) data[i] = values[i]; }
    template <typename U> __device__ fixed(const U *values) {
        for (int i = 0; i < N; i++) data[i] = T(values[i]);
    }
    __device__ T &operator[](int i) { return data[i]; }
    T data[N];
};
"""


def objects(folder: Path, old: str, new: str) -> tuple[Job, tuple[Remapped, ...]]:
    """What is written for a kernel whose functions make objects of pointers, once something is replaced."""
    assert (CLASSES + FIXED).count(old) == 1
    (folder / "classes.cuh").write_text(FIXED.replace(old, new))
    draw = np.random.default_rng(5)
    arrays = [draw.random(size * THREADS).astype(np.float32) for size in (6, 2, 6)]
    job = launched(folder, CLASSES.replace(old, new), [*arrays, THREADS], (160,))
    return job, records_of_threads(job, analyzed(job))


def test_records_of_which_objects_are_made(tmp_path: Path) -> None:
    """Their constructors copy elements, in two halves, or keep the pointer, by which methods access them."""
    job, (cure,) = objects(tmp_path, "int n", "int n")
    for written in (
        "limits pair(&pairs_passed0[0]);",
        "norm(&in_passed1[0]);",
        "trace(&in_passed2[0])",
        "filled(&out_passed3[0], value);",
    ):
        assert written in cure.edit.new
    assert cure.edit.new.count("record_at<6, 5>(in + 6 * i);") == 2
    needless = [sum(site.needless_sectors for site in one.sites) for one in (cure.before, cure.analysis)]
    assert needless[1] < needless[0] * 0.1
    assert differing_results(job, cure.job) == ()


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("old", "new", "stays"),
    [
        ("data[i] = T(values[i]);", "data[i] = T(values[i + 1]);", "norm(&in_passed"),  # which one is it?
        ("data[i] = values[i];", "data[i] = values[(int)values[0] + i];", "norm(&in_passed"),
        ("T data[N];\n};", "T data[N];\n};\ntemplate <int N> struct fixed<int, N> {};", "norm(&in_passed"),
        ("return data[ROWS * COLUMNS - 1];", "return *(data + ROWS * COLUMNS - 1);", "trace(&in_passed"),
        ("return a(0, 0) +", "six b = a; return a(0, 0) + b(1, 0) +", "trace(&in_passed"),
        ("a(row, column) = value", "if (value > 0.5f) a(row, column) = value", "filled(&out_passed"),
        ("low(from[0]), high(from[1])", "low(from[0]), high(from[low > 0])", "pair(&pairs_passed"),
    ],
)
def test_objects_that_are_not_known_as_such_get_no_copy(
    tmp_path: Path, old: str, new: str, stays: str
) -> None:
    assert not any(stays in cure.edit.new for cure in objects(tmp_path, old, new)[1])


def test_wide_records_in_a_loop_that_lanes_leave_at_different_times(tmp_path: Path) -> None:
    """They have one room for all of them, of which no two parts of a warp have the same at a time."""
    text = """
__device__ double total(const double *box) {
    double all = 0;
    for (int k = 0; k < 18; ++k) all += box[k];
    return all;
}
extern "C" __global__ void k(const double *in, const int *first, double *out, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    double all = 0;
    for (int j = first[i]; j < first[i + 1]; j++) all += total(in + 18 * j);
    out[i] = all;
}
"""
    draw = np.random.default_rng(5)
    first = np.concatenate([[0], np.cumsum(draw.integers(0, 4, 80))]).astype(np.int32)
    args = [draw.random((int(first[-1]), 18)), first, np.zeros(80), 80]
    job = launched(tmp_path, text, args, (512,))
    (cure,) = records_of_threads(job, analyzed(job))
    assert "record_room<16>::open();" in cure.edit.new
    assert "record_at<18, 16, false, true>(in + 18 * j);" in cure.edit.new
    needless = [
        sum(site.needless_sectors for site in one.sites if site.array == "in")
        for one in (cure.before, cure.analysis)
    ]
    assert needless[1] < needless[0] * 0.02  # no request has a part of a record
    assert differing_results(job, cure.job) == ()
    assert {one.outcome for one in at_other_values(job, cure) if one.name == "blockDim.x"} == {SAME}


def test_a_function_of_a_library() -> None:
    """It fills in a state, not each byte of it."""
    tree = parse("__global__ void k(curandState *s, int i) { curand_init(1, i, 0, &s[i]); }")
    (call,) = (node for node in walk(tree.root) if node.type == "call_expression")
    found = Footprints(tree, {}).of_call(call, 3)
    assert found is not None
    assert (found.length, found.loads, found.stores) == (1, True, True)
    assert Footprints(tree, {}).of_call(call, 1) is None
