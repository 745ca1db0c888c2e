"""Records of threads, moved by their warp: what is written, its results, and what is left alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memsim.api.kernel_file import KernelFile
from memsim.job import Job
from memsim.launch import Launch
from memsim.suggest.c_text import distance
from memsim.suggest.other_values import SAME, at_other_values
from memsim.suggest.prove import differing_results
from memsim.suggest.records import NAME, records_of_threads
from memsim.suggest.threads import Remapped
from tests.suggest.kernels import analyzed, launched

THREADS = 208  # six warps and a half
TEXT = """
struct rgb { unsigned char r, g, b; };
struct point { float x, y, z; };
struct particle { float at[3]; point v; };
extern "C" __global__ void k(const float *in, float *out, const rgb *colours, const int *order, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    BODY
}
"""
LENGTH = "float x = in[3 * i], y = in[i * 3 + 1], z = in[i * 3 + 2]; out[i] = x * x + y * y + z * z;"
MOVED = "float x = in[i]; out[3 * i] = x; out[3 * i + 1] = x + 1; x *= 2; out[3 * i + 2] = x;"
GREY = "out[i] = 0.3f * colours[i].r + 0.6f * colours[i].g + 0.1f * colours[i].b;"
GATHERED = "int at = order[i]; out[i] = in[3 * at] + in[3 * at + 1] * in[3 * at + 2];"
LOOP = (
    "float sum = 0; for (int j = 0; j < 2; ++j) { int at = 3 * (i + j); sum += in[at] * in[at + 1];"
    " sum += in[at + 2]; } out[i] = sum;"
)
COPIED = "for (int c = 0; c < 3; c++) { out[3 * i + c] = in[3 * i + c] + in[3 * i]; }"
READ_ONLY = "out[i] = __ldg(&in[3 * i]) + __ldg(&in[3 * i + 1]) * __ldg( & in[i * 3 + 2] );"
NESTED = (
    "particle *p = (particle *)out; p[i].at[0] += p[i].v.x; p[i].at[1] = 2; p[i].at[2] -= p[i].v.z;"
    " const auto q = in + 3 * i; p[i].v.x = q[0] * q[1] + q[2];"
)
PAIR = "out[i] = in[2 * i] + in[2 * i + 1];"
IN_AN_IF = "if (in[i] < 0.9f)\n        out[i] = in[3 * i] * in[3 * i + 1] + in[3 * i + 2];"
FIELDS = (
    "point *p = (point *)out; p[i].x += in[i]; if (i & 1) p[i].y = p[i].x; p[i].z++;"
    " for (int j = 0; j < 3; ++j) p[i].x += p[i].z * j;"
)
AS = "const point *p = (const point *)in; "
OF_OUT = "point *p = (point *)out; "
POINTER = OF_OUT + "point *q = &p[i]; q->x += in[i]; if (i & 1) q->y = (*q).x; q->z++;  // p"
REFERENCE = OF_OUT + "point &q = p[i]; q.x += in[i]; if (i & 1) q.y = q.x; q.z++;"
CONSTANT = AS + "const point &q = p[i]; out[i] = q.x * q.y + q.z;"
AT = AS + "point q = *(p + i); out[i] = q.x * q.y + q.z;"
MOVING = AS + "p += i; const point q = *p; out[i] = q.x * q.y + q.z;"
GUARDED = AS + "out[i] = i + 1 < n && p[i].x * p[i].y > 0.1f * p[i].z ? 2 : 1;"
TAIL = (
    "int at = 3 * i, end = 3 * n - 4; float x = (at < end) ? in[at] : 0, y = at + 1 < end ? in[at + 1] : 0;"
    " out[i] = x + y * (at + 2 < end ? in[at + 2] : 9);"
)
ANYWAY = "float x = in[3 * i]; bool y = i > 9 && in[3 * i + 1] > 0.5f; out[i] = y + x * in[3 * i + 2];"
HELPERS = "const int a = 3 * i; int b = a + 1; out[i] = in[a] * in[b] + in[3 * i + 2];"
BYTES = "rgb *p = (rgb *)out; p[i + 1] = colours[i];"


def cures(folder: Path, body: str) -> tuple[Job, tuple[Remapped, ...]]:
    """What is written for a kernel with a body; the last elements of each array are a record's last."""
    draw = np.random.default_rng(5)
    args = [
        draw.random(3 * THREADS + 3).astype(np.float32),
        np.zeros(6 * THREADS, np.float32),
        draw.integers(0, 256, 3 * THREADS).astype(np.uint8),
        draw.permutation(THREADS).astype(np.int32),
        THREADS,
    ]
    job = launched(folder, TEXT.replace("BODY", body), args, (224,))
    return job, records_of_threads(job, analyzed(job))


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("body", "written"),
    [
        (LENGTH, "const auto in_record0 = record_at<3, 7>(&in[3 * i]);"),
        (MOVED, "out_record0.store(&out[3 * i]);"),
        (GREY, "0.3f * colours_record0[0].r + 0.6f * colours_record0[0].g"),
        (GATHERED, "record_at<3, 7>(&in[3 * at]);"),
        (LOOP, "record_at<3, 7>(&in[at]);"),
        (COPIED, "out_record0[c] = in_record1[c] + in_record1[0];"),
        (READ_ONLY, "out[i] = in_record0[0] + in_record0[1] * in_record0[2];"),
        (PAIR, "record_at<2, 7>(&in[2 * i]);"),
        (IN_AN_IF, "{ const auto in_record0 = record_at<3, 7>(&in[3 * i]);"),
        (NESTED, "p_record0[0].at[0] += p_record0[0].v.x;"),
        (FIELDS, "if (i & 1) p_record0[0].y = p_record0[0].x;"),
        (POINTER, "if (i & 1) q_record0[0].y = (q_record0[0]).x;"),
        (REFERENCE, "q_record0.store(&q);"),
        (CONSTANT, "const point &q = p_record0[0];"),
        (AT, "record_at<1, 7>(&p[i]);"),
        (MOVING, "record_at<1, 7>(&p[0]);"),
        (BYTES, "p_record0.store(&p[i + 1]);"),
        (HELPERS, "in_record0[0] * in_record0[1] + in_record0[2];"),
        (ANYWAY, "bool y = i > 9 && in_record0[1] > 0.5f;"),
        (GUARDED, "if (i + 1 < n) p_record0.load(&p[i]);"),
        (TAIL, "float x = (at < end) ? (in_record0_whole ? in_record0[0] : in[at]) : 0"),
    ],
)
def test_each_sector_of_records_is_moved_once(tmp_path: Path, body: str, written: str) -> None:
    job, (cure,) = cures(tmp_path, body)
    assert cure.name == NAME
    assert written in cure.edit.new
    needless = [sum(site.needless_sectors for site in one.sites) for one in (cure.before, cure.analysis)]
    assert needless[1] < needless[0] * (0.6 if body in (GATHERED, IN_AN_IF) else 0.1)
    assert cure.analysis.conflicts == 0 or body in (GATHERED, IN_AN_IF, NESTED, GUARDED, TAIL)
    assert differing_results(job, cure.job) == ()


def test_a_record_of_8_bytes_is_moved_as_one(tmp_path: Path) -> None:
    """Without shared memory where it is aligned."""
    _, (cure,) = cures(tmp_path, PAIR)
    assert cure.analysis.wavefronts == 0


def test_requests_begin_with_a_sector_wherever_the_records_of_a_warp_do(tmp_path: Path) -> None:
    """Pairs of elements of rows of 65, of which every second one begins at 4 bytes of 8."""
    job, (cure,) = cures(tmp_path, "int at = i / 32 * 65 + i % 32 * 2; out[i] = in[at] + in[at + 1];")
    words = [one for one in cure.analysis.sites if one.array == "in" and one.width == 4]
    assert sum(one.requests for one in words) == 3 * 3
    assert not any(one.needless_sectors for one in words)
    assert differing_results(job, cure.job) == ()


@pytest.mark.parametrize(
    ("index", "is_near"), [("2 * i / 3", True), ("n - 1 - i", True), ("7 * i % n", False)]
)
def test_what_lies_between_the_records_of_a_warp_is_read_as_words(
    tmp_path: Path, index: str, is_near: bool
) -> None:
    """Pixels that a resized image is made of, and those of an image turned round; others byte by byte."""
    body = f"rgb c = colours[{index}]; out[i] = 0.3f * c.r + 0.6f * c.g + 0.1f * c.b;"
    job, (cure,) = cures(tmp_path, body)
    reads = [site for site in cure.analysis.sites if site.array == "colours"]
    assert sum(site.sectors for site in reads if site.width == 4) > 0 or not is_near
    needless = sum(site.needless_sectors for site in reads)
    assert (4 * needless < sum(site.sectors for site in reads)) == is_near
    assert differing_results(job, cure.job) == ()


def test_records_in_two_files_are_moved_one_after_the_other(tmp_path: Path) -> None:
    """A file that is included is called the same when the text that includes it has changed."""
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "pixel.cuh").write_text(
        "struct rgb { unsigned char r, g, b; };\n"
        "__device__ rgb pixel(const rgb *image, int at) {\n    return image[at];\n}\n"
    )
    (tmp_path / "source" / "k.cu").write_text(
        '#include "pixel.cuh"\nextern "C" __global__ void k(const rgb *in, rgb *out, int n) {\n'
        "    int i = threadIdx.x;\n    if (i < n) out[i] = pixel(in, 2 * i / 3);\n}\n"
    )
    args = [np.arange(600, dtype=np.uint8), np.zeros(600, np.uint8), 200]
    job = Job(KernelFile(tmp_path, "source/k.cu", "k"), Launch((1, 1, 1), (224, 1, 1)), args)
    first, included = records_of_threads(job, analyzed(job))
    assert (first.edit.file, included.edit.file) == ("source/k.cu", "source/pixel.cuh")
    assert {site.file for site in included.analysis.sites if site.space == "global"} == {
        "source/k.cu",
        "source/pixel.cuh",
    }
    (second,) = records_of_threads(first.job, first.analysis)
    assert second.edit.file == "source/pixel.cuh"
    assert not any(site.needless_sectors for site in second.analysis.sites if site.op == "store")
    assert differing_results(job, second.job) == ()


@pytest.mark.slow
def test_other_blocks_compute_the_same(tmp_path: Path) -> None:
    """More threads than the tile has warps, and fewer."""
    job, (cure,) = cures(tmp_path, LENGTH)
    tried = [one for one in at_other_values(job, cure) if one.name == "blockDim.x"]
    assert {one.outcome for one in tried} == {SAME}


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "body",
    [
        "if (in[3 * i] > 0.5f) out[i] = in[3 * i + 1];",  # the second element is not always read
        "out[i] = in[3 * i] > 0.5f ? in[3 * i + 1] : 0;",
        "int k = 0; float x = k < n ? in[3 * i] : 0; k = i; out[i] = x + (k > 5 ? in[3 * i + 1] : 0);",
        "int k = i; out[i] = n > 9 && in[3 * k] > 0.5f && in[3 * (k += 1)] > 0;",
        "out[3 * i] = i; out[i] = (i & 1) && (out[3 * i] = 2) && out[3 * i] > 1 && out[3 * i + 1] > 1;",
        "out[3 * i] = 1; out[3 * i + 2] = 2;",  # not the whole of it
        "out[3 * i] = 1; if (i & 1) out[3 * i + 1] = 2;",
        "out[3 * i] = in[i]; float x = out[3 * i]; out[3 * i + 1] = x;",  # read meanwhile
        "int k = 3 * i; int a = k; k += 6; int b = k - 5; out[i] = in[a] + in[b];",
        "int at = 3 * i; float x = in[at]; at += 100; out[i] = x + in[at + 1 - 100];",
        "for (int c = 0; c < n / 70; c++) out[3 * i + c] = in[3 * i + c];",  # who knows how many
        "for (int c = 0; c < 3; c++) { if (c == 1) break; out[3 * i + c] = 1; }",
        "float x = in[3 * i]; __syncthreads(); out[i] = x + in[3 * i + 1];",
        "point *p = (point *)out; p[i / 2].x += i & 1; p[i / 2].y += 1;",  # of two threads
        "point *p = (point *)out; p[i].x += 1; p[0].y = p[i].z;",  # whose is that of another index?
        "point *p = (point *)out; p[i].x += 1; if (i > 9) return; p[i].y += 1;",
        "point *p = (point *)out; float y = p[i].y; p[i].y += 1; out[3 * i] = y + p[i].y;",
        OF_OUT + "point *q = &p[i]; q->x += in[i]; p[i].y = 2; q->z++;",  # by another name
        OF_OUT + "const point &q = p[i]; out[3 * i] = 4; out[n + 3 * i] = q.x * q.y + q.z;",  # read when?
        AS + "float x = 0; for (int j = 0; j < 3; ++j) { x += in[j]; in += 5; } out[i] = x;",
        "float *p = out; p = p + i; p[0] += 1; p[1] += 2;",
    ],
)
def test_what_may_not_be_moved_is_left_alone(tmp_path: Path, body: str) -> None:
    assert cures(tmp_path, body)[1] == ()


def test_distances() -> None:
    assert distance("3 * i", "i * 3 + 2") == 2
    assert distance("(i * n + j) * 3 + 1", "(j + n * i) * 3") == -1
    assert distance("i", "j") is None
    assert distance("i", "2 * i") is None
    assert distance("threadIdx.x * 5", "threadIdx.x * 5 + 4") == 4


def test_records_in_a_function_that_is_given_any_pointer(tmp_path: Path) -> None:
    """In global memory they are moved by the warp; a thread's own array is left to the thread."""
    text = """
__device__ float norm(const float *p, int i) {
    return p[3 * i] * p[3 * i] + p[3 * i + 1] * p[3 * i + 1] + p[3 * i + 2] * p[3 * i + 2];
}
extern "C" __global__ void k(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = norm(in, i);
}
extern "C" __global__ void other(const float *in, float *out, int n) {
    float own[24];
    for (int k = 0; k < 24; ++k) own[k] = in[(k * n + threadIdx.x) % 99];
    out[threadIdx.x] = norm(threadIdx.x < 40 ? own : in, n + threadIdx.x % 4);
}
"""
    args = [np.arange(3 * THREADS, dtype=np.float32), np.zeros(THREADS, np.float32), THREADS]
    job = launched(tmp_path, text, args, (224,))
    (cure,) = records_of_threads(job, analyzed(job))
    assert "record_at<3, 7, true>(&p[3 * i]);" in cure.edit.new
    assert not any(site.needless_sectors for site in cure.analysis.sites)
    assert differing_results(job, cure.job) == ()
    (tmp_path / "new.cu").write_text(cure.edit.new)
    others = [
        Job(KernelFile(tmp_path, file, "other"), Launch((1, 1, 1), (64, 1, 1)), [*args[:2], 3])
        for file in ("k.cu", "new.cu")
    ]
    assert differing_results(*others) == ()


@pytest.mark.parametrize(("given", "is_written"), [("own", True), ("out + 3 * i", False)])
def test_a_store_to_what_a_function_is_given_is_of_the_record_unless_callers_declare_it(
    tmp_path: Path, given: str, is_written: bool
) -> None:
    text = """
__device__ float norm(float *held, const float *p, int i) {
    held[0] = 2 * p[3 * i]; held[1] = 3 * p[3 * i + 1]; held[2] = 5 * p[3 * i + 2];
    return held[0] * held[1] + held[2];
}
extern "C" __global__ void k(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float own[3];
    own[0] = i;
    if (i < n) out[3 * i] = norm(GIVEN, in, i);
}
"""
    args = [np.arange(3 * THREADS, dtype=np.float32), np.zeros(3 * THREADS, np.float32), THREADS]
    job = launched(tmp_path, text.replace("GIVEN", given), args, (224,))
    found = records_of_threads(job, analyzed(job))
    assert any("&p[3 * i]" in one.edit.new for one in found) == is_written
    assert all(differing_results(job, one.job) == () for one in found)


def test_records_of_a_template_whose_calls_agree(tmp_path: Path) -> None:
    text = """
template <int N> __device__ float norm(const float *p, int i) {
    float sum = 0;
    for (int k = 0; k < N; ++k) sum += p[N * i + k] * p[N * i + k];
    return sum;
}
extern "C" __global__ void k(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = norm<3>(in, i);
}
extern "C" __global__ void other(const float *in, float *out) { out[0] = norm<NUMBER>(in, 0); }
"""
    for number, is_written in ((3, True), (4, False)):
        args = [np.random.default_rng(5).random(600).astype(np.float32), np.zeros(200, np.float32), 200]
        job = launched(tmp_path, text.replace("NUMBER", str(number)), args, (224,))
        found = records_of_threads(job, analyzed(job))
        assert bool(found) == is_written
        if found:
            assert "record_at<3, 7, true>" in found[0].edit.new
            assert 'static_assert(N == 3, "of these records");' in found[0].edit.new
            assert differing_results(job, found[0].job) == ()
