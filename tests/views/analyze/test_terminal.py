"""The report for people: what stands where, and that no number is ever cut."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

import pytest

from memsim.analysis import analyze_trace
from memsim.launch import Launch
from memsim.trace.trace_data import AccessSite
from memsim.views.analyze import terminal as text
from tests.traces import LANES, Request, make_trace, site
from tests.views.cases import Terminal

LOAD = (site(), [Request(LANES * 4, count=10)])
STORE = (site(op="store", line=2), [Request(LANES * 8, count=123_456_789)])
READ = (site(space="global", line=4, array="A"), [Request(LANES * 128, count=2), Request(LANES * 4)])
UNKNOWN = (site(space="global", line=4, array="B", unresolved="it depends on a call"), [])


def lines(*accesses: tuple[AccessSite, Sequence[Request]], **fields: Any) -> list[str]:
    stream = io.StringIO()
    text.write(analyze_trace(make_trace(*accesses, **fields)), stream)
    return stream.getvalue().splitlines()


def row(*accesses: tuple[AccessSite, Sequence[Request]]) -> list[str]:
    """The cells of the first row of the first table."""
    return re.split(r"  +", lines(*accesses)[4].strip())


def test_the_first_line_is_the_verdict() -> None:
    assert lines(STORE, READ)[0] == analyze_trace(make_trace(STORE, READ)).verdict


def test_each_memory_space_has_a_table_with_its_own_counts() -> None:
    report = lines(STORE, READ)
    assert report[2] == (
        "Shared memory (kernel.cu): 246,913,578 wavefronts in 123,456,789 requests; "
        "123,456,789 (50.0 %) are bank conflicts"
    )
    assert report[3].split() == [
        "line",
        "code",
        "access",
        "array",
        *["requests", "wavefronts", "ideal", "ways", "share"],
    ]
    assert row(STORE) == [
        *("2", "tile[i] = 1;", "store 4 B", "tile", "123,456,789"),
        *("246,913,578", "123,456,789", "2", "100 %"),
    ]
    assert report[6] == "Global memory (kernel.cu): 68 sectors in 3 requests; 56 (82.4 %) are not needed"
    assert report[7].split()[4:] == ["requests", "sectors", "sectors/req", "ideal/req", "share"]
    assert row(READ) == ["4", "out[i] = x;", "load 4 B", "A", "3", "68", "22.67", "4", "100 %"]


def test_what_wastes_nothing_says_so() -> None:
    assert lines(LOAD)[2] == "Shared memory (kernel.cu): 10 wavefronts in 10 requests; no bank conflicts"
    coalesced = (site(space="global", line=4, array="A"), [Request(LANES * 4)])
    assert lines(coalesced)[2] == "Global memory (kernel.cu): 4 sectors in 1 request; all are needed"


def test_an_unresolved_row_is_marked_and_explained() -> None:
    assert row(UNKNOWN)[4:] == ["?"] * 5
    report = lines(UNKNOWN)
    assert report[2] == "Global memory (kernel.cu): no access could be counted"
    assert lines(UNKNOWN, READ)[2].endswith("are not needed (1 of 2 accesses not counted)")
    assert "Not analyzed: the global load at kernel.cu:4: it depends on a call" in report
    assert ["memory_l1_tag_requests_global", "not", "known"] in with_metrics(UNKNOWN)
    assert not any("Not analyzed" in line or "not known" in line for line in lines(READ))


def with_metrics(*accesses: tuple[AccessSite, Sequence[Request]]) -> list[list[str]]:
    stream = io.StringIO()
    text.write(analyze_trace(make_trace(*accesses)), stream, metrics=True)
    return [line.split() for line in stream.getvalue().splitlines()]


def test_totals_under_the_names_of_ncu_when_they_are_asked_for() -> None:
    metric = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
    assert [metric, "246,913,578"] in with_metrics(STORE)
    assert ["the", "others", "(17)", "0"] in with_metrics(STORE)
    assert not any(metric in line for line in lines(STORE))


@pytest.mark.parametrize(
    ("sort", "order"), [("cost", ["2", "1", "3"]), ("waste", ["1", "2", "3"]), ("line", ["1", "2", "3"])]
)
def test_the_order_of_the_rows(sort: text.Sort, order: list[str]) -> None:
    conflicting = (site(line=1), [Request(LANES * 8, count=3)])
    costly = (site(line=2), [Request(LANES * 4, count=10)])
    cheap = (site(line=3), [Request(LANES * 4, count=1)])
    stream = io.StringIO()
    text.write(analyze_trace(make_trace(conflicting, costly, cheap)), stream, sort=sort)
    rows = stream.getvalue().splitlines()[4:7]
    assert [line.split()[0] for line in rows] == order


def test_the_last_line_says_what_is_left_out() -> None:
    assert lines(LOAD)[-1] == "Not modelled in these counts: arbitration between warps, caches."
    assert lines(LOAD, notes=("local memory (3 accesses)",))[-1] == (
        "Not modelled in these counts: arbitration between warps, caches, local memory (3 accesses)."
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
        line.startswith(f"{excess} shared wavefronts above the ideal are not bank conflicts")
        for line in report
    )
    assert any("up to 2 or 4 wavefronts a request without any conflict" in line for line in report)
    assert not any("above" in line for line in lines(LOAD))


def test_files_of_the_same_name_are_told_apart() -> None:
    one, other = site(file="a/kernel.cu"), site(file="b/kernel.cu", op="store")
    report = "\n".join(lines((one, []), (other, [])))
    assert "a/kernel.cu:3" in report
    assert "b/kernel.cu:3" in report
    assert "a/" not in "\n".join(lines((one, [])))


LONG = "float value = tile[threadIdx.y * 33 + threadIdx.x] + [bold]more[/bold];"


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (20, ["line", "code", "access", "wavefronts", "ways", "share"]),
        (80, ["line", "code", "access", "array", "wavefronts", "ideal", "ways", "share"]),
        (100, ["line", "code", "access", "array", "requests", "wavefronts", "ideal", "ways", "share"]),
        (300, ["line", "code", "access", "array", "requests", "wavefronts", "ideal", "ways", "share"]),
    ],
)
@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["terminal", "pipe"])
def test_a_table_fits_by_leaving_out_columns_and_cutting_code(
    width: int, columns: list[str], stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    trace = make_trace(STORE, (site(line=1), [Request(LANES * 4)]), sources={"kernel.cu": f"{LONG}\nx;"})
    stream.seek(0)
    stream.truncate()
    text.write(analyze_trace(trace), stream)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()

    assert (stream.getvalue() == "\n".join(plain) + "\n") != stream.isatty()  # colours on a terminal
    first = next(number for number, line in enumerate(plain) if line.split()[:1] == ["line"])
    heading, costly, cheap = plain[first : first + 3]
    assert heading.split() == columns
    cells = re.split(r"  +", costly.strip())
    assert [cells[columns.index(name)] for name in COUNTS if name in columns] == [
        count for name, count in COUNTS.items() if name in columns
    ]
    assert (LONG in cheap) == (width == 300)
    if width >= 80:
        assert max(map(len, (heading, costly, cheap))) <= width


def test_a_tab_in_code_breaks_no_row() -> None:
    code = "\t".join(["x;"] * 12)
    found = lines((site(line=1), [Request(LANES * 4)]), sources={"kernel.cu": code})[4]
    assert found.split()[1:13] == ["x;"] * 12


COUNTS = {"requests": "123,456,789", "wavefronts": "246,913,578", "ideal": "123,456,789", "ways": "2"}


def test_a_pipe_of_no_known_width_gets_100_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    report = lines(STORE, (site(line=1), []), sources={"kernel.cu": f"{LONG}\n"})
    assert max(map(len, report[3:6])) == 100
    assert LONG[:20] in report[5]
    assert not any("\x1b" in line for line in report)


def test_spills_local_arrays_and_constants_have_tables_of_their_own() -> None:
    stack = LANES * 0 + 8
    store = (site(space="local", op="store", line=2, array="spills", instructions=10), [Request(stack, 10)])
    load = (site(space="local", width=8, line=4, array="spills", instructions=5), [Request(stack, 5)])
    report = lines(store, load)
    assert report[0].endswith("registers spill to local memory: 80 sectors")
    assert report[2] == ("Spilled registers (kernel.cu): 80 sectors in 20 requests; 5 loads and 10 stores")
    cells = [re.split(r"  +", line.strip()) for line in report[4:6]]
    assert [one[2:] for one in cells] == [
        ["spill store 4 B", "spills", "10", "40", "4", "4", "50.0 %"],
        ["spill load 8 B", "spills", "10", "40", "4", "4", "50.0 %"],
    ]
    array = (site(space="local", line=2, array="local memory"), [Request(LANES * 4, 2)])
    report = lines(array, store)
    assert report[0].endswith("local memory is used: 104 sectors, 56 of them not needed")
    assert report[2] == "Local memory (kernel.cu): 104 sectors in 12 requests; 56 (53.8 %) are not needed"
    table = (site(space="constant", line=3, array="", instructions=3), [Request(LANES % 8 * 4, 3)])
    report = lines(table)
    assert report[2] == (
        "Constants at an index (kernel.cu): 24 requests of 3 loads, one for each different address"
    )
    heading = ["line", "code", "access", "instructions", "requests", "requests/instr", "share"]
    assert report[3].split() == heading
    assert re.split(r"  +", report[4].strip())[2:] == ["load 4 B", "3", "24", "8", "100 %"]


def test_of_a_long_table_the_rows_that_cost_and_that_waste_most() -> None:
    """Row 100 costs least and has the only conflict; what is left out is counted."""
    clean = [(site(line=n), [Request(range(0, 128, 4), count=200 - n)]) for n in range(1, 100)]
    analysis = analyze_trace(make_trace(*clean, (site(line=100), [Request(range(0, 256, 8))])))
    told = text.render(analysis).splitlines()
    shown = [line.split()[0] for line in told if line.strip()[:1].isdigit()]
    assert shown == [*map(str, range(1, 40)), "100"]
    left, total = sum(range(101, 161)), sum(range(101, 200)) + 2
    part = f"{left / total:.1%}".replace("%", " %")
    assert f"and 60 more rows, all ideal, with {part} of the wavefronts (--every-row shows them)" in told
    stream = io.StringIO()
    text.write(analysis, stream, colours=False, every_row=True)
    every = stream.getvalue().splitlines()
    assert len([line for line in every if line.strip()[:1].isdigit()]) == 100
    assert not any("more row" in line for line in every)
