"""The machine code beside the source: counts are the records, rows and lines pair up, folds hide nothing."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from memsim.analysis import Analysis, InstructionCounts, analyze_trace
from memsim.trace.trace import Trace
from memsim.trace.trace_data import Origin
from memsim.views.report import report_page
from memsim.views.report.source_view import (
    INSTRUCTIONS_AROUND,
    LEAST_FOLD,
    MOST,
    MOST_TOUCHING,
    SHORT,
    ListingView,
    files,
    listing_view,
)
from tests.traces import LANES, Request, make_trace, site
from tests.views.cases import COLLIDE, kernel, mixed
from tests.views.report.test_page import PAGE_BYTES, Element, read

FIELDS = ("requests", "wavefronts", "max_ways", "sectors")
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)> a < b & c"


def small(**fields: object) -> Trace:
    """Two memory instructions of one line, one of another, arithmetic, and an instruction of a header."""
    store = site(op="store", line=2, address=0x20, instruction="STS [R1], R2")
    again = site(op="store", line=2, address=0x30, instruction="STS [R1+0x200], R3")
    load = site(space="global", line=4, array="A", address=0x40, instruction="LDG.E R2, [R4.64]")
    listing = (
        (0x00, "S2R R0, SR_TID.X", "kernel.cu", 2),
        (0x10, "HADD2 R1, R1, R2", "cuda_fp16.hpp", 7),
        (0x20, "STS [R1], R2", "kernel.cu", 2),
        (0x30, "STS [R1+0x200], R3", "kernel.cu", 2),
        (0x40, "LDG.E R2, [R4.64]", "kernel.cu", 4),
        (0x50, "FADD R2, R2, R3", "kernel.cu", 1),
        (0x60, "EXIT", "", 0),
    )
    return make_trace(
        (store, [Request(COLLIDE, count=3)]),
        (again, [Request(LANES * 4, count=1200)]),
        (load, [Request(LANES * 128)]),
        **({"listing": listing} | fields),
    )


def long(count: int, every: int) -> Analysis:
    """A kernel of `count` instructions, of which each so many-th conflicts."""
    accesses, rows = [], []
    for i in range(count):
        text, line = (
            (f"LDS R{i % 9}, [R1]", 3) if i % every == 0 else (f"FFMA R{i % 9}, R1, R2, R3", 1 + i % 4)
        )
        rows.append((16 * i, text, "kernel.cu", line))
        if i % every == 0:
            accesses.append((site(address=16 * i, instruction=text), [Request(LANES * 8, count=i + 1)]))
    return analyze_trace(make_trace(*accesses, listing=tuple(rows)))


def of(analysis: Analysis) -> ListingView:
    made = listing_view(analysis, files(analysis))
    assert made is not None
    return made


def rows_of(page: Element) -> list[Element]:
    (pane,) = page.all("div", class_="listing")
    return pane.all("a")


def shown(row: Element) -> dict[str, str]:
    """What a row's numbers say, by the row of the analysis and the field."""
    parts = [part for part in row.all("span") if "data-site" in part.attributes]
    return {
        f"{part.attributes['data-site']} {number.attributes['data-field']}": number.text
        for part in parts
        for number in part.all("b")
    }


def check_counts(text: str, analysis: Analysis) -> None:
    """The numbers of every instruction are those of the records, and no other instruction has any."""
    expected: dict[str, dict[str, str]] = {}

    def add(number: int, one: InstructionCounts) -> None:
        values = {name: getattr(one.counts, name) for name in FIELDS}
        known = {f"{number} {name}": f"{value:,}" for name, value in values.items() if value is not None}
        expected.setdefault(f"#at-{one.address:x}", {}).update(known)

    for number, instructions in enumerate(analysis.instructions):
        for one in instructions:
            add(number, one)
    found = {row.attributes["href"]: shown(row) for row in rows_of(read(text))}
    assert {at: numbers for at, numbers in found.items() if numbers} == expected


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["kernel_v4_colmajor", "kernel_v1", "ada_decoupled", "sgemm_tuned"])
def test_the_counts_are_those_of_the_instructions(name: str) -> None:
    analysis = kernel(name)
    assert any(analysis.instructions)
    check_counts(report_page(analysis), analysis)


def test_a_wrong_number_would_be_found() -> None:
    analysis = analyze_trace(small())
    text = report_page(analysis)
    check_counts(text, analysis)
    for right in ('"wavefronts">1,200<', '"requests">3<', '"max_ways">2<', '"sectors">32<'):
        place = text.index('<div class="listing"')
        assert text.count(right, place, text.index('id="details"')) == 1, right
        wrong = text[:place] + text[place:].replace(right, right.replace("2", "7").replace("3", "8"), 1)
        with pytest.raises(AssertionError):
            check_counts(wrong, analysis)


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["kernel_v4_colmajor", "ada_decoupled"])
def test_rows_and_lines_pair_up(name: str) -> None:
    analysis = kernel(name)
    page = read(report_page(analysis))
    (source,) = page.all("div", class_="source")
    lines = {a.attributes["href"].removeprefix("#line-"): a for a in source.all("a")}
    rows = rows_of(page)
    paths = [file.path for file in files(analysis)]
    assert len(rows) == len(analysis.trace.listing) > SHORT
    made: Counter[str] = Counter()
    for row, (address, text, file, line) in zip(rows, analysis.trace.listing, strict=True):
        assert row.attributes["href"] == f"#at-{address:x}"
        assert row.all("code")[0].text == text
        key = row.attributes.get("data-line")
        if file in paths:
            assert key == f"{paths.index(file)}-{line}"
            assert lines[key].all("span", class_="n")[0].text == str(line)
            made[key] += 1
        else:
            assert key is None
    counted = {key: int(a.attributes["data-instructions"]) for key, a in lines.items()}
    assert {key: count for key, count in counted.items() if count} == dict(made)
    for row in rows:
        for number in row.attributes.get("data-sites", "").split():
            here = analysis.sites[int(number)]
            assert row.attributes["data-line"] == f"{paths.index(here.file)}-{here.line}"
            assert number in lines[row.attributes["data-line"]].attributes["data-sites"].split()


def test_the_heat_of_instructions_is_their_own() -> None:
    page = read(report_page(analyze_trace(small())))
    marks = {row.attributes["href"]: row.all("span", class_="mark") for row in rows_of(page)}
    assert {at: (m[0].text, m[0].attributes["data-heat"]) for at, m in marks.items() if m} == {
        "#at-20": ("2-way conflict", "2.0"),
        "#at-30": ("clean", "1.0"),
        "#at-40": ("8x sectors", "8.0"),
    }
    assert "style" in marks["#at-20"][0].attributes and "style" not in marks["#at-30"][0].attributes
    (source,) = page.all("div", class_="source")
    assert [m.text for m in source.all("span", class_="mark")] == [
        *("1 instruction", "2-way conflict", "", "8x sectors"),
    ]


def test_instructions_of_no_line_that_is_shown_are_grey_and_say_where_they_are_from() -> None:
    page = read(report_page(analyze_trace(small())))
    (pane,) = page.all("div", class_="listing")
    aside = {li.all("a")[0].attributes["href"]: li for li in pane.all("li", class_="aside")}
    assert list(aside) == ["#at-10", "#at-60"]
    assert aside["#at-10"].all("em")[0].text == "of cuda_fp16.hpp:7"
    assert aside["#at-60"].all("em") == []


def test_machine_code_that_names_no_line_stands_beside_a_word_about_it() -> None:
    trace = small()
    trace = dataclasses.replace(
        trace,
        sites=tuple(dataclasses.replace(one, file="", line=0) for one in trace.sites),
        listing=tuple((address, text, "", 0) for address, text, _, _ in trace.listing),
    )
    analysis = analyze_trace(trace)
    page = read(report_page(analysis))
    assert "The machine code does not say which lines it was made of." in [p.text for p in page.all("p")]
    assert [row.attributes.get("data-line") for row in rows_of(page)] == [None] * 7
    check_counts(report_page(analysis), analysis)


def test_what_is_not_known_is_no_number() -> None:
    trace = small()
    unknown = dataclasses.replace(trace.sites[0], unresolved="it depends on a call")
    page = read(report_page(analyze_trace(dataclasses.replace(trace, sites=(unknown, *trace.sites[1:])))))
    (row,) = (row for row in rows_of(page) if row.attributes["href"] == "#at-20")
    assert row.all("span", class_="mark")[0].text == "not analyzed"
    assert set(shown(row).values()) == {"?"}


def test_a_fold_hides_no_access_and_says_how_much_it_hides() -> None:
    made = of(long(1000, 100))
    assert sum(stretch.count for stretch in made.stretches) == made.count == 1000
    assert made.touching == 10
    folded = [stretch for stretch in made.stretches if stretch.folded]
    assert [(s.first // 16, s.count) for s in folded] == [
        (100 * i + INSTRUCTIONS_AROUND + 1, 99 - 2 * INSTRUCTIONS_AROUND) for i in range(9)
    ] + [(900 + INSTRUCTIONS_AROUND + 1, 99 - INSTRUCTIONS_AROUND)]
    assert all(len(s.rows) == s.count and not any(row.costs for row in s.rows) for s in folded)
    page = read(report_page(long(1000, 100)))
    assert any(one.text.startswith("... 93 instructions, 0040 to 0600") for one in page.all("summary"))


def test_short_kernels_and_small_gaps_are_not_folded() -> None:
    assert [s.folded for s in of(long(SHORT, SHORT)).stretches] == [False]
    assert [s.folded for s in of(long(SHORT + 1, SHORT + 1)).stretches] == [False, True]
    assert len(of(long(10 * SHORT, 2 * INSTRUCTIONS_AROUND + LEAST_FOLD)).stretches) == 1
    assert len(of(long(10 * SHORT, 2 * INSTRUCTIONS_AROUND + LEAST_FOLD + 1)).stretches) > 1


@pytest.mark.some(2)
@pytest.mark.parametrize(("count", "every"), [(10_000, 40), (MOST, 3), (3 * MOST, 300), (2 * MOST, 2)])
def test_a_very_long_kernel_stays_small(count: int, every: int) -> None:
    analysis = long(count, every)
    made = of(analysis)
    assert made.count == count == sum(stretch.count for stretch in made.stretches)
    rows = [row for stretch in made.stretches for row in stretch.rows]
    touching = [row.address // 16 for row in rows if row.costs]
    assert len(rows) <= MOST
    assert len(touching) == min(-(-count // every), MOST_TOUCHING)
    assert touching[-1] == (count - 1) // every * every  # the worst is the last
    text = report_page(analysis)
    assert len(text.encode()) < PAGE_BYTES
    whole = count <= MOST and count // every <= MOST_TOUCHING
    assert (len(rows) == count) == whole == (", left out of this page" not in text)


def test_no_text_of_the_source_or_the_machine_code_is_markup() -> None:
    trace = small(sources={"kernel.cu": f"{EVIL}\n{EVIL}\nx\n{EVIL}"})
    rows = tuple(
        (address, EVIL, "evil<b>.h" if not line else file, 1) for address, _, file, line in trace.listing
    )
    trace = dataclasses.replace(
        trace, listing=rows, sites=tuple(dataclasses.replace(s, instruction=EVIL) for s in trace.sites)
    )
    page = read(report_page(analyze_trace(trace)))
    assert page.all("img") == []
    assert [row.all("code")[0].text for row in rows_of(page)] == [EVIL] * len(rows)
    (source,) = page.all("div", class_="source")
    assert source.all("a")[0].all("span")[-1].text == EVIL
    assert rows_of(page)[-1].all("em")[0].text == "of evil<b>.h:1"
    assert all("alert" not in s.text or "json" in s.attributes.get("type", "") for s in page.all("script"))


def test_without_a_listing_the_page_has_the_source_alone() -> None:
    for analysis in (mixed(), analyze_trace(dataclasses.replace(small(), listing=()))):
        text = report_page(analysis)
        page = read(text)
        assert listing_view(analysis, files(analysis)) is None
        assert page.all("div", class_="listing") == page.all("p", id="pair") == []
        assert [h2.text for h2 in page.all("h2", id="source")] == ["Source"]
        assert len(page.all("script")) == 2
        (source,) = page.all("div", class_="source")
        assert all("data-sites" in a.attributes for a in source.all("a"))


def test_the_page_says_what_was_read_and_what_is_not_certain() -> None:
    origin = Origin("machine code", "sm_90", "NVRTC 12.0.140", "0")
    page = read(report_page(analyze_trace(small(origin=origin, uncertain=("a loop <waits>", "another")))))
    told = [p.text for p in page.all("p")]
    assert "Code: machine code of sm_90, made by NVRTC 12.0.140." in told
    assert [text for text in told if text.startswith("Not certain")] == [
        *("Not certain: a loop <waits>", "Not certain: another"),
    ]
    silent = [p.text for p in read(report_page(analyze_trace(small()))).all("p")]
    assert not any(text.startswith(("Read", "Not certain")) for text in silent)
