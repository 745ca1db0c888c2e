"""The pages: their numbers are the records, nothing is fetched, they are bounded, text is only text."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser

import pytest

from memsim.analysis import Analysis, analyze_trace
from memsim.counts import FIELDS
from memsim.errors import MemsimError
from memsim.pictures.array_layouts import layouts
from memsim.pictures.bank_use import bank_use
from memsim.pictures.data_flow import flow
from memsim.views.analyze.costs import worst_site
from memsim.views.report import Recorded, fragment, report_page
from memsim.views.report.access_tables import WORDS, access_tables
from memsim.views.report.page import MOST_ARRAYS, MOST_DETAILS, heatmap_page, request_page
from memsim.views.report.source_view import LINES_AROUND, LONG, files, listing_view
from tests.pictures.test_local_request import ARRAY, SPILL, TABLE
from tests.traces import LANES, Request, make_trace, site
from tests.views.cases import SOURCE, kernel, many, mixed

VOID = {"meta", "link", "br", "rect", "path", "circle", "stop", "wbr", "input"}
PAGE_BYTES = 4_000_000


class Element:
    """A tag with its attributes, its text and its children."""

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag, self.attributes = tag, attributes
        self.text = ""
        self.children: list[Element] = []
        self.content: list[Element | str] = []

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """Elements below with these attributes; `class_` for a class among others."""
        wanted = attributes.pop("class_", None)
        found = [child for child in self.children if child.tag == tag]
        found = [one for one in found if attributes.items() <= one.attributes.items()]
        found = [one for one in found if wanted is None or wanted in one.attributes.get("class", "").split()]
        return found + [
            deeper
            for child in self.children
            for deeper in child.all(tag, **attributes, **({"class_": wanted} if wanted else {}))
        ]

    def whole_text(self) -> str:
        return "".join(part if isinstance(part, str) else part.whole_text() for part in self.content)


class Reader(HTMLParser):
    """Builds the tree, and fails on tags that do not match."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Element("root", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._add(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add(Element(tag, {name: value or "" for name, value in attrs}))

    def _add(self, element: Element) -> None:
        self.open[-1].children.append(element)
        self.open[-1].content.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open.pop().tag

    def handle_data(self, data: str) -> None:
        self.open[-1].text += data
        self.open[-1].content.append(data)


def read(page: str) -> Element:
    reader = Reader()
    reader.feed(page)
    assert reader.open == [reader.root]
    return reader.root


FETCH = (site(space="texture", op="fetch", line=5, array="image"), [Request(LANES * 4)])


def local() -> Analysis:
    """Local memory, spills, constants and a texture."""
    return analyze_trace(make_trace(ARRAY, SPILL, TABLE, FETCH))


def shown(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["kernel_v4_colmajor", "kernel_v4", "kernel_v1", "transpose_naive"])
def test_numbers_are_those_of_the_records(name: str) -> None:
    analysis = kernel(name)
    page = read(report_page(analysis))
    rows = {
        int(row.attributes["data-site"]): row
        for table in page.all("table", class_="accesses")
        for row in table.all("tr")[1:]
    }
    assert sorted(rows) == list(range(len(analysis.sites)))
    for number, site_ in enumerate(analysis.sites):
        cells = {
            cell.attributes["data-field"]: cell.text
            for cell in rows[number].all("td")
            if "data-field" in cell.attributes
        }
        assert cells == {field: shown(getattr(site_, field)) for field in FIELDS[site_.space]}
    (totals,) = page.all("table", id="totals")
    found = {row.attributes["data-metric"]: row.all("td")[0].text for row in totals.all("tr")[1:]}
    assert found == {metric: shown(total) for metric, total in analysis.totals.items()}
    (island,) = page.all("script", id="analysis")
    assert json.loads(island.text) == json.loads(json.dumps(analysis.to_dict()))
    said = f"{page.all('h1')[0].text}: {page.all('p', id='verdict')[0].whole_text()}"
    assert said.lower() == analysis.verdict.lower()


def test_every_number_of_a_row_is_on_the_page() -> None:
    counts = {
        f.name for f in dataclasses.fields(mixed().sites[0]) if f.name not in ("line", "column", "width")
    }
    assert set(WORDS) == counts - {"file", "source", "op", "space", "array", "unresolved", "ranges"}
    for space, fields in FIELDS.items():
        known = [site_ for site_ in (*mixed().sites, *local().sites) if site_.space == space]
        assert {name for site_ in known for name in WORDS if getattr(site_, name) is not None} == set(fields)


@pytest.mark.slow
def test_a_table_for_each_memory_space_with_shares_of_all_it_costs_the_costliest_first() -> None:
    for analysis in (mixed(), local(), kernel("kernel_v4_colmajor")):
        tables = access_tables(analysis)
        assert [table.space for table in tables] == [
            space for space in FIELDS if any(site_.space == space for site_ in analysis.sites)
        ]
        page = read(report_page(analysis))
        drawn = page.all("table", class_="accesses")
        for table, element in zip(tables, drawn, strict=True):
            costs = [getattr(row.site, table.cost) or 0 for row in table.rows]
            assert costs == sorted(costs, reverse=True)
            assert [row.part for row in table.rows] == [cost / sum(costs) for cost in costs]
            assert all(0 <= row.waste <= row.part for row in table.rows)
            order = [int(row.attributes["data-site"]) for row in element.all("tr")[1:]]
            assert order == [row.number for row in table.rows]
            assert table.heading in page.whole_text()


@pytest.mark.slow
def test_wavefronts_that_could_be_saved_are_never_ideal() -> None:
    """They have a part of the bar and a key of their own, where there are any, as in the heatmap."""
    key = "above the ideal, no conflict: another mapping"
    for name, has_some in (("kernel_v4_colmajor", True), ("transpose_naive", False)):
        analysis = kernel(name)
        (table,) = [table for table in access_tables(analysis) if table.space == "shared"]
        total = sum(row.site.wavefronts or 0 for row in table.rows)
        for row in table.rows:
            assert (row.part - row.waste - row.above) * total == pytest.approx(row.site.ideal_wavefronts)
        assert any(row.above for row in table.rows) == has_some == bool(analysis.excess_wavefronts)
        page = read(report_page(analysis))
        bars = [
            bar for table in page.all("table", class_="accesses") for bar in table.all("i", class_="above")
        ]
        assert len(bars) == sum(row.above > 0 for row in table.rows)
        legend = [one.whole_text() for one in page.all("p", class_="legend")]
        assert any(key in text for text in legend) == has_some
        assert not any("needed" in text.replace("unneeded", "") for text in legend)


def test_names_of_fields_are_words() -> None:
    text = read(report_page(mixed())).all("main")[0].whole_text()
    assert "most ways" in text and "ideal sectors" in text
    assert not [name for name in WORDS if "_" in name and name in text]


@pytest.mark.slow
def test_before_and_after() -> None:
    before, after = kernel("kernel_v4_colmajor"), kernel("kernel_v4")
    page = read(report_page(before, after=after))
    (sums,) = page.all("table", class_="sums")
    rows = {row.all("th")[0].text: [cell.text for cell in row.all("td")] for row in sums.all("tr")[1:]}
    wavefronts = [sum(site_.wavefronts or 0 for site_ in each.sites) for each in (before, after)]
    conflicts = [sum(site_.conflicts or 0 for site_ in each.sites) for each in (before, after)]
    assert wavefronts[0] - wavefronts[1] == conflicts[0] > conflicts[1] == 0
    for name, (was, now) in (("wavefronts", wavefronts), ("of them by bank conflicts", conflicts)):
        assert rows[f"Shared memory: {name}"] == [f"{was:,}", f"{now:,}", f"{now - was:+,}"]
    assert rows["Global memory: sectors"][2] == "="
    assert [row.attributes["class"] for row in sums.all("tr")[1:]][:3] == ["better", "better", ""]
    (changes,) = page.all("table", class_="changes")
    kinds = [row.all("th")[0].text for row in changes.all("tr")[1:]]
    assert kinds[:4] == ["improved"] * 4
    assert len(page.all("table", class_="heat")) == 2
    alone = read(report_page(before))
    assert alone.all("table", class_="sums") == [] and len(alone.all("table", class_="heat")) == 1


@pytest.mark.slow
def test_the_estimated_time_is_below_the_verdict_and_compared() -> None:
    before, after = (kernel(name).timed for name in ("kernel_v4_colmajor", "kernel_v4"))
    assert before.estimate is not None and after.estimate is not None
    page = read(report_page(before, after=after))
    assert [each.text for each in page.all("p", id="time")] == [f"Time: {before.estimate.verdict}"]
    (sums,) = page.all("table", class_="sums")
    rows = {row.all("th")[0].text: [cell.text for cell in row.all("td")] for row in sums.all("tr")[1:]}
    times = [f"{each.estimate.elapsed:,}" for each in (before, after) if each.estimate]
    assert rows["Cycles with the launch, about (an estimate)"][:2] == times
    plain = read(report_page(kernel("kernel_v4"), after=kernel("kernel_v4_colmajor")))
    assert not plain.all("p", id="time") and "about (an estimate)" not in plain.all("main")[0].whole_text()


@pytest.mark.slow
def test_what_would_help_is_told_and_no_array_is_drawn_twice() -> None:
    analysis = kernel("kernel_v4_colmajor")
    page = read(report_page(analysis))
    (section,) = (one for one in page.all("section") if one.attributes.get("aria-labelledby") == "help")
    assert "padding: 16 B after every 512 B" in section.whole_text()
    looks = [one for one in page.all("div", class_="look") if "hidden" not in one.attributes]
    assert len(looks) == 1 and looks[0].attributes["data-look"] == "1"  # the best change
    (arrays,) = (one for one in page.all("section") if one.attributes.get("aria-labelledby") == "arrays")
    switch = arrays.all("div", class_="switch")
    outside = len(arrays.all("svg", class_="layout")) - len(switch[0].all("svg", class_="layout"))
    assert (outside, len(layouts(analysis))) == (1, 2)  # s_b; s_a can be switched
    clean = read(report_page(kernel("kernel_v4")))
    assert not [one for one in clean.all("section") if one.attributes.get("aria-labelledby") == "help"]


@pytest.mark.slow
def test_sectors_that_nobody_needs_lead_to_suggest() -> None:
    analysis = kernel("kernel_v1")
    needless = sum((one.sectors or 0) - (one.ideal_sectors or 0) for one in analysis.sites)
    assert f"{needless:,} sectors of global memory are not needed; line" in report_page(analysis)
    assert "of global memory are not needed" not in report_page(kernel("kernel_v4"))


@pytest.mark.slow
def test_every_picture_of_the_page_has_a_name_of_its_own() -> None:
    for analysis in (mixed(), kernel("kernel_v4_colmajor"), kernel("kernel_v1")):
        pictures = read(report_page(analysis)).all("svg")
        names = [one.attributes["aria-label"] for one in pictures]
        assert names and all(names)
        requests = [one for one in pictures if one.attributes["class"] in ("words", "sectors")]
        assert all(re.match(r"Line \d+", one.attributes["aria-label"]) for one in requests)


@pytest.mark.parametrize(
    "make", [lambda: report_page(mixed()), lambda: heatmap_page([mixed()]), lambda: fragment(mixed())]
)
def test_heatmap_cells_are_the_use_of_the_banks(make) -> None:  # type: ignore[no-untyped-def]
    page, use = read(make()), bank_use(mixed())
    table = next(t for t in page.all("table", class_="heat") if len(t.all("tr")) > 2)
    rows = {int(row.attributes["data-site"]): row.all("td", class_="cell") for row in table.all("tr")[1:]}
    for number, cells in rows.items():
        if number not in use:
            assert cells == []
            continue
        for quantity in ("words", "busy", "ways", "worst"):
            drawn = [float(cell.attributes[f"data-{quantity}"]) for cell in cells]
            assert drawn == getattr(use[number], quantity).tolist()
        assert [("clash" in cell.attributes["class"]) for cell in cells] == [
            worst > 1 for worst in use[number].worst
        ]
    assert set(rows) == {*use, 5}


def test_two_kernels_stand_side_by_side_on_one_scale() -> None:
    page = heatmap_page([kernel("kernel_v4"), kernel("kernel_v4_colmajor")])
    tables = read(page).all("table", class_="heat")
    bars = [
        [i.attributes["style"] for i in row.all("td", class_="ways")[0].all("i")]
        for t in tables
        for row in t.all("tr")[1:]
    ]
    assert len(tables) == 2
    assert (bars[0], bars[9]) == (["width:2em"], ["width:4em"])


def test_a_side_without_shared_memory_says_so_unless_both_are() -> None:
    page = read(heatmap_page([kernel("kernel_v1"), kernel("kernel_v4")]))
    without, with_banks = (section for section in page.all("section") if section.all("h1"))
    assert [p.text for p in without.all("p")] == ["This kernel does not access shared memory."]
    assert (without.all("table"), len(with_banks.all("table"))) == ([], 1)
    assert "access shared" not in with_banks.whole_text()
    with pytest.raises(MemsimError, match="kernel_v1 and opt_2_naive do not access shared memory"):
        heatmap_page([kernel("kernel_v1"), kernel("opt_2_naive")])


@pytest.mark.slow
def test_every_line_with_an_access_leads_to_its_details() -> None:
    for analysis in (mixed(), kernel("kernel_v4"), kernel("transpose_naive")):
        page = read(report_page(analysis))
        (box,) = page.all("div", class_="source")
        links = {
            int(a.all("span", class_="n")[0].text): a.attributes["data-sites"].split()
            for a in box.all("a")
            if "data-sites" in a.attributes
        }
        expected: dict[int, list[str]] = {}
        for number, site_ in enumerate(analysis.sites):
            expected.setdefault(site_.line, []).append(str(number))
        assert links == expected
        details = [one.attributes["data-site"] for one in page.all("section", class_="detail")]
        assert details == [str(number) for number in range(len(analysis.sites))]
        hidden = [one for one in page.all("section", class_="detail") if "hidden" not in one.attributes]
        assert len(hidden) == 1


def test_the_heat_of_lines() -> None:
    (file,) = files(mixed())
    marks = {line.number: (line.mark, line.heat) for line in file.lines if line.sites}
    assert marks == {
        2: ("2-way conflict", 2.0),
        3: ("4-way conflict", 4.0),
        4: ("8x sectors", 8.0),
        5: ("not analyzed", 0.0),
    }
    assert [line.text for line in file.lines[:4]] == SOURCE.splitlines()


def test_layouts_flow_and_graph_have_all_their_parts() -> None:
    analysis = kernel("transpose_padded")
    page = read(report_page(analysis))
    (array,) = layouts(analysis)
    (svg,) = page.all("svg", class_="layout")
    drawn = [int(rect.attributes["class"][1:]) for rect in svg.all("rect")]
    assert drawn == array.bank.ravel().tolist()
    owners = [text.text for text in svg.all("text") if text.attributes.get("class") in (None, "w")]
    assert owners == [f"{w // 32}:{w % 32}" if w >= 0 else "" for w in array.writer.ravel().tolist()]
    (picture,) = page.all("svg", class_="flow")
    assert len(picture.all("path", class_="rung")) == flow(analysis).number_of_edges()
    assert len(page.all("svg", class_="graph")) == sum(s.space == "shared" for s in analysis.sites)


@pytest.mark.slow
def test_a_large_array_is_called_by_its_whole_size_and_a_small_one_is_shown_whole() -> None:
    large = read(report_page(many(9)))
    assert [h3.text for h3 in large.all("h3") if h3.text.startswith("s0: ")] == [
        "s0: 1,563 rows of 32 words, one in each of the 32 banks (shown: the first 64 rows)"
    ]
    assert len(large.all("svg", class_="layout")[0].all("rect")) == 64 * 32
    small = read(report_page(mixed()))
    assert [h3.text for h3 in small.all("h3") if h3.text.startswith("tile: ")] == [
        "tile: 8 rows of 128 words"
    ]
    assert len(small.all("svg", class_="layout")[0].all("rect")) == 8 * 128


def test_nothing_is_fetched() -> None:
    for page in (report_page(mixed()), heatmap_page([mixed()]), fragment(mixed())):
        assert not re.search(r"(?:src|href|url)\s*[=(]\s*[\"']?(?!#|data:)[a-z/]", page)
        assert "://" not in page and "@import" not in page
    for page in (report_page(mixed()), heatmap_page([mixed()])):
        assert "default-src 'none'" in page


def test_any_text_is_only_text() -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    plain = make_trace(
        (site(), [Request(LANES * 4)]),
        (site(line=4, unresolved=evil), []),
        sources={"kernel.cu": f"a\nb\n{evil}"},
    )
    trace = dataclasses.replace(
        plain,
        kernel=evil,
        notes=(evil,),
        sites=tuple(dataclasses.replace(s, array=evil) for s in plain.sites),
    )
    analysis = analyze_trace(trace)
    for text in (report_page(analysis), heatmap_page([analysis]), fragment(analysis)):
        page = read(text)
        assert page.all("img") == []
        assert all(
            "alert" not in script.text or script.attributes.get("type") == "application/json"
            for script in page.all("script")
        )
    (island,) = read(report_page(analysis)).all("script", id="analysis")
    assert json.loads(island.text)["kernel"] == evil


@pytest.mark.slow
def test_recorded_counters_stand_beside_the_predicted() -> None:
    analysis = kernel("kernel_v4")
    metric = next(iter(analysis.totals))
    page = read(report_page(analysis, Recorded("an H100, today", {metric: (12_345, "difference")})))
    (totals,) = page.all("table", id="totals")
    cells = {
        row.attributes["data-metric"]: [cell.text for cell in row.all("td")] for row in totals.all("tr")[1:]
    }
    assert cells[metric][1:] == ["12,345", "difference"]
    assert all(texts[1:] == ["not recorded", ""] for name, texts in cells.items() if name != metric)
    assert "an H100, today" in page.whole_text()
    without = read(report_page(analysis, "it was never run")).whole_text()
    assert "There is no recording to compare with: it was never run." in without


@pytest.mark.parametrize("op", ["wgmma", "cluster_load"])
def test_what_lanes_do_not_decide_has_a_row_and_no_details(op: str) -> None:
    other = (site(line=2, op=op, width=8), [Request(LANES * 8)])
    page = read(report_page(analyze_trace(make_trace((site(), [Request(LANES * 8)]), other))))
    assert sum(len(table.all("tr")) - 1 for table in page.all("table", class_="accesses")) == 2
    assert len(page.all("section", class_="detail")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("sites", [60, 400])
def test_the_page_is_bounded(sites: int) -> None:
    analysis = many(sites)
    text = report_page(analysis)
    assert len(text.encode()) < PAGE_BYTES
    page = read(text)
    assert len(page.all("section", class_="detail")) == MOST_DETAILS
    (first,) = [one for one in page.all("section", class_="detail") if "hidden" not in one.attributes]
    assert int(first.attributes["data-site"]) == worst_site(analysis)
    assert len(page.all("table", class_="accesses")[0].all("tr")) == sites + 1
    assert len(page.all("svg", class_="layout")) == MOST_ARRAYS
    assert "Not drawn: s4, s5, s6, s7, s8." in page.whole_text()
    lines = [line for line in files(analysis)[0].lines if line.number]
    reach = min(LINES_AROUND, LONG // (2 * sites))
    assert len(lines) == sites * (2 * reach + 1) - reach


def test_a_short_source_is_shown_whole() -> None:
    (file,) = files(many(20))
    assert [line.number for line in file.lines] == list(range(1, 801))


def test_real_pages_are_small() -> None:
    assert len(report_page(kernel("kernel_v4"))) < 900_000
    assert len(fragment(kernel("kernel_v4"))) < 200_000


def test_a_kernel_without_any_access() -> None:
    page = read(report_page(analyze_trace(make_trace()))).whole_text()
    assert "no shared or global access was made" in page and "No access to memory was made." in page
    assert "This kernel does not access shared memory." in page


def test_analysis_shows_itself_in_a_notebook() -> None:
    analysis = kernel("kernel_v4_colmajor")
    assert analysis._repr_html_() == fragment(analysis.timed)
    assert read(fragment(kernel("kernel_v1"))).all("table", class_="heat") == []


def test_nops_behind_the_code_are_folded() -> None:
    view = listing_view(kernel("transpose_naive"), files(kernel("transpose_naive")))
    assert view is not None
    *code, padding = view.stretches
    assert padding.folded and {row.text for row in padding.rows} == {"NOP"}
    assert code[-1].rows[-1].text != "NOP" and not code[-1].folded


def test_a_request_has_a_page_of_its_own() -> None:
    analysis = kernel("transpose_naive")
    number = worst_site(analysis)
    page = read(request_page(analysis, number))
    assert [heading.text for heading in page.all("h1")] == ["transpose_naive"]
    assert page.all("h2")[0].text == f"Line 22, site {number}: shared load 4 B · tile"
    assert "32-way bank conflict: 32 wavefronts for this request instead of 1." in page.all("p")[0].text
    whole = read(report_page(analysis))
    shown = next(one for one in whole.all("section") if one.attributes.get("id") == f"site-{number}")
    (own,) = (one for one in page.all("section") if one.attributes.get("class") == "detail")
    assert [cell.text for cell in own.all("dd")] == [cell.text for cell in shown.all("dd")]
    with pytest.raises(MemsimError, match="there is no access site 99"):
        request_page(analysis, 99)


def test_only_sectors_are_called_needed() -> None:
    """A wavefront above the ideal is no conflict, and avoidable all the same."""
    page = re.sub(r"<(style|script).*?</\1>", "", report_page(kernel("kernel_v4_colmajor")), flags=re.DOTALL)
    told = [text for text in re.split(r"<[^>]+>", page) if re.search(r"\bneeded\b", text)]
    assert told and all("sectors" in text and "wavefronts" not in text for text in told)
    assert "above the ideal, no conflict: another mapping of the lanes could save it" in page


@pytest.mark.parametrize("line", [3, 2**31 - 1, 2**61])
def test_a_line_of_any_number_is_shown_behind_the_others(line: int) -> None:
    """As `#line` says it, or a trace of others."""
    trace = make_trace(
        (site(line=line, file="kernel.cu"), [Request(LANES * 4)]), sources={"kernel.cu": "a\nb\nc\n"}
    )
    (shown,) = files(analyze_trace(trace))
    numbers = [one.number for one in shown.lines]
    assert numbers == ([1, 2, 3] if line == 3 else [1, 2, 3, 0, line])
