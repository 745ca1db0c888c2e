"""What an analysis says of races, beside the same kernels with their barriers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import memsim
from memsim.analysis import Analysis
from memsim.captured.analyze_any import analyze
from memsim.sanitizer import first_races
from memsim.views.analyze.terminal import left_out
from memsim.views.report.page import report_page
from tests.simt.cuda import machine_kernel

TEXTBOOK = """
__global__ void k(int *o) { __shared__ int s[64]; int t = threadIdx.x;
s[t] = t;
{0}
o[t] = t >= 32 ? s[t - 32] : s[t]; }"""
#: The race is behind more accesses than are looked at.
LATE = """
__global__ void k(int *o, int n) { __shared__ int s[64]; int t = threadIdx.x;
for (int i = 0; i < n; i++) { *(volatile int *)(s + t) = i; o[t] = *(volatile int *)(s + t); }
o[t] = s[t ^ 32]; }"""


def analyzed(text: str, *more: object) -> Analysis:
    return analyze(machine_kernel(text), 2, 64, ["i32[64]", *more])


def test_an_analysis_says_a_race_in_its_first_line() -> None:
    found = analyzed(TEXTBOOK.replace("{0}", ""))
    (race,) = found.trace.races
    assert race.text == "s[0], which k.cu:3 stores and k.cu:5 loads: nothing orders the two accesses"
    assert (race.line, race.key) == (5, "s: s[t] = t; / o[t] = t >= 32 ? s[t - 32] : s[t]; }")
    assert found.verdict.startswith("k: 1 race in shared memory; ")
    assert found.to_dict()["races"] == [race.text]


def test_it_says_nothing_behind_a_barrier() -> None:
    found = analyzed(TEXTBOOK.replace("{0}", "__syncthreads();"))
    assert not found.trace.races and "race" not in found.verdict and found.to_dict()["races"] == []


def test_a_saved_trace_keeps_them(tmp_path: Path) -> None:
    found = analyzed(TEXTBOOK.replace("{0}", ""))
    found.trace.save(tmp_path / "k.npz")
    assert memsim.Trace.load(tmp_path / "k.npz").races == found.trace.races


def test_only_the_first_accesses_are_looked_at_and_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_races, "MOST_ACCESSES", 64)
    few, many = analyzed(LATE, 8), analyzed(LATE, 64)
    assert few.trace.races and not many.trace.races
    assert first_races.LIMIT in many.trace.notes and first_races.LIMIT not in few.trace.notes
    assert left_out(many)[-1] == first_races.LIMIT


def test_threads_with_addresses_of_their_own_are_looked_at_up_to_a_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = (
        "__global__ void k(const int *at, int *o) { __shared__ int s[64]; int t = threadIdx.x;\n"
        "s[at[t + 64 * blockIdx.x] & 63] = t;\no[t] = s[t]; }"
    )
    given = [np.arange(128, dtype=np.int32)[::-1].copy(), "i32[64]"]
    assert analyze(machine_kernel(text), 2, 64, given).trace.races
    monkeypatch.setattr(first_races, "MOST_THREADS", 127)
    cut = analyze(machine_kernel(text), 2, 64, given).trace
    assert not cut.races and first_races.LIMIT in cut.notes


def test_stores_of_perhaps_one_value_are_left_to_sanitize() -> None:
    text = (
        "__global__ void k(int *o) { __shared__ int s[64];\ns[threadIdx.x / 2] = 1;\no[threadIdx.x] = s[0]; }"
    )
    assert not analyzed(text.replace("[0]", "[threadIdx.x / 2]")).trace.races


def test_the_report_draws_the_word_and_both_accesses() -> None:
    page = report_page(analyzed(TEXTBOOK.replace("{0}", "")))
    _, _, drawn = page.partition('<p class="race">')
    picture, end, _ = drawn.partition("</svg>")
    assert end and ">s[0]</text>" in picture and ">stores: s[t] = t;</text>" in picture
    assert [part.split(" ")[1] for part in picture.split('class="edge" d="')[1:]] == [
        "36",
        "77",
    ]  # both go down
    assert 'class="race"' not in report_page(analyzed(TEXTBOOK.replace("{0}", "__syncthreads();")))
