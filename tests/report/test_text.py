"""The report for people: what stands where, and that no number is ever cut."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

import pytest

from memsim.analysis import analyze_trace
from memsim.launch import Launch
from memsim.report import text
from memsim.trace.trace import AccessSite
from tests.traces import LANES, Request, make_trace, site

LOAD = (site(), [Request(LANES * 4, count=10)])
STORE = (site(op="store", line=2), [Request(LANES * 8, count=123_456_789)])
READ = (site(space="global", line=4, array="A"), [Request(LANES * 128, count=2), Request(LANES * 4)])
UNKNOWN = (site(space="global", line=4, array="B", unresolved="it depends on a call"), [])


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def lines(*accesses: tuple[AccessSite, Sequence[Request]], **fields: Any) -> list[str]:
    stream = io.StringIO()
    text.write(analyze_trace(make_trace(*accesses, **fields)), stream)
    return stream.getvalue().splitlines()


def row(*accesses: tuple[AccessSite, Sequence[Request]]) -> list[str]:
    """The cells of the first row of the table."""
    return re.split(r"  +", lines(*accesses)[3].strip())


def test_the_first_line_is_the_verdict() -> None:
    assert lines(STORE, READ)[0] == analyze_trace(make_trace(STORE, READ)).verdict


def test_a_row_has_place_code_access_array_and_counts() -> None:
    heading = re.split(r"  +", lines(STORE)[2])
    assert heading == [
        *("where", "code", "access", "array", "requests"),
        *("wavefronts", "ideal", "ways", "sectors/req", "ideal/req"),
    ]
    assert row(STORE) == [
        *("kernel.cu:2", "tile[i] = 1;", "shared store 4 B", "tile", "123,456,789"),
        *("246,913,578", "123,456,789", "2", "-", "-"),
    ]
    assert row(READ) == [
        *("kernel.cu:4", "out[i] = x;", "global load 4 B", "A", "3", "-", "-", "-", "22.67", "4"),
    ]


def test_an_unresolved_row_is_marked_and_explained() -> None:
    assert row(UNKNOWN)[4:] == ["?"] * 6
    report = lines(UNKNOWN)
    assert "Not analyzed: the global load at kernel.cu:4: it depends on a call" in report
    assert any(line.split() == ["memory_l1_tag_requests_global", "not", "known"] for line in report)
    assert not any("Not analyzed" in line or "not known" in line for line in lines(READ))


def test_totals_stand_under_the_names_of_ncu() -> None:
    report = [line.split() for line in lines(STORE)]
    assert ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", "246,913,578"] in report
    assert ["the", "others", "(12)", "0"] in report


def test_the_last_line_says_what_is_left_out() -> None:
    assert lines(LOAD)[-1] == "Left out: arbitration between warps, caches, time."
    assert lines(LOAD, notes=("local memory (3 accesses)",))[-1] == (
        "Left out: arbitration between warps, caches, time, local memory (3 accesses)."
    )


def test_the_launch_is_told() -> None:
    report = lines(LOAD, launch=Launch((8, 4, 1), (16, 16, 1), 1024), blocks_replayed=3)
    assert (
        "Launch: grid (8,4,1), block (16,16,1), 1,024 B dynamic shared memory, 3 of 32 blocks replayed, "
        "rules of sm_90; warp 0 lanes = threads (0..15,0..1,0)"
    ) in report


def threads_of_warp_0(block: tuple[int, int, int]) -> str:
    launch = next(line for line in lines(LOAD, launch=Launch((2, 1, 1), block)) if line.startswith("Launch"))
    return launch.partition("threads ")[2]


@pytest.mark.parametrize(
    ("block", "threads"),
    [
        ((32, 1, 1), "(0..31,0,0)"),
        ((256, 1, 1), "(0..31,0,0)"),
        ((16, 16, 1), "(0..15,0..1,0)"),
        ((1, 64, 1), "(0,0..31,0)"),
        ((4, 4, 4), "(0..3,0..3,0..1)"),
        ((2, 2, 2), "(0..1,0..1,0..1)"),
        ((5, 1, 1), "(0..4,0,0)"),
        ((1, 1, 1), "(0,0,0)"),
        ((24, 2, 1), "(0,0,0) to (7,1,0), x first, then y"),
        ((3, 3, 9), "(0,0,0) to (1,1,3), x first, then y"),
        ((16, 1, 3), "(0..15,0,0..1)"),
    ],
)
def test_the_lanes_of_warp_0(block: tuple[int, int, int], threads: str) -> None:
    assert threads_of_warp_0(block) == threads


def test_wavefronts_that_are_no_conflicts_are_not_called_so() -> None:
    halves = (site(width=16), [Request(LANES // 16 * 16, count=7), Request(LANES // 4 * 16, count=2)])
    scattered = (site(width=16), [Request((LANES * 7 % 32 // 4) * 16, count=5)])
    report = lines(halves, scattered)
    excess = analyze_trace(make_trace(halves, scattered)).excess_wavefronts
    assert excess > 0
    assert report[0].startswith("kernel: conflict-free")
    assert any(
        line.startswith(f"{excess} shared wavefronts above the ideal are no conflicts") for line in report
    )
    assert any("served in up to 2 or 4 groups of lanes" in line for line in report)
    assert not any("above" in line for line in lines(LOAD))


def test_files_of_the_same_name_are_told_apart() -> None:
    one, other = site(file="a/kernel.cu"), site(file="b/kernel.cu", op="store")
    report = "\n".join(lines((one, []), (other, [])))
    assert "a/kernel.cu:3" in report
    assert "b/kernel.cu:3" in report
    assert "a/" not in "\n".join(lines((one, [])))


@pytest.mark.parametrize("width", [20, 80, 100, 120, 300])
def test_on_a_terminal_only_the_code_is_cut(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    code = "float value = tile[threadIdx.y * 33 + threadIdx.x] + more;"
    trace = make_trace(STORE, (site(line=1), [Request(LANES * 4)]), sources={"kernel.cu": f"{code}\n"})
    stream = Terminal()
    text.write(analyze_trace(trace), stream)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()

    assert stream.getvalue() != "\n".join(plain) + "\n"  # colours
    rows = plain[2:5]
    assert [line.split()[-6:-2] for line in rows[1:]] == [
        ["1", "1", "1", "1"],
        ["123,456,789", "246,913,578", "123,456,789", "2"],
    ]
    assert (code in rows[1]) == (width == 300)
    if width >= 120:
        assert max(map(len, rows)) <= width


def test_a_pipe_gets_plain_whole_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    code = "float value = tile[threadIdx.y * 33 + threadIdx.x] + [bold]more[/bold];"
    report = lines((site(line=1), []), sources={"kernel.cu": f"{code}\n"})
    assert any(code in line for line in report)
    assert not any("\x1b" in line for line in report)
