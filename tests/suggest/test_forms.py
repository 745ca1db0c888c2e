"""The forms in which sources have records and rows: each is found, moved whole, and has the same results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memsim.analysis import Analysis
from memsim.argument_types.argument import Argument
from memsim.job import Job
from memsim.launch import Launch
from memsim.suggest.prove import differing_results, with_text
from memsim.suggest.records import records_of_threads
from memsim.suggest.rows import rows_of_threads
from memsim.suggest.threads import Remapped
from tests.suggest.kernels import analyzed, launched, needless

THREADS = 200
TEXT = """
struct point { float x, y, z; };
__device__ void doubled(float &x) { x *= 2; }
__device__ void turned(point &p) { float x = p.x; p.x = p.y + 1; p.y = p.z; p.z = x; }
__global__ void k(const float *__restrict__ a, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    BODY
}
"""
RECORDS = {
    "a base that is cast": (
        "out[i] = ((const point *)a)[i].x * ((const point *)a)[i].y + ((const point *)a)[i].z;"
    ),
    "a store by a cast": "reinterpret_cast<float3 *>(out)[i] = make_float3(a[i], a[i] * 2, 3);",
    "rows of an array": "const float (*r)[3] = (const float (*)[3])a; out[i] = r[i][0] * r[i][1] + r[i][2];",
    "arguments of a call": (
        "float3 w = make_float3(a[3 * i], a[3 * i + 1], a[3 * i + 2]); out[i] = w.x * w.y + w.z;"
    ),
    "addresses to __ldg": "out[i] = __ldg(a + 3 * i) * __ldg(a + 3 * i + 1) + __ldg(a + 3 * i + 2);",
    "elements that are added to": "out[3 * i] += a[i]; out[3 * i + 1] -= a[i]; out[3 * i + 2] += a[i] * 2;",
    "loads by a moving pointer": (
        "const float *p = a + 3 * i; float x = *p++; float y = *p++; float z = *p++; out[i] = x * y + z;"
    ),
    "stores by a moving pointer": "float *p = out + 3 * i; *p++ = a[i]; *p++ = a[i] * 2; *p = 3;",
    "a pointer that is set twice": (
        "const float *p = a; if (n > 5) p = a + 3 * i; out[i] = p[0] * p[1] + p[2];"
    ),
    "references that are used lines behind": (
        "const float &x = a[3 * i];\n    const float &y = a[3 * i + 1];\n    const float &z = a[3 * i + 2];\n"
        "    out[i] = x * y + z;"
    ),
    "a function that changes what it is given": "turned(((point *)out)[i]);",
    "elements that a function changes": (
        "doubled(out[3 * i]); doubled(out[3 * i + 1]); doubled(out[3 * i + 2]);"
    ),
    "several lines": "out[i] =\n        a[3 * i] *\n        a[3 * i + 1] +\n        a[3 * i + 2];",
}
ROWS = {
    "a pointer that moves by several elements": (
        "float s = 0; const float *p = a + 24 * i;"
        " for (int j = 0; j < 8; j++) { s += p[0] * p[1] + p[2]; p += 3; } out[i] = s;"
    ),
    "a pointer that a while moves": (
        "float s = 0; int j = 0; const float *p = a + 20 * i;"
        " while (j < 20) { s += *p; ++p; j++; } out[i] = s;"
    ),
    "a pointer that the head moves": (
        "float *p = out + 20 * i; for (int j = 0; j < 20; ++j, ++p) *p = j * a[i];"
    ),
    "an index that moves": (
        "float s = 0; int at = 20 * i; for (int j = 0; j < 20; j++) s += a[at++]; out[i] = s;"
    ),
    "two elements at once": (
        "float s = 0; for (int j = 0; j < 20; j += 2) s += a[20 * i + j] * a[20 * i + j + 1]; out[i] = s;"
    ),
    "records of a row": (
        "float s = 0; for (int j = 0; j < 8; j++) s += a[24 * i + 3 * j] * a[24 * i + 3 * j + 1] "
        "- a[24 * i + 3 * j + 2]; out[i] = s;"
    ),
}
#: None of these is a record or a row of which an edit may be written.
LEFT_ALONE = {
    "a pointer that may move by a number": (
        "float s = 0; const float *p = a + 20 * i;"
        " for (int j = 0; j < 20; j++) { s += p[0]; if (s < 4) p += 1; } out[i] = s;"
    ),
    "a function that changes what others have, too": ("turned(((point *)out)[i / 2]);"),
    "a pointer that moves on a condition": (
        "float s = 0; const float *p = a + 20 * i;"
        " for (int j = 0; j < 20; j++) { s += *p; if (s < 4) p++; } out[i] = s;"
    ),
    "a barrier in the loop": (
        "float s = 0; for (int j = 0; j < 20; j++) { s += a[20 * i + j]; __syncwarp(); } out[i] = s;"
    ),
    "an index that moves twice": (
        "float s = 0; int at = 20 * i;"
        " for (int j = 0; j < 9; j++) { s += a[at++]; s -= a[at++]; } out[i] = s;"
    ),
}


def job_of(folder: Path, text: str, arguments: list[Argument | np.ndarray | int]) -> Job:
    """A launch of a kernel of a text."""
    return launched(folder, text, arguments, (128,), grid=(2,))


def of_body(folder: Path, body: str) -> Job:
    """A launch of the kernel with a body."""
    data = np.random.default_rng(2).random(24 * THREADS + 64).astype(np.float32)
    arguments = [data, np.zeros(20 * THREADS + 64, np.float32), THREADS]
    return job_of(folder, TEXT.replace("BODY", body), arguments)


def is_cured(job: Job, before: Analysis, cures: tuple[Remapped, ...]) -> bool:
    """Whether an edit leaves a tenth of the waste or less, and all have the same results."""
    assert all(not list(differing_results(job, one.job)) for one in cures)
    return any(needless(one.analysis) <= 0.1 * needless(before) for one in cures)


@pytest.mark.some(1)
@pytest.mark.parametrize("body", RECORDS.values(), ids=RECORDS)
def test_a_form_of_records_is_cured(body: str, tmp_path: Path) -> None:
    job = of_body(tmp_path, body)
    before = analyzed(job)
    assert is_cured(job, before, records_of_threads(job, before))


@pytest.mark.some(1)
@pytest.mark.parametrize("body", ROWS.values(), ids=ROWS)
def test_a_form_of_rows_is_cured(body: str, tmp_path: Path) -> None:
    job = of_body(tmp_path, body)
    before = analyzed(job)
    assert is_cured(job, before, rows_of_threads(job, before))


@pytest.mark.some(1)
@pytest.mark.parametrize("body", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_is_no_record_and_no_row_is_left_alone(body: str, tmp_path: Path) -> None:
    job = of_body(tmp_path, body)
    before = analyzed(job)
    assert needless(before) > 100
    assert records_of_threads(job, before) == rows_of_threads(job, before) == ()


OF_TEMPLATES = {
    "elements of more dimensions": (
        "template <int D> __global__ void k(const float *a, float *out, int n) {\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    float x = a[i * D], y = a[i * D + 1];\n"
        "    float z = D > 2 ? a[i * D + 2] : 0;\n"
        "    out[i * D] = y;\n    out[i * D + 1] = z;\n    if (D > 2) out[i * D + 2] = x;\n}\n"
    ),
    "elements of a function that another kernel has, too": (
        "template <int W> __device__ void put(float *to, float x) {\n"
        "    to[0] = x;\n    if (W > 1) to[1] = 2 * x;\n    if (W > 2) to[2] = 3 * x;\n}\n"
        "template <int D> __global__ void k(const float *a, float *out, int n) {\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    put<D>(out + i * D, a[i]);\n}\n"
        "__global__ void other(float *out) { put<1>(out, 1); put<2>(out, 1); }\n"
    ),
    "a first element, too": (
        "template <int D> __global__ void k(const float *a, float *out, int n) {\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    float *to = out + D * i;\n    if (D >= 1) to[0] = a[i];\n"
        "    if (D >= 2) to[1] = 1;\n    if (D >= 3) to[2] = 2;\n}\n"
    ),
}


@pytest.mark.parametrize("text", OF_TEMPLATES.values(), ids=OF_TEMPLATES)
def test_elements_on_conditions_that_the_compiler_decides_are_of_records_of_each_length(
    text: str, tmp_path: Path
) -> None:
    data = np.random.default_rng(2).random(3 * 256).astype(np.float32)
    job = job_of(tmp_path, text, [data, np.zeros(3 * 256, np.float32), 256])
    three, two = (replace(job, kernel=replace(job.kernel, name=f"k<{length}>")) for length in (3, 2))
    before = analyzed(three)
    (cure,) = records_of_threads(three, before)
    assert is_cured(three, before, (cure,))
    assert differing_results(two, with_text(two, "k.cu", cure.edit.new)) == ()


def test_elements_on_a_condition_of_the_launch_are_of_no_record(tmp_path: Path) -> None:
    job = of_body(
        tmp_path,
        "const float x = a[i]; out[3 * i] = x; out[3 * i + 1] = x; if (n > 9) out[3 * i + 2] = x;",
    )
    before = analyzed(job)
    (cure,) = records_of_threads(job, before)
    assert "record_for<2," in cure.edit.new
    assert differing_results(job, cure.job) == ()


IN_A_HEADER = """
__device__ float sum(const float *p) { return p[0] * p[1] + p[2]; }
__global__ void k(const float *__restrict__ a, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[3 * i] + a[3 * i + 1] * a[3 * i + 2];
}
"""


def test_a_kernel_of_an_included_file_is_changed_there(tmp_path: Path) -> None:
    (tmp_path / "kernels.cuh").write_text(IN_A_HEADER)
    data = np.random.default_rng(2).random(3 * THREADS).astype(np.float32)
    job = job_of(tmp_path, '#include "kernels.cuh"\n', [data, np.zeros(THREADS, np.float32), THREADS])
    before = analyzed(job)
    (cure,) = records_of_threads(job, before)
    assert cure.edit.file == "kernels.cuh" and cure.edit.text == IN_A_HEADER
    assert is_cured(job, before, (cure,))


OF_A_PARAMETER = """
struct arrays { const float *in; float *out; int n; };
__global__ void k(arrays of) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= of.n) return;
    const float *p = of.in + 3 * i;
    of.out[3 * i] = p[0]; of.out[3 * i + 1] = p[1] * p[0]; of.out[3 * i + 2] = p[2];
}
"""


def test_arrays_that_are_fields_of_a_parameter(tmp_path: Path) -> None:
    data = np.random.default_rng(2).random(3 * THREADS).astype(np.float32)
    job = job_of(tmp_path, OF_A_PARAMETER, [[data, np.zeros(3 * THREADS, np.float32), THREADS]])
    before = analyzed(job)
    assert is_cured(job, before, records_of_threads(job, before))


STRIDED = """
__global__ void k(const float *a, float *out, int n, int stride) {
    int i = threadIdx.x;
    float sum = 0;
    for (int j = 0; j < n; j++) sum += a[24 * i + j * stride];
    for (int j = 0; j < n; j++) out[24 * i + j * stride] = sum * j;
}
"""


def test_a_stride_of_one_makes_a_row_and_others_are_right(tmp_path: Path) -> None:
    data = np.random.default_rng(2).random(24 * 128).astype(np.float32)
    job = job_of(tmp_path, STRIDED, [data, np.zeros(24 * 128, np.float32), 24, 1])
    job = Job(job.kernel, Launch((1, 1, 1), (128, 1, 1)), job.args)
    before = analyzed(job)
    cures = rows_of_threads(job, before)
    assert is_cured(job, before, cures)
    for cure in cures:
        wider = [
            Job(one.kernel, one.launch, [data, np.zeros(24 * 128, np.float32), 8, 3])
            for one in (job, cure.job)
        ]
        assert not list(differing_results(*wider))
