"""Pictures in a terminal: the same numbers as the records, readable without colour and in 80 columns."""

from __future__ import annotations

import io
import re

import pytest

from memsim.analysis import Analysis
from memsim.errors import MemsimError
from memsim.kernels import catalog
from memsim.pictures.bank_use import bank_use
from memsim.pictures.worst_request import GlobalRequest, SharedRequest, conflict_graph, take_apart
from memsim.views.explain import request_text as request
from memsim.views.heatmap import heat_rows as heatmap
from memsim.views.heatmap.heat_rows import heat_rows
from tests.views.cases import Terminal, kernel, mixed


def drawn(*analyses: Analysis, stream: io.StringIO | None = None) -> list[str]:
    stream = stream or io.StringIO()
    heatmap.write(analyses, stream)
    return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()


def banks_of(lines: list[str]) -> int:
    """The line with the numbers of the banks, after the verdict."""
    return lines.index("") + 1


def explained(analysis: Analysis, site: int) -> list[str]:
    stream = io.StringIO()
    request.write(take_apart(analysis, site), stream)
    return stream.getvalue().splitlines()


def cells(line: str, start: int, width: int = 2) -> list[float]:
    """The 32 numbers of `width` columns each."""
    texts = [line[start + width * bank : start + width * (bank + 1)].strip() for bank in range(32)]
    return [0.0 if text in ".+" else float(text) for text in texts]


@pytest.mark.parametrize("name", ["kernel_v4_colmajor", "kernel_v3", "transpose_naive"])
def test_heatmap_cells_are_the_ways_of_the_banks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    analysis = kernel(name)
    lines = drawn(analysis)
    assert " ".join(lines[: lines.index("")]) == analysis.verdict
    start = lines[banks_of(lines)].index("0") - 2
    rows = {int(line.split()[0]): line for line in lines if re.match(r"\d+ +\S+\.cu:\d+ ", line)}
    assert list(rows) == list(bank_use(analysis))
    for number, use in bank_use(analysis).items():
        site = analysis.sites[number]
        assert cells(rows[number], start, 3) == use.worst.tolist()
        marks = [rows[number][start + 3 * bank : start + 3 * bank + 3].strip() for bank in range(32)]
        only = [worst == 0 < ways for worst, ways in zip(use.worst, use.ways, strict=True)]
        assert [mark == "+" for mark in marks] == only
        right = rows[number][start + 96 :].split()
        assert right[0] == f"{site.max_ways}{'!' if site.conflicts else ''}"
        assert float(right[1]) == site.wavefronts / site.requests
        assert site.source[:20] in lines[lines.index(rows[number]) + 1]


def test_a_row_that_was_not_analyzed_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    (line,) = [line for line in drawn(mixed()) if "not analyzed" in line]
    assert line.split()[0] == "5" and line.split()[-2:] == ["?", "?"]


def test_two_kernels_have_the_same_columns() -> None:
    lines = drawn(kernel("kernel_v4"), kernel("kernel_v4_colmajor"))
    headings = [line for line in lines if line.startswith("site ")]
    assert len(headings) == 2 and headings[0] == headings[1]


def test_a_side_without_shared_memory_says_so() -> None:
    lines = drawn(kernel("kernel_v1"), kernel("kernel_v4"))
    assert lines[0].startswith("kernel_v1: ") and lines[2] == "This kernel does not access shared memory."
    assert lines[4].startswith("kernel_v4: ") and lines[4:] == drawn(kernel("kernel_v4"))
    with pytest.raises(MemsimError, match="kernel_v1 and opt_2_naive do not access shared memory"):
        drawn(kernel("kernel_v1"), kernel("opt_2_naive"))


@pytest.mark.parametrize("width", [80, 200])
def test_a_narrow_terminal_cuts_no_cell(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    lines = drawn(kernel("kernel_v4_colmajor"), stream=stream)
    assert "\x1b[" in stream.getvalue()
    wide = 3 if width == 200 else 2
    start = lines[banks_of(lines)].index("0") - wide + 1
    row = next(line for line in lines if line.startswith("2 "))
    assert cells(row, start, wide) == [2.0] * 16 + [0.0] * 16
    assert ("kernel_v4_colmajor.cu:40" in row) == (width == 200)
    assert any("kernel_v4_colmajor.cu:40" in line and "store 4 B s_a" in line for line in lines)
    assert max(map(len, lines)) <= width


def test_numbers_of_two_digits_stay_apart_in_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = drawn(kernel("transpose_naive"))
    first = next(i for i, line in enumerate(lines) if line.startswith("2 "))
    assert lines[first].split() == ["2", "32", *["+"] * 15, "32!"]
    assert lines[first + 1].split() == ["+"] * 16
    assert lines[first + 1].index("+") == lines[first].index("32") + 1
    heading = banks_of(lines)
    ticks = [lines[heading].split()[1:-1], lines[heading + 1].split()]
    assert ticks == [["0", "4", "8", "12"], ["16", "20", "24", "28"]]
    assert max(map(len, lines)) <= 80


def test_nothing_is_said_by_colour_alone() -> None:
    plain = io.StringIO()
    heatmap.write([kernel("kernel_v4_colmajor")], plain)
    assert "\x1b" not in plain.getvalue()
    assert plain.getvalue().count(" 2!") == 4


@pytest.mark.parametrize(
    ("name", "site"), [("kernel_v4_colmajor", 2), ("kernel_v4", 9), ("kernel_v4", 7), ("transpose_naive", 2)]
)
def test_lanes_and_their_wavefronts(name: str, site: int) -> None:
    analysis = kernel(name)
    apart = take_apart(analysis, site)
    assert isinstance(apart, SharedRequest)
    lines = explained(analysis, site)
    heading = next(i for i, line in enumerate(lines) if line.startswith("lane "))
    start = lines[heading].index("0") - 1
    rows = [line for line in lines[heading + 1 :] if re.match(r" *\d+  \(", line)]
    assert len(rows) == 32
    for lane, line in enumerate(rows):
        wanted = {word % 32: float(apart.wavefront[lane]) for word in apart.words(lane)}
        assert cells(line, start) == [wanted.get(bank, 0.0) for bank in range(32)]
        group, wavefront = line[start + 64 :].split()
        assert (int(group), int(wavefront.rstrip("!"))) == (apart.group[lane], apart.wavefront[lane])
    served = [line for line in lines if line.startswith("wavefront ")]
    assert len(served) == min(apart.wavefronts, request.MOST_LINES)
    assert (f"and {apart.wavefronts - request.MOST_LINES} more" in lines) == (apart.wavefronts > len(served))
    text = "\n".join(lines)
    assert ("Words that collide:" in text) == ("was not measured" in text) == bool(apart.conflicts)
    assert ("no two lanes conflict" in text) == (not apart.conflicts)


def test_the_conflict_graph_as_text() -> None:
    apart = take_apart(kernel("transpose_naive"), 2)
    assert isinstance(apart, SharedRequest)
    lines = explained(kernel("transpose_naive"), 2)
    edges = conflict_graph(apart).number_of_edges()
    assert f"Conflict graph of the lanes: {edges} pairs of lanes that conflict." in lines
    assert "  lanes 0-31: in bank 0 (496 pairs)" in lines


def test_idle_lanes_are_idle() -> None:
    number = next(i for i, site in enumerate(mixed().sites) if site.op == "atomic")
    lines = explained(mixed(), number)
    assert lines[0].startswith("4-way bank conflict")
    assert sum(line.endswith("idle") for line in lines) == 28


def test_sectors_of_a_global_request() -> None:
    analysis = mixed()
    numbers = {site.array: number for number, site in enumerate(analysis.sites) if site.space == "global"}
    scattered, near = (take_apart(analysis, numbers[array]) for array in "AB")
    assert isinstance(scattered, GlobalRequest) and isinstance(near, GlobalRequest)
    rows = [line for line in explained(analysis, numbers["A"]) if line.startswith("A + ")]
    assert len(rows) == 32
    assert rows[1].split()[4:] == ["--##------------", *["." * 16] * 3, "1"]
    (row,) = [line for line in explained(analysis, numbers["B"]) if line.startswith("B + ")]
    assert row.split()[4:8] == ["#" * 16] * 4
    assert row.endswith("0-7 | 8-15 | 16-23 | 24-31")


def test_ways_that_are_none_are_not_unknown() -> None:
    rows = {row.site.op: row for row in heat_rows(catalog()["sgemm_tuned"].analyze("128,128,8"))}
    assert (rows["cp_async_cg"].ways, rows["cp_async_cg"].answer) == ("0", "wavefronts not counted")
    assert (rows["load"].ways, rows["load"].answer) == ("1", "clean")
