"""What users are given shows itself: however they get it, in whichever process it was made or is read."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import memsim
from memsim.analysis import Analysis, analyze_trace
from memsim.captured.launched import Launched
from memsim.errors import MemsimError
from memsim.suggest import suggest

SIZE = (64, 64)
WAYS: dict[str, Callable[[], Any]] = {
    "a kernel of the catalogue": lambda: memsim.catalog()["transpose_naive"].analyze(SIZE),
    "a launch": lambda: Launched.of(memsim.catalog()["transpose_naive"].job(SIZE)).analyze(),
    "a launch, analyzed": lambda: memsim.analyze(Launched.of(memsim.catalog()["transpose_naive"].job(SIZE))),
    "index math": lambda: memsim.analyze(index_math, block=32),
    "plain addresses": lambda: memsim.shared_access([[128 * lane for lane in range(32)]], 4).analysis,
}


def index_math(t: memsim.Thread) -> None:  # type: ignore[name-defined]
    TILE[t.x, 0].load()


TILE = memsim.SharedArray("tile", memsim.Layout((32, 32), (32, 1)))


@pytest.mark.some(1)
@pytest.mark.parametrize("way", WAYS)
def test_whoever_gives_a_user_an_analysis_gives_one_that_shows_itself(way: str) -> None:
    analysis = WAYS[way]()
    assert type(analysis) is memsim.Analysis
    assert str(analysis).splitlines()[0] == analysis.verdict
    assert "bank" in str(analysis.heatmap()) and analysis.plot.heatmap().axes


def test_the_records_below_are_the_same_data_and_show_nothing() -> None:
    trace = memsim.catalog()["transpose_naive"].trace(SIZE)
    record, shown = analyze_trace(trace), memsim.catalog()["transpose_naive"].analyze(SIZE)
    assert type(record) is Analysis and str(record) == repr(shown) == f"<Analysis {shown.verdict}>"
    assert record.to_dict(sass=True) == {**shown.to_dict(sass=True), "time": None}
    assert not {"plot", "heatmap", "explain", "report", "suggest", "_repr_html_"} & set(dir(record))
    assert suggest(record).to_dict() == shown.suggest().to_dict()
    assert "Suggestions(" in str(suggest(record)) and str(shown.suggest()).startswith("transpose_naive: ")


def test_it_tells_how_long_its_launch_takes() -> None:
    shown = memsim.catalog()["transpose_naive"].analyze(SIZE)
    cold, warm = shown.time(), shown.time(l2="warm")
    assert warm.cycles < cold.cycles < cold.elapsed
    line = str(shown).splitlines()[1]
    assert shown.timed.estimate is not None
    assert line == f"Time: {shown.timed.estimate.verdict}" and "an estimate" in line
    assert shown.to_dict()["time"]["cycles"] == cold.cycles
    again = pickle.loads(pickle.dumps(shown))
    assert str(again) == str(shown)
    for none in (WAYS["index math"](), WAYS["plain addresses"]()):
        assert not [line for line in str(none).splitlines() if line.startswith("Time")]
        with pytest.raises(MemsimError, match="machine code"):
            none.time()


def test_totals_stand_beside_the_counters_of_ncu() -> None:
    analysis = memsim.catalog()["transpose_naive"].analyze(SIZE)
    ncu = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
    assert analysis.wavefronts == sum(analysis.totals[ncu.format(op)] or 0 for op in ("ld", "st"))
    assert analysis.ideal_wavefronts == sum(site.ideal_wavefronts or 0 for site in analysis.sites)
    assert analysis.conflicts == analysis.wavefronts - analysis.ideal_wavefronts
    assert analysis.sectors == analysis.ideal_sectors == 2 * 64 * 64 * 4 // 32


@pytest.mark.slow
def test_a_total_that_is_not_certain_is_none() -> None:
    source = (
        "__global__ void {0}(float *m) {{"
        " __shared__ float s[32]; s[threadIdx.x % 32] = 0; {1}; m[0] = s[0]; }}"
    )
    summed = memsim.load(source.format("summed", "atomicAdd(s + threadIdx.x % 2, 1.0f)"))["summed"]
    unknown = memsim.analyze(summed, 1, 64, ["f32[32]"])
    assert unknown.wavefronts is None and unknown.sectors == 2
    # one warp: a store, 16 rounds of a load and two passes of a compare-and-swap, a load
    assert memsim.analyze(summed, 1, 32, ["f32[32]"]).wavefronts == 1 + 16 * 3 + 1
    stored = memsim.load(source.format("stored", "s[threadIdx.x % 2] = 1.0f"))["stored"]
    assert memsim.analyze(stored, 1, 32, ["f32[32]"]).wavefronts == 3


@pytest.mark.some(1)
@pytest.mark.parametrize(("analyzed", "title"), [("index math", "bank"), ("global", "sector")])
def test_plot_itself_draws_what_is_worst(analyzed: str, title: str) -> None:
    if analyzed == "global":
        analysis = memsim.global_access([[128 * lane for lane in range(32)]], 4).analysis
    else:
        analysis = WAYS[analyzed]()
    written = [each.get_text() for axes in analysis.plot().axes for each in axes.texts]
    written += [axes.get_xlabel() + axes.get_title(loc="left") for axes in analysis.plot().axes]
    assert any(title in text for text in written)


def python(code: str, given: bytes = b"") -> bytes:
    """What a fresh interpreter prints."""
    return subprocess.run([sys.executable, "-c", code], input=given, capture_output=True, check=True).stdout


@pytest.mark.slow
def test_an_analysis_of_another_process_shows_itself() -> None:
    here = memsim.catalog()["transpose_naive"].analyze(SIZE)
    made = f"analysis = memsim.catalog()['transpose_naive'].analyze({SIZE})"
    there = python(f"import memsim, pickle, sys; {made}; sys.stdout.buffer.write(pickle.dumps(analysis))")
    assert str(pickle.loads(there)) == str(here)
    printed = python("import pickle, sys; print(pickle.load(sys.stdin.buffer))", pickle.dumps(here))
    assert printed.decode().rstrip() == str(here)
