"""The baseline's file: what is written is read, and what is damaged is not."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from memsim.analysis import analyze_trace
from memsim.errors import MemsimError
from memsim.guard.baseline import entry_of, parse, render
from memsim.guard.evaluate import GuardedKernel
from memsim.trace.trace import Trace
from memsim.trace.trace_data import Origin
from tests.guard.subjects import CLEAN, STORE, TWO_WAY, checked, entry, out, shared, subject, unresolved
from tests.traces import LANES, Request, site, traces

FILE = render({"k": entry(shared(CLEAN, STORE), out(CLEAN), unresolved())})


def test_a_line_for_each_access() -> None:
    lines = FILE.splitlines()
    assert lines[2] == "schema = 1"
    assert lines[4] == '[kernels."k"]'
    assert lines[7] == (
        '  { code = "tile[i] = 1;", access = "shared store 4 B", array = "tile", instructions = 1,'
        " requests = 1, wavefronts = 1, conflicts = 0, ways = 1, ideal_wavefronts = 1 },"
    )
    assert len(lines) == 11
    tomllib.loads(FILE)


@pytest.mark.parametrize(
    ("space", "counts"),
    [
        ("global", ("requests", "sectors", "lines", "ideal_sectors")),
        ("local", ("requests", "sectors", "ideal_sectors")),
        ("constant", ("requests",)),
    ],
)
def test_a_row_has_the_counts_of_its_space(space: str, counts: tuple[str, ...]) -> None:
    text = render({"k": entry((site(space=space, array="A"), [Request(LANES * 0)]))})
    (row,) = parse(text, "memsim-baseline.toml")["k"].sites
    assert (row.space, row.requests, row.wavefronts) == (space, 1, None)
    for count in counts:
        less = re.sub(rf", {count} = \d+", "", text)
        assert less != text
        with pytest.raises(MemsimError, match="are missing"):
            parse(less, "memsim-baseline.toml")


def test_no_line_numbers() -> None:
    moved = [
        (dataclasses.replace(one, line=one.line + 10), requests)
        for one, requests in (shared(CLEAN, STORE), out(CLEAN), unresolved())
    ]
    sources = {"kernel.cu": "\n" * 10 + "// line 1\n  tile[i] = 1;\nx = tile[i];\nout[i] = x;\n"}
    assert render({"k": entry(*moved, sources=sources)}) == FILE


@given(made=st.lists(traces(), min_size=1, max_size=3))
def test_what_is_written_is_read(made: list[Trace]) -> None:
    analyses = {f'k"{i}\x7f\n': analyze_trace(trace) for i, trace in enumerate(made)}
    entries = parse(render({name: entry_of(analysis) for name, analysis in analyses.items()}), "file")
    assert entries.keys() == analyses.keys()
    for name, analysis in analyses.items():
        of = GuardedKernel(name, analysis, entries[name])
        kinds = {finding.kind for finding in checked("baseline", of).findings}
        assert kinds <= {"unresolved"}
    assert render(entries) == render(parse(render(entries), "file"))


def test_arguments_are_kept_in_a_line_of_their_own() -> None:
    one = parse(FILE, "file")["k"]
    assert one.arguments is None
    given = msgspec.structs.replace(one, arguments='f32[64], "x"')
    text = render({"k": given})
    assert parse(text, "file")["k"] == given
    assert len(text.splitlines()) == len(FILE.splitlines()) + 1
    with pytest.raises(MemsimError, match=r"arguments"):
        parse(FILE.replace("sites = [", "arguments = 3\nsites = ["), "file")


def test_a_baseline_of_another_compiler_is_told_where_something_changed() -> None:
    def made_by(compiler: str) -> Origin:
        return Origin("machine code", "sm_90", compiler, "0")

    before = subject(shared(CLEAN), origin=made_by("NVRTC 12.0.140"))
    kept = parse(render({"k": entry_of(before.analysis)}), "file")["k"]
    assert kept.read == "machine code of sm_90, made by NVRTC 12.0.140"
    for compiler, is_told in (("NVRTC 12.0.140", False), ("nvcc 13.0.88", True)):
        worse = subject(shared(TWO_WAY), entry=kept, origin=made_by(compiler))
        (finding,) = checked("baseline", worse).findings
        told = "the baseline is of machine code of sm_90, made by NVRTC 12.0.140, this is"
        assert (told in finding.reason) == is_told
        same = subject(shared(CLEAN), entry=kept, origin=made_by(compiler))
        assert checked("baseline", same).findings == ()


def test_kernels_are_in_order() -> None:
    one = entry(shared(CLEAN))
    assert render({"b": one, "a": one}) == render({"a": one, "b": one})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: "", "schema None"),
        (lambda text: text[: len(text) // 2], "not TOML"),
        (lambda text: text.replace("launch", "<<<<<<< HEAD\nlaunch", 1), "a merge conflict"),
        (lambda text: text.replace("schema = 1", "schema = 2"), "schema 2"),
        (lambda text: text[: text.index("[kernels")], "no kernels"),
        (
            lambda text: text.replace("launch =", "start ="),
            "missing required field `launch`",
        ),
        (lambda text: text.replace("wavefronts = 1", "wavefronts = -1", 1), "Expected `int` >= 0"),
        (
            lambda text: text.replace("wavefronts = 1", "wavefronts = 1.0", 1),
            "got `float`",
        ),
        (lambda text: text.replace("wavefronts = 1", "wavefronts = true", 1), "got `bool`"),
        (lambda text: text.replace(" conflicts = 0,", ""), "are missing"),
        (lambda text: text.replace("conflicts", "konflicts"), "contains unknown field `konflicts`"),
        (lambda text: text.replace("shared store 4 B", "shared store"), "matching regex"),
        (lambda text: text.replace('array = "tile"', "array = 3"), "Expected `str`, got `int`"),
        (lambda text: text.replace('code = "tile[i] = 1;", ', ""), "missing required field `code`"),
        (lambda text: "a = " + "[" * 5000 + "\n" + text, "not TOML"),
        (lambda text: text.replace("wavefronts = 1", "wavefronts = " + "9" * 5000, 1), "not TOML"),
        (lambda text: text.replace("wavefronts = 1", "wavefronts = " + "9" * 50, 1), "damaged"),
    ],
)
def test_what_is_damaged_is_refused(spoil: Callable[[str], str], message: str) -> None:
    assert parse(FILE, "memsim-baseline.toml")["k"].sites[0].wavefronts == 1
    spoiled = spoil(FILE)
    assert spoiled != FILE
    with pytest.raises(MemsimError) as caught:
        parse(spoiled, "memsim-baseline.toml")
    assert message in caught.value.message
    assert caught.value.file == "memsim-baseline.toml"
    assert caught.value.exit_code == 2


def test_a_merge_conflict_is_named_by_its_line() -> None:
    spoiled = FILE.replace("launch", "<<<<<<< HEAD\nlaunch", 1)
    with pytest.raises(MemsimError, match="a merge conflict") as caught:
        parse(spoiled, "memsim-baseline.toml")
    assert spoiled.splitlines()[(caught.value.line or 0) - 1] == "<<<<<<< HEAD"


def test_the_launch_is_kept() -> None:
    def launch(**fields: Any) -> str:
        return entry(shared(CLEAN), **fields).launch

    assert launch() == "grid 2x1x1, block 32x1x1, 0 B dynamic shared memory, 2 of 2 blocks, sm_90"
    assert launch(blocks_replayed=1) != launch()
