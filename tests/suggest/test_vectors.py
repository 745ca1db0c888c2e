"""Vectors in arrays of their parts, and macros that access them: half a sector of each, if alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memsim.job import Job
from memsim.suggest.edit import Replacement, apply_replacements
from memsim.suggest.kernel_tree import expand_macros
from memsim.suggest.prove import differing_results
from memsim.suggest.records import records_of_threads
from memsim.suggest.rows import rows_of_threads
from tests.suggest.kernels import analyzed, needless
from tests.suggest.test_forms import is_cured, job_of

THREADS = 200
TEXT = """
#define AT(i, j) a[(j) * n + \\
    (i)]
#define LOAD(v, place) \\
    v = *((const float4 *)(place));
#define VECTOR(place) (reinterpret_cast<float4 *>(&(place))[0])
__device__ float sum(float4 v) { return v.x + v.y + v.z + v.w; }
#define MORE(m, field) out[i] += p[m].field; \\
    out[i] -= p[m].x; out[i] += p[m].y; out[i] -= p[m].z;
#define STEP(m) { MORE(m, w) }
__global__ void k(const float *a, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v, w;
    const float4 *p = (const float4 *)a + i;
    BODY
}
"""
RECORDS = {
    "casts of addresses": (
        "v = *(const float4 *)&a[8 * i]; w = *(const float4 *)(a + 8 * i + 4); out[i] = sum(v) - sum(w);"
    ),
    "macros": (
        "LOAD(v, &AT(8 * i, 0))\n    LOAD(w,\n        &AT(8 * i + 4, 0))\n    out[i] = sum(v) - sum(w);"
    ),
    "a macro that is assigned to, in steps": (
        "for (int c = 0; c < 8; c += 4) VECTOR(out[8 * i + c]) = make_float4(c, a[i], 1, 2);"
    ),
    "fields of a vector": "STEP(0)",
    "a macro that is defined again": "#undef STEP\n#define STEP(j) MORE(j, w)\n    STEP(0)",
}
#: In warps of which some lanes are not active.
IN_SOME = [f"if (i % 5 != 1 && i != 64) {{ {RECORDS[name]} }}" for name in list(RECORDS)[::2][:2]]
ROWS = {
    "vectors along a row": (
        "float s = 0; for (int c = 0; c < 4; c++) {"
        " v = *(const float4 *)&a[16 * i + 4 * c]; s += v.x * v.w; } out[i] = s;"
    ),
    "as long as an index is within": (
        "float s = 0; for (int c = 0; c < 6; c++) { int at = 16 * i + 4 * c; if (at < 16 * n) {"
        " v = *(const float4 *)&a[at]; s += v.x * v.w; } } out[i] = s;"
    ),
}
LEFT_ALONE = {
    "vectors that overlap": (
        "v = *(const float4 *)&a[8 * i]; float2 h = *(const float2 *)&a[8 * i + 2]; out[i] = v.x * h.y;"
    ),
    "one vector": "v = *(const float4 *)&a[8 * i]; out[i] = v.x * v.w;",
    "stores between": (
        "v = *(float4 *)&out[8 * i]; VECTOR(out[8 * i + 4]) = v; w = *(float4 *)&out[8 * i + 4];"
    ),
    "rows on any condition": (
        "float s = 0; for (int c = 0; c < 4; c++) { if (c != n) {"
        " v = *(const float4 *)&a[16 * i + 4 * c]; s += v.x * v.w; } } out[i] = s;"
    ),
}


def of_body(folder: Path, body: str) -> Job:
    """200 threads."""
    data = np.random.default_rng(2).random(24 * THREADS).astype(np.float32)
    return job_of(folder, TEXT.replace("BODY", body), [data, np.zeros(20 * THREADS, np.float32), THREADS])


@pytest.mark.some(2)
@pytest.mark.parametrize("body", RECORDS.values(), ids=RECORDS)
def test_vectors_are_records(body: str, tmp_path: Path) -> None:
    job = of_body(tmp_path, body)
    before = analyzed(job)
    assert is_cured(job, before, records_of_threads(job, before))


@pytest.mark.some(1)
@pytest.mark.parametrize("body", IN_SOME)
def test_warps_that_are_not_whole_move_them_otherwise(body: str, tmp_path: Path) -> None:
    job = of_body(tmp_path, body)
    before = analyzed(job)
    (cure,) = records_of_threads(job, before)
    assert needless(cure.analysis) < needless(before)
    assert list(differing_results(job, cure.job)) == []


@pytest.mark.some(1)
@pytest.mark.parametrize("body", ROWS.values(), ids=ROWS)
def test_vectors_are_rows(body: str, tmp_path: Path) -> None:
    job = of_body(tmp_path, body)
    before = analyzed(job)
    assert is_cured(job, before, rows_of_threads(job, before))


@pytest.mark.some(1)
@pytest.mark.parametrize("body", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_other_vectors_are_left_alone(body: str, tmp_path: Path) -> None:
    job = of_body(tmp_path, body)
    before = analyzed(job)
    assert needless(before) > 100
    assert records_of_threads(job, before) == rows_of_threads(job, before) == ()


MACROS = """#define TWICE(x) ((x) + \\
    (x))
#define OF(x, y) TWICE(x) * y
#define NAMED(x) a##x
#define AGAIN(x) x
#define AGAIN(x) -x
int f(int a) {
    return OF(a,
        g(2, 3)) + NAMED(1) + AGAIN(a) + TWICE(TWICE);
}
"""


def test_calls_are_what_they_stand_for_and_lines_keep_their_numbers() -> None:
    made = expand_macros(MACROS)
    assert made.text.count("\n") == MACROS.count("\n")
    assert "return ((a) + (a)) * \n        g(2, 3) + NAMED(1) + AGAIN(a) + ((TWICE) + (TWICE));" in made.text
    place = made.text.index("g(2, 3)")
    changed = apply_replacements(
        MACROS, made.back([Replacement(place, place + 7, "4"), Replacement(0, 0, "// all\n")])
    )
    assert changed.startswith("// all\n#define TWICE")
    assert "return ((a) + (a)) * \n        4 + NAMED(1) + AGAIN(a) + TWICE(TWICE);" in changed
