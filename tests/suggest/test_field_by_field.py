"""Arrays that the caller keeps in another layout: which, how it is told, what is proven, and when not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim.argument_types import ArrayArg
from memsim.job import Job
from memsim.suggest.caller_layout import CallerLayout
from memsim.suggest.field_by_field import kept_by_caller
from memsim.suggest.other_values import SAME, at_other_values
from memsim.suggest.prove import differing_results
from memsim.suggest.suggestions import suggest
from memsim.suggest.threads import Remapped
from tests.suggest.kernels import analyzed, launched

FIELD = """
__global__ void k(const float *__restrict__ p, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, at = i * 3;
    if (i < n) out[i] = p[at + 1] + 1;
}
"""
RECORDS = """
struct Point { float at[3]; int id; float size; };
__global__ void k(Point *p, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { p[i].at[1] *= 2; out[i] = p[i].size; }
}
"""
DIAGONALS = """
template <int DIM>
__global__ void k(float *p, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = i / DIM, c = i % DIM;
    if (i >= n) return;
    float *block = p + j * DIM * DIM;
    out[i] = block[c * DIM + c];
    block[c * DIM + c] += 1;
}
"""
NUMBERS = """
__global__ void k(const long long *p, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { const int at = p[i]; out[i] = at; }
}
"""
POINTED = FIELD.replace("out[i] = p[at + 1] + 1;", "{ const float *q = &p[at]; out[i] = q[1]; }")
TWO = NUMBERS.replace("const long", "const float *q, const long").replace("= at", "= at + q[2 * i]")


def job_of(folder: Path, text: str, args: Sequence[Any] = (), name: str = "k") -> Job:
    """300 threads, of 320, for `p` and `out`."""
    given = args or (ArrayArg((2700,), "f4"), ArrayArg((300,), "f4"), 300)
    return launched(folder, text, list(given), (64,), grid=(5,), name=name)


def kept(folder: Path, text: str, args: Sequence[Any] = (), name: str = "k") -> tuple[Job, list[Remapped]]:
    """What is proposed for it."""
    job = job_of(folder, text, args, name)
    return job, list(kept_by_caller(job, analyzed(job)))


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "text, name, new, sectors",
    [
        (FIELD, "k", "k(elements_by_field<const float, 3> p, float *out", (113 + 38, 38 + 38)),
        (FIELD.replace("p[at + 1]", "__ldg(&p[at + 1])"), "k", "__ldg(&p[at + 1])", (113 + 38, 38 + 38)),
        (FIELD.replace("i * 3", "i * 2"), "k", "elements_by_field<const float, 2> p", (75 + 38, 38 + 38)),
        (
            RECORDS,
            "k",
            "p.field(i, p.data[i].at[1]) *= 2; out[i] = p.field(i, p.data[i].size);",
            (602, 4 * 38),
        ),
        (DIAGONALS, "k<3>", "const auto block = p + j * DIM * DIM;", (377, 4 * 38)),
        (DIAGONALS, "k<3>", "elements_by_field<float, 9, 0x111> p", (377, 4 * 38)),
    ],
)
def test_fields_of_32_records_side_by_side(
    text: str, name: str, new: str, sectors: tuple[int, int], tmp_path: Path
) -> None:
    job, (done,) = kept(tmp_path, text, name=name)
    assert new in done.edit.new
    assert done.sectors == sectors
    assert not differing_results(job, done.job, asks=done.asks)
    assert differing_results(job, done.job)  # `p` is not where it was
    outcomes = {one.name: one.outcome for one in at_other_values(job, done) if one.outcome}
    assert {"blockDim.x", "n"} <= set(outcomes)
    assert set(outcomes.values()) == {SAME}


def test_numbers_of_which_only_the_low_half_is_read(tmp_path: Path) -> None:
    numbers = np.arange(300, dtype="i8") - 7 + (np.arange(300, dtype="i8") % 3 << 40)
    args = (numbers, ArrayArg((300,), "f4"), 300)
    _, (done,) = kept(tmp_path, NUMBERS, args)
    assert "k(const int *p, float" in done.edit.new
    assert done.sectors == (75 + 38, 38 + 38)
    assert done.job.values[0].tolist() == numbers.astype("i4").tolist()
    assert done.asks[0].told == "the low 32 bits of each number of p, and nothing else"


def test_several_arrays_are_kept_otherwise_at_once(tmp_path: Path) -> None:
    args = (ArrayArg((600,), "f4"), np.arange(300), ArrayArg((300,), "f4"), 300)
    _, (done,) = kept(tmp_path, TWO, args)
    assert done.name == "q and p field by field, kept so by the caller"
    assert [one.array for one in done.asks] == ["q", "p"]
    assert done.sectors[1] == 3 * 38


def test_what_does_not_go_is_left_out(tmp_path: Path) -> None:
    args = (ArrayArg((600,), "f4"), np.arange(300), ArrayArg((300,), "f4"), 300)
    _, (done,) = kept(tmp_path, TWO.replace("q[2 * i]", "*(q + 2 * i)"), args)
    assert [one.array for one in done.asks] == ["p"]


LEFT_ALONE = {
    "a pointer to an element, from which others are reached": POINTED,
    "a pointer to an element of a part": DIAGONALS.replace("out[i] = block", "float *q = &block").replace(
        "[c * DIM + c];\n", "[0]; out[i] = q[c * DIM + c];\n", 1
    ),
    "another function's pointer": "__device__ float get(const float *p, int i) { return p[i]; }\n"
    + FIELD.replace("p[at + 1]", "get(p, at + 1)"),
    "a cast": FIELD.replace("p[at + 1]", "((const int *)p)[at + 1]"),
    "records that are read as a whole": RECORDS.replace(
        "out[i] = p[i].size", "Point q = p[i]; out[i] = q.size"
    ),
    "fields of two sizes": RECORDS.replace("int id; float size", "double size"),
    "numbers of which a high half is read": NUMBERS.replace("p[i];", "p[i] >> 20;"),
    "numbers of which a high half may be read": NUMBERS.replace("= at;", "= n > 500 ? p[i] >> 40 : at;"),
    "data decide which": FIELD.replace("i * 3", "int(out[i] * out[i] * 200)"),
    "no sector is needless": FIELD.replace("i * 3", "i"),
    "elements that a loop walks over": FIELD.replace("p[at + 1]", "*(p + at)"),
}


@pytest.mark.parametrize("why", LEFT_ALONE)
def test_where_the_layout_is_not_the_callers_to_change(why: str, tmp_path: Path) -> None:
    name = "k<3>" if "template" in LEFT_ALONE[why] else "k"
    whole = (np.arange(300), ArrayArg((300,), "f4"), 300) if "long long" in LEFT_ALONE[why] else ()
    assert not kept(tmp_path, LEFT_ALONE[why], whole, name)[1]


@pytest.mark.parametrize("shared, found", [(True, 0), (False, 1)])
def test_an_array_that_is_given_twice_keeps_its_layout(shared: bool, found: int, tmp_path: Path) -> None:
    text = FIELD.replace("float *out", "const float *q, float *out").replace("+ 1;", "+ q[i];")
    p = np.arange(900, dtype="f4")
    args = (p, p if shared else p.copy(), ArrayArg((300,), "f4"), 300)
    assert len(kept(tmp_path, text, args)[1]) == found


def test_a_layout_is_a_permutation_of_whole_groups() -> None:
    layout = CallerLayout("p", 0, 3, 4, grouped=True)
    data = np.arange(1, 121, dtype="i4")  # 40 records
    packed = np.frombuffer(layout.packed(data.tobytes()), "i4")
    record, field = np.divmod(np.arange(120), 3)
    assert (packed[record // 32 * 96 + field * 32 + record % 32] == data).all()
    assert (len(packed), np.count_nonzero(packed)) == (192, 120)
    n = np.flatnonzero(packed)
    assert (packed[n] - 1 == (n // 96 * 32 + n % 32) * 3 + n // 32 % 3).all()
    assert "f of r is at r / 32 * 96 + f * 32 + r % 32" in layout.told
    assert "at n is f = n / 32 % 3 of r = n / 96 * 32 + n % 32" in layout.told


def test_fields_that_are_kept_together_are_ahead_of_the_others() -> None:
    layout = CallerLayout("p", 0, 9, 4, grouped=True, together=(0, 4, 8))
    data = np.arange(1, 361, dtype="i4")  # 40 records
    packed = np.frombuffer(layout.packed(data.tobytes()), "i4")
    record, field = np.divmod(np.arange(360), 9)
    first, together = record // 32 * 288, field % 4 == 0
    assert (packed[first + record % 32 * 3 + field // 4][together] == data[together]).all()
    other = first + (3 + field - field // 4 - 1) * 32 + record % 32
    assert (packed[other][~together] == data[~together]).all()
    assert (len(packed), np.count_nonzero(packed)) == (576, 360)
    assert "fields 0, 4, 8 of r at r / 32 * 288 + r % 32 * 3, then the others" in layout.told


def test_it_comes_after_what_is_worth_an_edit_and_asks_nothing(tmp_path: Path) -> None:
    job = job_of(tmp_path, FIELD)
    found = suggest(analyzed(job), job)
    assert found.taken is not None and found.taken.asks
    assert not found.fields  # by hand no more
    rows = FIELD.replace("p[at + 1] + 1", "p[at] * p[at + 1] + p[at + 2]")
    job = job_of(tmp_path, rows)
    found = suggest(analyzed(job), job)
    assert found.taken is not None and not found.taken.asks
