"""Asynchronous copies in place of loads and stores: waited for at once, and while another tile is used."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memsim.api.sanitizing import sanitize_job
from memsim.arch import get_arch
from memsim.job import Job
from memsim.launch import Launch
from memsim.suggest import suggest
from memsim.suggest.asynchronous_copies import AHEAD, COPIED, Asynchronous, asynchronous_copies
from memsim.suggest.other_values import SAME, at_other_values
from memsim.suggest.prove import differing_results, replay_job, with_text
from memsim.suggest.threads import Remapped, replay_edit
from memsim.time.behind_l1 import COLD, WARM
from memsim.time.quick_estimate import estimate
from memsim.views.suggest.terminal import render
from tests.suggest.kernels import analyzed, launched

ONCE = """
#include <cuda_fp16.h>
__device__ void store(float *to, int i) { to[i] = 1; }
extern "C" __global__ void k(float *out, const float *in, const int *numbers, int n) {
    __shared__ __align__(16) float s[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    BODY
    __syncthreads();
    out[i] = s[255 - t];
}
"""
PRODUCT = """
#define SIDE 16
__device__ float store(float *to) { return *to = 1; }
template <int COUNT>
__global__ void k(float *C, const float *A, const float *B, int n) {
    __shared__ __align__(16) float a[SIDE][SIDE], b[SIDE][SIDE];
    __shared__ float last;
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * SIDE + ty, column = blockIdx.x * SIDE + tx;
    float sum = 0;
    for (int k = 0; k < n; k += SIDE) {
        COPY
        __syncthreads();
        USE
        __syncthreads();
    }
    C[row * n + column] = sum;
}
template __global__ void k<1>(float *, const float *, const float *, int);
"""
COLUMNS = """
template <int COUNT>
__global__ void k(float *C, const float *A, const float *B, int n) {
    __shared__ float a[64][8], b[8][64];
    int t = threadIdx.x, part = t / 64, row = blockIdx.y * 64, column = blockIdx.x * 64 + t % 64;
    float sum[8] = {};
    for (int k = 0; k < n; k += 8) {
        a[t / 8][t % 8] = A[(row + t / 8) * n + k + t % 8];
        b[part][t % 64] = B[(k + part) * n + column];
        __syncthreads();
        for (int i = 0; i < 8; ++i) {
            float one = b[i][t % 64];
            for (int m = 0; m < 8; ++m) sum[m] += a[part * 8 + m][i] * one;
        }
        __syncthreads();
    }
    for (int m = 0; m < 8; ++m) C[(row + part * 8 + m) * n + column] = sum[m];
}
template __global__ void k<1>(float *, const float *, const float *, int);
"""
COPY = "a[ty][tx] = A[row * n + k + tx]; b[ty][tx] = B[(k + ty) * n + column];"
USE = "for (int i = 0; i < SIDE; ++i) sum += a[ty][i] * b[i][tx];"
VECTORS = (
    "if (tx < 4) {\n"
    "    *(float4 *)&a[ty][4 * tx] = *(const float4 *)&A[row * n + k + 4 * tx];\n"
    "    reinterpret_cast<float4 *>(&b[ty][4 * tx])[0] =\n"
    "        reinterpret_cast<const float4 *>(B + (k + ty) * n + column + 3 * tx)[0];\n"
    "}"
)
BY_VARIABLES = (
    "float one = 0.f, two = 0.f;\n"
    "if (row < n && k + tx < n) one = A[row * n + k + tx];\n"
    "two = B[(k + ty) * n + column];\n"
    "a[ty][tx] = one;\n"
    "b[ty][tx] = two;\n"
)
MASKED = (
    "a[ty][tx] = row < n - 3 ? A[row * n + k + tx] : 1.f;\n"
    "if (column < n - 3) b[ty][tx] = B[(k + ty) * n + column]; else b[ty][tx] = 0;"
)


def once(folder: Path, body: str, text: str = ONCE) -> Job:
    numbers = np.arange(512, dtype=np.int32)
    args = [np.zeros(512, np.float32), np.random.default_rng(2).random(512, np.float32), numbers, 300]
    return launched(folder, text.replace("BODY", body), args, (256,), grid=(2,))


def product(folder: Path, copy: str = COPY, use: str = USE, text: str = PRODUCT, n: int = 64) -> Job:
    draw = np.random.default_rng(3)
    args = [np.zeros((n, n), np.float32), *(draw.random((n, n), np.float32) for _ in range(2)), n]
    text = text.replace("COPY", copy).replace("USE", use)
    return launched(folder, text, args, (16, 16), grid=(n // 16, n // 16), name="k<1>")


def columns(folder: Path) -> Job:
    """A product of 256 x 256, eight results of a column to a thread."""
    job = product(folder, text=COLUMNS, n=256)
    return replace(job, launch=Launch((4, 4, 1), (512, 1, 1)))


def edited(job: Job) -> Remapped:
    """The edited kernel, which has the same results, and waits for its copies."""
    before = analyzed(job)
    found = Asynchronous(before, job).edited()
    assert found is not None
    done = replay_edit(found[0], job, before, found[1], helping=False)
    assert done is not None
    assert differing_results(job, done.job) == ()
    assert not sanitize_job(done.job).findings
    return done


def holds_at_other_values(job: Job, done: Remapped) -> int:
    """At how many other values the results are the same; at all at which the kernel runs as it was."""
    outcomes = [one.outcome for one in at_other_values(job, done)]
    assert {*outcomes} <= {SAME, ""}
    return outcomes.count(SAME)


def copies(done: Remapped) -> int:
    """Requests of copies to shared memory."""
    return sum(one.requests or 0 for one in done.analysis.sites if one.op.startswith("cp_async"))


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("body", "requests"),
    [
        ("s[t] = in[i];", 16),
        ("float v = in[i]; s[t] = v;", 16),
        ("float v; v = in[i]; s[t] = v;", 16),
        ("float v = 0; if (i < n) v = in[i]; s[t] = v;", 10),
        ("s[t] = i < n ? in[i] : -1.f;", 10),
        ("if (i < n) s[t] = in[i]; else s[t] = 0;", 10),
        ("if (t < 64) for (int j = t; j < 256; j += 64) s[j] = in[i - t + j];", 16),
        ("if (t < 64) ((float4 *)s)[t] = *(const float4 *)(in + i + 3 * t);", 4),
        ("const float *from = in + blockIdx.x * 256; float *to = s; to[t] = from[t];", 16),
    ],
)
def test_elements_are_copied_and_waited_for(tmp_path: Path, body: str, requests: int) -> None:
    done = edited(once(tmp_path, body))
    assert done.name == COPIED
    assert copies(done) == 2 * requests  # their global and their shared sides
    assert not any(
        one.op == "store"
        for one in done.analysis.sites
        if "else" not in done.edit.new and one.space == "shared"
    )
    assert done.edit.new.count("__pipeline_wait_prior(0);\n    __syncthreads();") == 1
    assert done.edit.new.startswith("\n#include <cuda_pipeline.h>\n#include <cuda_fp16.h>\n")


@pytest.mark.parametrize(
    "body",
    [
        "s[t] = in[i] * 2;",
        "s[t] = numbers[i];",
        "s[t] = in[i]; s[t] += 1;",
        "s[t] = in[i]; __syncwarp(); out[i] = s[t ^ 1];",
        "s[t] = in[i]; float *p = s; out[i] = p[t];",
        "auto f = [&] { return s[t]; }; s[t] = in[i]; out[i] = f();",
        "s[t] = 0; if (i < n) s[t] = in[i];",
        "float v = in[i]; s[t] = v; out[i] = v;",
        "float v = in[i]; out[i] = 1; s[t] = v;",
        "int j = i; float v = in[j]; j = 0; s[t] = v;",
        "s[t] = in[i]; out[i] = 1;",
        "s[t] = in[i]; store(out, i);",
        "s[t] = in[i]; if (i > n) return;",
        "int j = i; s[t] = in[j++];",
        "const float *from = n > 3 ? in : s; s[t] = from[t];",
        "const float *from = in; if (n > 3) from = s; s[t] = from[t];",
        "((half *)s)[t] = ((const half *)in)[t];",
        "((volatile float *)s)[t] = in[t];",
    ],
)
def test_what_a_copy_would_change_is_left_alone(tmp_path: Path, body: str) -> None:
    job = once(tmp_path, body)
    assert Asynchronous(analyzed(job), job).edited() is None


def test_what_is_read_without_a_barrier_is_left_alone(tmp_path: Path) -> None:
    job = once(tmp_path, "s[t] = in[i];", ONCE.replace("__syncthreads();\n", "__syncwarp();\n"))
    assert Asynchronous(analyzed(job), job).edited() is None


@pytest.mark.parametrize(
    ("kind", "dtype", "holds"),
    [("float", "f4", True), ("double", "f8", True), ("short", "i2", False), ("pair", "f4", False)],
)
def test_the_size_of_a_templates_type_is_asserted(tmp_path: Path, kind: str, dtype: str, holds: bool) -> None:
    """Where its size is not known, a copy is for the types that have one."""
    text = """
struct pair { float x, y; };  // of 8 bytes, that begin with any 4
template <typename T> __global__ void k(T *out, const T *in) {
    __shared__ T s[64];
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}
"""
    arrays = [np.zeros(128, dtype), np.ones(128, dtype)]
    job = launched(tmp_path, text, arrays, (64,), name=f"k<{kind}>")
    before = analyzed(job)
    found = Asynchronous(before, job).edited()
    assert found is not None
    assert (replay_edit(found[0], job, before, found[1], helping=False) is not None) == holds


@pytest.mark.some(2)
@pytest.mark.parametrize("copy", [COPY, VECTORS, BY_VARIABLES, MASKED])
def test_the_next_tile_is_copied_while_one_is_used(tmp_path: Path, copy: str) -> None:
    done = edited(product(tmp_path, copy))
    assert done.name == AHEAD
    assert "a[2][SIDE][SIDE], b[2][SIDE][SIDE];" in done.edit.new
    assert done.edit.new.count("__syncthreads()") == 1
    assert "one" not in done.edit.new or copy != BY_VARIABLES
    assert copies(done) > 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "for (int k = 0; k < n; k += SIDE) {",
            "for (int k = 0; k < n; k += SIDE) {\n        __syncthreads();",
        ),
        (
            "b[i][tx];\n        __syncthreads();",
            "b[i][tx];\n        A += SIDE;\n        __syncthreads();\n        B += SIDE * n;",
        ),
        ("int k = 0; k < n; k += SIDE", "int k = 0, j = 0; j < n; j += SIDE, A += SIDE, B += SIDE * n"),
        ("    __shared__ __align__(16) float a[SIDE][SIDE], b[SIDE][SIDE];\n", ""),
    ],
)
def test_loops_of_other_forms(tmp_path: Path, old: str, new: str) -> None:
    text = PRODUCT.replace("COPY", COPY).replace("USE", USE)
    if "+= SIDE * n" in new:
        text = text.replace("row * n + k", "row * n").replace("(k + ty)", "ty")
    if not new:
        text = text.replace("k += SIDE) {", f"k += SIDE) {{\n    {old}")
    done = edited(product(tmp_path, text=text.replace(old, new, 1)))
    assert done.name == AHEAD
    assert "if (tile > 0) {" in done.edit.new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    C[row", "    sum += a[0][0];\n    C[row"),  # used behind the loop
        ("sum += a", "if (k + i < n) sum += a"),  # of which tile?
        ("sum += a", "C[row * n] = sum += a"),
        ("sum += a", "sum += last = a"),
        ("sum += a", "sum += store(C + row * n) * a"),
        ("sum += a", "sum += b[0][i] += a"),
        ("sum += a", "b[0][i] = sum += a"),
        ("b[i][tx];\n", "b[i][tx];\n        if (sum > 1e9f) break;\n"),
        ("b[i][tx];\n", "b[i][tx];\n        row += sum > 1e9f;\n"),
        ("b[i][tx];\n        __syncthreads();", "b[i][tx];"),  # a race as it is
        ("a[SIDE][SIDE]", "a[SIDE * 25][SIDE]"),  # two are 52 KB
    ],
)
def test_one_buffer_where_two_would_be_wrong(tmp_path: Path, old: str, new: str) -> None:
    text = PRODUCT.replace("COPY", COPY).replace("USE", USE)
    assert old in text
    job = product(tmp_path, text=text.replace(old, new))
    found = Asynchronous(analyzed(job), job).edited()
    assert found is not None
    assert found[0] == COPIED


@pytest.mark.parametrize(("also", "name"), [("", AHEAD), ('asm volatile("bar.warp.sync -1;");', COPIED)])
def test_tensor_cores_read_a_tile(tmp_path: Path, also: str, name: str) -> None:
    text = f"""
#include <cuda_fp16.h>
extern "C" __global__ void k(unsigned *out, const half *in, int n) {{
    __shared__ __align__(16) half tile[16][16];
    unsigned lane = threadIdx.x, sum = 0, r[4];
    for (int i = 0; i < n; ++i) {{
        *(float4 *)&tile[lane / 2][lane % 2 * 8] = *(const float4 *)&in[i * 256 + lane * 8];
        __syncthreads();
        unsigned at = (unsigned)__cvta_generic_to_shared(&tile[lane % 16][lane / 16 * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%0, %1, %2, %3}}, [%4];\\n"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
        {also}
        sum = sum * 3 + r[0] + 5 * r[1] + 7 * r[2] + 9 * r[3];
        __syncthreads();
    }}
    out[lane] = sum;
}}
"""
    numbers = np.random.default_rng(1).random(4 * 256).astype(np.float16)
    args = [np.zeros(32, np.uint32), numbers, 4]
    job = launched(tmp_path, text, args, (32,))
    assert edited(job).name == name


def test_copies_that_nothing_waits_for_are_found(tmp_path: Path) -> None:
    """The emulator copies at once, so that results do not tell."""
    job = product(tmp_path)
    done = edited(job)
    early = with_text(job, "k.cu", done.edit.new.replace("__pipeline_wait_prior(0);", ""))
    assert differing_results(job, early) == ()
    assert sanitize_job(early, tools=("race",)).findings


@pytest.mark.slow
def test_it_is_taken_where_nothing_else_pays_and_it_does(tmp_path: Path) -> None:
    job = columns(tmp_path)
    before = replay_job(job)
    found = suggest(before, job)
    assert found.pays
    assert found.taken is not None and found.taken.name == AHEAD
    assert found.taken_numbers == (1,)
    told = render(found)
    assert re.match(rf"k<1>: no bank conflict, .*; with {AHEAD} about .* us -> .* us, \d+ % less", told)
    assert "compiled and replayed" in told
    assert not re.search(r"- (.+)\n +\+ \1\n", told)  # lines of which only the indentation changes
    assert "+ unsigned tile = 0;" in told
    again = suggest(before, job, take=(1,))
    assert again.taken is not None and again.taken.edit == found.taken.edit
    assert holds_at_other_values(job, found.taken) == 2  # of n: arrays have no room for larger ones
    assert asynchronous_copies(found.taken.job, found.taken.analysis) == ()
    assert asynchronous_copies(job, replace(before, arch=get_arch("sm_75"))) == ()


@pytest.mark.slow
def test_what_a_warm_cache_makes_slower_is_not_proposed(tmp_path: Path) -> None:
    """An H200 takes 5 % longer for such a product with a cold L2 cache, and 10 % with a warm one."""
    job = product(tmp_path, n=256)
    done = edited(job)
    assert done.name == AHEAD
    times = [estimate(one, l2=l2) for l2 in (COLD, WARM) for one in (job, done.job)]
    cold, cold_after, warm, warm_after = (one.elapsed for one in times if one is not None and one.elapsed)
    assert cold_after < 0.95 * cold
    assert warm_after > warm
    assert asynchronous_copies(job, replay_job(job)) == ()
    assert holds_at_other_values(job, done) >= 4


@pytest.mark.slow
def test_a_copy_that_saves_nothing_is_not_proposed(tmp_path: Path) -> None:
    job = once(tmp_path, "s[t] = in[i];")
    assert asynchronous_copies(job, replay_job(job)) == ()


def test_what_it_asserts_is_indented_as_the_kernels_statements(tmp_path: Path) -> None:
    found = Asynchronous(analyzed(job := product(tmp_path)), job).edited()
    assert found is not None
    assert '{\n    static_assert(SIDE == 16, "of this layout");\n' in found[1].asserting("SIDE == 16").new
