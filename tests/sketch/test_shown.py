"""What takes an analysis takes that of index math and of plain addresses: pictures, explanations, tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import memsim
from memsim import GlobalArray, Layout, SharedArray
from memsim.analysis import Analysis
from memsim.pictures.array_layouts import layouts
from memsim.sketch import Thread
from memsim.trace.trace import Trace

XOR = SharedArray("tile", Layout.xor(32, 32))
PADDED = SharedArray("tile", Layout.padded(32, 32))


def transpose(t: Thread, tile: SharedArray) -> None:
    tile[t.y, t.x].store()
    t.sync()
    tile[t.x, t.y].load()


@pytest.fixture
def conflict() -> Analysis:
    return memsim.analyze(transpose, block=(32, 32), args=[SharedArray("tile", (32, 32))])


def test_the_verdict_names_the_line_of_python(conflict: Analysis) -> None:
    line = transpose.__code__.co_firstlineno + 3
    assert f"worst is the load at test_shown.py:{line}: 32-way bank conflict" in conflict.verdict
    site = conflict.sites[1]
    assert (site.source, site.line, site.array) == ("tile[t.x, t.y].load()", line, "tile")
    text = str(conflict)
    assert "tile[t.x, t.y].load()" in text
    assert "Code: index math in Python, each access a request as written" in text


def test_heatmap_and_explain_show_themselves(conflict: Analysis) -> None:
    heatmap = conflict.heatmap()
    assert "32!" in str(heatmap)
    assert repr(heatmap) == str(heatmap)
    assert "<svg" in heatmap._repr_html_() or "<table" in heatmap._repr_html_()
    both = str(conflict.heatmap(memsim.analyze(transpose, block=(32, 32), args=[XOR])))
    assert "conflict-free" in both
    line = transpose.__code__.co_firstlineno + 1
    assert "No bank conflict" in str(conflict.explain(line))
    assert "No bank conflict" in str(conflict.explain(f"test_shown.py:{line}"))
    assert "32-way bank conflict" in str(conflict.explain())
    assert "32-way bank conflict" in str(conflict.explain(site=1))
    assert conflict.explain()._repr_html_().startswith("<pre>")


def test_elements_are_named_by_the_layout() -> None:
    conflicts = SharedArray("tile", Layout.xor(32, 32, chunk=4))
    text = str(memsim.analyze(transpose, block=(32, 32), args=[conflicts]).explain())
    assert "tile[0][0] (lane 0) | tile[8][0] (lane 8)" in text
    half = memsim.analyze(lambda t: SharedArray("h", (32, 64), "f16")[t.x, 0].load(), block=32)
    assert "h[0][0] (lane 0) | h[1][0] (lane 1)" in str(half.explain())
    wide = memsim.analyze(lambda t: GlobalArray("a", (32, 64))[t.x, 0].load(), block=32)
    assert "a + 7,936 B" in str(wide.explain())


def test_the_layout_of_an_array_has_rows_of_its_stride() -> None:
    (tile,) = layouts(memsim.analyze(transpose, block=(32, 32), args=[PADDED]))
    assert (tile.declared, tile.bank.shape) == (True, (32, 33))
    assert tile.writer[1, :4].tolist() == [32, 33, 34, 35]
    assert tile.writer[0, 32] == -1  # padding
    (swizzled,) = layouts(memsim.analyze(transpose, block=(32, 32), args=[XOR]))
    assert swizzled.writer[1, :4].tolist() == [33, 32, 35, 34]
    morton = SharedArray("tile", Layout.z_order(32, 32))
    (curve,) = layouts(memsim.analyze(transpose, block=(32, 32), args=[morton]))
    assert (curve.declared, curve.bank.shape) == (False, (32, 32))


@pytest.mark.slow
def test_the_page_the_figures_and_the_schema(conflict: Analysis, tmp_path: Path) -> None:
    conflict.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "tile[t.x, t.y].load()" in page
    assert "index math in Python" in page
    assert conflict.plot.heatmap().axes
    assert conflict.plot.lanes().axes
    assert "32 rows" in conflict.layout("tile").text
    assert conflict.to_dict()["code"]["form"].startswith("index math in Python")
    with pytest.raises(memsim.MemsimError, match="cannot write it"):
        conflict.report(tmp_path / "no" / "report.html")


def test_a_saved_trace_keeps_the_layouts(conflict: Analysis, tmp_path: Path) -> None:
    trace = memsim.analyze(transpose, block=(32, 32), args=[XOR]).trace
    trace.save(tmp_path / "t.npz")
    again = Trace.load(tmp_path / "t.npz")
    assert again.layouts == trace.layouts
    assert str(again.layouts["tile"].layout) == "Sw<5,0,5> o (32,32):(32,1)"
    assert (again.origin, again.sources) == (trace.origin, trace.sources)


@pytest.mark.slow
def test_the_table_of_pandas(conflict: Analysis) -> None:
    table = conflict.to_pandas()
    assert table["wavefronts"].tolist() == [32, 1024]
    assert table["sectors"].isna().all()
    assert str(table["wavefronts"].dtype) == "Int64"
    assert table["wavefronts_per_request"].tolist() == [1, 32]
    assert table["excess"].tolist() == [0, 992]
    assert table["share"].tolist() == [32 / 1056, 1024 / 1056]
    assert list(table["array"]) == ["tile", "tile"]
    heavy = "import memsim, sys; memsim.shared_access; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_without_pandas_it_says_what_to_install(conflict: Analysis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(memsim.MemsimError, match="pandas is not installed"):
        conflict.to_pandas()


def test_plain_addresses_give_the_same_pictures() -> None:
    addresses = np.array([[lane * 128 for lane in range(32)], [lane * 4 for lane in range(32)]])
    access = memsim.shared_access(addresses, 4)
    assert access.wavefronts.tolist() == [32, 1]
    site = access.analysis.sites[0]
    assert (site.requests, site.wavefronts, site.max_ways) == (2, 33, 32)
    assert site.source == "access = memsim.shared_access(addresses, 4)"
    assert "32!" in str(access.heatmap())
    assert "lane 1: word 0 and word 32" in str(access.explain())
    wide = memsim.global_access(addresses, 4, active=addresses < 1024)
    assert wide.sectors.tolist() == [8, 4]
    assert (wide.analysis.sites[0].sectors, wide.analysis.sites[0].requests) == (12, 2)
    assert "8 sectors" in str(wide.explain())


@pytest.mark.parametrize(("op", "width"), [("cp_async", 4), ("ldmatrix", 16), ("atomic", 4), ("store", 8)])
def test_plain_addresses_of_every_kind_count_alike(op: str, width: int) -> None:
    rng = np.random.default_rng(3)
    addresses = rng.integers(0, 64, (5, 7, 32)) * width
    active = rng.random((5, 7, 32)) < 0.7
    access = memsim.shared_access(addresses, width, op, active)
    assert access.wavefronts.shape == (5, 7)
    (site,) = access.analysis.sites
    assert site.wavefronts == access.wavefronts.sum()
    assert site.conflicts == access.conflicts.sum()


def test_the_names_complete() -> None:
    assert set(dir(memsim)) == set(memsim.__all__)
    assert {"SharedArray", "GlobalArray", "Layout", "Swizzle", "analyze"} <= set(dir(memsim))
    for name in dir(memsim):
        assert getattr(memsim, name) is not None
