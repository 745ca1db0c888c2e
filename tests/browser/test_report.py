"""The report in a real browser: it loads alone and quietly, its numbers are those of --json, clicks work."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from memsim.analysis import analyze_trace
from memsim.cli import main
from memsim.views.report import report_page
from memsim.views.report.access_tables import FIELDS
from tests.browser.conftest import Page
from tests.traces import make_trace, site
from tests.views.cases import kernel

pytestmark = pytest.mark.slow

Made = Callable[..., Path]
SMALL = ("--size", "256,256,16")
BAD, GOOD = ("report", "kernel_v4_colmajor", *SMALL), ("report", "kernel_v4", *SMALL)


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["analyze", *arguments, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


@pytest.mark.parametrize(
    "arguments",
    [
        BAD,
        GOOD,
        ("report", "kernel_v1", "--size", "64,64,8"),
        ("heatmap", "kernel_v4", *SMALL, "--compare", "kernel_v5"),
    ],
    ids=["bad", "good", "global", "heatmap"],
)
def test_it_loads_without_a_word_and_without_the_network(
    browser: Chrome, made: Made, arguments: tuple[str, ...]
) -> None:
    path = made(*arguments)
    page = Page(browser, path)
    assert page.complaints() == []
    assert [url for url in page.requests() if not url.startswith(("data:", "about:"))] == [path.as_uri()]
    assert page.run("return document.readyState") == "complete"


def test_a_page_that_complains_or_fetches_would_be_found(browser: Chrome, made: Made, tmp_path: Path) -> None:
    text = made(*GOOD).read_text("utf-8")
    broken = tmp_path / "broken.html"
    broken.write_text(text.replace("</main>", "<script>nothing()</script></main>"), "utf-8")
    page = Page(browser, broken)
    assert any("nothing is not defined" in message for message in page.complaints())
    (tmp_path / "picture.png").write_bytes(b"")
    broken.write_text(text.replace("</main>", '<img src="picture.png"></main>'), "utf-8")
    page = Page(browser, broken)
    assert any("Content Security Policy" in message for message in page.complaints())


@pytest.mark.parametrize("name", ["kernel_v4_colmajor", "kernel_v4"])
def test_its_numbers_equal_json(
    browser: Chrome, made: Made, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    page = Page(browser, made("report", name, *SMALL))
    document = as_json(capsys, name, *SMALL)
    cells = page.run(
        "return Array.from(document.querySelectorAll('.accesses tbody tr')).map(r => [+r.dataset.site, "
        "Object.fromEntries("
        "Array.from(r.querySelectorAll('[data-field]')).map(c => [c.dataset.field, c.textContent]))])"
    )
    numbers = [{name: int(text.replace(",", "")) for name, text in row.items()} for _, row in sorted(cells)]
    expected = [{name: site[name] for name in FIELDS[site["space"]]} for site in document["sites"]]
    assert numbers == expected
    totals = page.run(
        "return Object.fromEntries(Array.from(document.querySelectorAll('#totals [data-metric]')).map("
        "r => [r.dataset.metric, r.querySelector('[data-field=predicted]').textContent]))"
    )
    assert {metric: int(text.replace(",", "")) for metric, text in totals.items()} == document["totals"]
    assert f"{name}: {page.texts('#verdict')[0]}".lower() == document["verdict"].lower()
    assert json.loads(page.texts("#analysis")[0]) == document
    details = page.run(
        "return Array.from(document.querySelectorAll('.detail')).map(d => "
        "Object.fromEntries(Array.from(d.querySelectorAll('.numbers-of [data-field]')).map("
        "c => [c.dataset.field, c.textContent])))"
    )
    for row, shown in zip(document["sites"], details, strict=True):
        known = {name: row[name] for name in FIELDS[row["space"]]}
        assert {name: int(text.replace(",", "")) for name, text in shown.items()} == known


def test_it_opens_with_the_worst_line_and_a_click_shows_another(browser: Chrome, made: Made) -> None:
    page = Page(browser, made(*BAD))
    assert page.shown() == ["2"]
    assert page.texts(".source a[aria-current] .n") == ["40"]
    assert "2-way bank conflict" in page.texts("#status")[0]

    line = browser.find_element(By.CSS_SELECTOR, ".source a[data-sites='9']")
    line.click()
    assert page.shown() == ["9"]
    assert page.texts(".source a[aria-current] .n") == ["52"]
    assert "No bank conflict: 4 wavefronts" in page.texts("#status")[0]
    detail = browser.find_element(By.ID, "site-9")
    assert "would wrongly call this a 4-way conflict" in detail.text
    for part in (".words", ".lanes", ".graph", ".numbers-of"):
        assert detail.find_element(By.CSS_SELECTOR, part).is_displayed()

    browser.back()
    assert page.shown() == ["2"]
    assert page.complaints() == []


def test_rows_and_arrows_lead_to_the_same_details(browser: Chrome, made: Made) -> None:
    page = Page(browser, made(*BAD))
    for selector in (
        "#heatmap ~ .wide a[href='#site-7']",
        ".accesses a[href='#site-11']",
        ".flow a[href='#site-0'] text",
    ):
        target = browser.find_element(By.CSS_SELECTOR, selector)
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", target)
        ActionChains(browser).move_to_element(target).click().perform()
        site = selector.partition("#site-")[2].partition("'")[0]
        assert page.shown() == [site]
        top = page.run("return document.querySelector('.detail:not([hidden])').getBoundingClientRect().top")
        assert -1 < top < 200  # scrolled to whole pixels


def test_two_accesses_on_one_line_are_both_shown(browser: Chrome, made: Made) -> None:
    page = Page(browser, made("report", "transpose_naive", "--size", "64,64"))
    browser.find_element(By.CSS_SELECTOR, ".source a[data-sites='0 1']").click()
    assert page.shown() == ["0", "1"]


def test_the_keyboard_reaches_everything(browser: Chrome, made: Made) -> None:
    page = Page(browser, made(*BAD))
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert page.run("return document.activeElement.className") == "skip"
    for _ in range(60):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        if page.run("return document.activeElement.dataset.sites") == "0":
            break
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert page.shown() == ["0"]
    browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN)  # line 37 touches no memory
    assert (page.texts(".source a[aria-current] .n"), page.shown()) == (["37"], ["0"])
    browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    assert page.shown() == ["1"]
    browser.switch_to.active_element.send_keys(Keys.ARROW_UP + Keys.ARROW_UP)
    assert page.shown() == ["0"]
    outline = page.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


def test_a_screen_reader_gets_names_for_everything(browser: Chrome, made: Made) -> None:
    page = Page(browser, made(*BAD))
    tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named: dict[str, list[str]] = {}
    for node in tree:
        if not node.get("ignored"):
            named.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    for role in ("link", "heading", "table", "region", "image", "columnheader"):
        assert named[role] and all(named[role]), role
    assert "status" in named
    assert named["heading"][0] == "kernel_v4_colmajor"
    levels = page.run("return Array.from(document.querySelectorAll('h1,h2,h3,h4')).map(h => +h.tagName[1])")
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))
    ids = page.run("return Array.from(document.querySelectorAll('[id]')).map(e => e.id)")
    assert len(ids) == len(set(ids))
    broken = page.run(
        "return Array.from(document.querySelectorAll('[aria-labelledby],[aria-controls]')).filter("
        "e => !document.getElementById(e.getAttribute('aria-labelledby') || e.getAttribute('aria-controls')))"
        ".length"
    )
    assert broken == 0


CONTRAST = """
function channel(c) { c /= 255; return c <= 0.04045 ? c / 12.92 : Math.pow((c + 0.055) / 1.055, 2.4); }
function luminance(rgb) { return [0.2126, 0.7152, 0.0722].reduce((l, w, i) => l + w * channel(rgb[i]), 0); }
function numbers(text) { return text.match(/[\\d.]+/g).map(Number); }
function paper(element) {
  for (; element; element = element.parentElement) {
    const rgb = numbers(getComputedStyle(element).backgroundColor);
    if (rgb.length < 4 || rgb[3] > 0) return rgb;
  }
  return [255, 255, 255];
}
return Array.from(document.querySelectorAll(arguments[0])).filter(e => e.checkVisibility()).map(e => {
  const ink = luminance(numbers(getComputedStyle(e).color)), under = luminance(paper(e));
  return (Math.max(ink, under) + 0.05) / (Math.min(ink, under) + 0.05);
});
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_light_and_dark_can_both_be_read(browser: Chrome, made: Made, dark: bool) -> None:
    page = Page(browser, made(*BAD), dark=dark)
    background = page.run("return getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(22, 24, 27)" if dark else "rgb(255, 255, 255)")
    page.run("document.querySelectorAll('.listing li:nth-child(3n) a').forEach(a => a.classList.add('lit'))")
    ratios = page.run(
        CONTRAST,
        "p, h1, h2, h3, th, td:not(.cell), code, pre, dt, dd, .mark, .n, .source a, .legend, "
        ".listing a, .listing em, .costs b, summary",
    )
    assert len(ratios) > 300
    assert min(ratios) >= 4.5


def test_on_a_telephone_nothing_is_wider_than_the_screen(browser: Chrome, made: Made) -> None:
    page = Page(browser, made(*BAD), width=500)
    assert page.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert (
        page.run("return document.querySelector('#heatmap ~ .wide').scrollWidth") > 500
    )  # it scrolls by itself


def test_at_400_pixels_each_access_says_its_share_code_and_trouble(browser: Chrome, made: Made) -> None:
    screen = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    try:
        page = Page(browser, made(*BAD))
        assert overflow(page) <= 0
        parts = "Array.from(document.querySelectorAll('.accesses tbody :is(.bar, .code code, .chip, td.n)'))"
        boxes = page.run(f"return {parts}.map(e => e.getBoundingClientRect()).map(b => [b.left, b.right])")
        assert len(boxes) > 30 and all(0 <= left <= right <= 400 for left, right in boxes)
        cut = page.run(f"return {parts}.filter(e => e.scrollWidth > e.clientWidth + 1).length")
        assert cut == 0
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


WIDE = "return Array.from(document.querySelectorAll(arguments[0])).map(e => [e.clientWidth, e.scrollWidth])"
MARGIN = (
    "const box = document.querySelector('h1').getBoundingClientRect();"
    "return [box.left, document.documentElement.clientWidth - box.right]"
)


def overflow(page: Page) -> int:
    """By how many pixels the page itself has to be scrolled sideways."""
    pixels: int = page.run(
        "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return pixels


@pytest.mark.parametrize("width", [1000, 1250, 1400])
def test_the_tables_are_not_cut_off_on_a_small_screen(browser: Chrome, made: Made, width: int) -> None:
    for arguments in (("report", "kernel_v4_colmajor"), ("heatmap", "kernel_v4_colmajor")):
        page = Page(browser, made(*arguments), width=width)
        regions = page.run(WIDE, ".wide:has(> .heat), .wide:has(> .accesses)")
        assert len(regions) == (3 if "report" in arguments else 1)
        assert all(inside <= room for room, inside in regions)
        assert overflow(page) <= 0


@pytest.mark.parametrize("compare", [(), ("--compare", "kernel_v5")], ids=["one", "two"])
def test_a_heatmap_page_scrolls_in_its_own_region_and_has_a_margin(
    browser: Chrome, made: Made, compare: tuple[str, ...]
) -> None:
    page = Page(browser, made("heatmap", "kernel_v4", *SMALL, *compare), width=500)
    assert overflow(page) <= 0
    regions = page.run(WIDE, ".wide")
    assert len(regions) == (2 if compare else 1)
    assert all(inside > room for room, inside in regions)
    assert all(side >= 16 for side in page.run(MARGIN))


def test_a_long_word_in_a_sentence_is_broken(browser: Chrome, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    why = "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16.and.so.on.and.on is not executed by the emulator"
    path.write_text(report_page(analyze_trace(make_trace((site(unresolved=why), [])))), "utf-8")
    page = Page(browser, path, width=500)
    assert any(why in text for text in page.texts("#launch ~ p"))
    assert overflow(page) <= 0


def test_without_a_script_all_details_are_there(browser: Chrome, made: Made) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        Page(browser, made(*GOOD))
        details = browser.find_elements(By.CSS_SELECTOR, ".detail")
        assert len(details) == 12 and all(detail.is_displayed() for detail in details)
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert Page(browser, made(*GOOD)).shown() == ["9"]


def test_padding_and_swizzle_can_be_switched(
    browser: Chrome, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    """The pictures are those that memsim worked out; the script only chooses among them."""
    page = Page(browser, made(*BAD))
    entry = next(e for e in _suggested(capsys, "kernel_v4_colmajor") if e["name"] == "s_a")
    counts = [entry["wavefronts"], *(each["wavefronts"] for each in entry["proposals"])]
    box = browser.find_element(By.CSS_SELECTOR, ".switch[data-array=s_a]")
    inputs = box.find_elements(By.TAG_NAME, "input")
    assert len(inputs) == len(counts) >= 2
    for label, wavefronts in zip(box.find_elements(By.TAG_NAME, "label"), counts, strict=True):
        assert f": {wavefronts:,} wavefronts in all" in label.text
    colours = []
    for number, chosen in enumerate(inputs):
        page.run("arguments[0].scrollIntoView({block: 'center'})", chosen)
        chosen.click()
        (look,) = [each for each in box.find_elements(By.CSS_SELECTOR, ".look") if each.is_displayed()]
        assert look.get_attribute("data-look") == str(number)
        words = "arguments[0].querySelectorAll('svg.layout rect')"
        colours.append(page.run(f"return Array.from({words}).map(word => word.className.baseVal)", look))
    assert page.complaints() == []
    assert all(one != colours[0] for one in colours[1:])  # the words lie in other banks
    served = [look.get_attribute("data-wavefronts") for look in box.find_elements(By.CSS_SELECTOR, ".look")]
    assert served[0] != served[1]


def test_the_switch_can_be_used_by_keyboard(browser: Chrome, made: Made) -> None:
    page = Page(browser, made(*BAD))
    first = browser.find_element(By.CSS_SELECTOR, ".switch input")
    page.run("arguments[0].click()", first)
    page.run("arguments[0].focus()", first)
    first.send_keys(Keys.ARROW_DOWN)
    looks = browser.find_element(By.CSS_SELECTOR, ".switch").find_elements(By.CSS_SELECTOR, ".look")
    assert [look.is_displayed() for look in looks] == [number == 1 for number in range(len(looks))]


def _suggested(capsys: pytest.CaptureFixture[str], kernel: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["suggest", kernel, *SMALL, "--json"]) == 0
    arrays: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["arrays"]
    return arrays


def test_the_heatmap_page_has_both_kernels_in_view(browser: Chrome, made: Made) -> None:
    page = Page(browser, made("heatmap", "kernel_v4_colmajor", *SMALL, "--compare", "kernel_v4"), width=2600)
    boxes = page.run(
        "return Array.from(document.querySelectorAll('.heat')).map(e => e.getBoundingClientRect())"
        ".map(b => [b.left, b.right, b.top])"
    )
    assert boxes[0][1] <= boxes[1][0] and boxes[0][2] == boxes[1][2]
    colours = page.run(
        "return Array.from(document.querySelectorAll('.heat tr:nth-child(1) .cell:nth-child(2)'))"
        ".map(e => getComputedStyle(e).backgroundColor)"
    )
    assert colours == ["rgb(254, 204, 92)", "rgb(230, 237, 240)"]  # 2 ways, and clean


def test_stacked_heatmaps_have_their_columns_below_each_other(browser: Chrome, made: Made) -> None:
    page = Page(browser, made("heatmap", "kernel_v4_colmajor", *SMALL, "--compare", "kernel_v4"), width=1400)
    columns = page.run(
        "return Array.from(document.querySelectorAll('.heat'))"
        ".map(e => Array.from(e.querySelectorAll('thead th')).map(one => one.getBoundingClientRect().left))"
    )
    assert len(columns) == 2 and len(columns[0]) == 35
    assert columns[0] == columns[1]


HOST = """<!doctype html><title>n</title>{style}<h1 id="before" style="font: 10px serif">x</h1>
<div class="host cell">{fragment}</div><table id="after"><tr><td>y</table>"""
STYLES = """
return ["before", "after"].map(id => {
  const style = getComputedStyle(document.getElementById(id));
  return [style.margin, style.font, style.borderCollapse, style.color];
});
"""
# What notebooks do to tables and texts, and worse.
OTHERS = """<style>
.host { font: 30px cursive; text-align: center; line-height: 3; letter-spacing: 4px; }
.host table { border-collapse: separate; border: 9px solid red; margin: 33px auto; table-layout: fixed; }
.host.cell tbody tr:nth-child(odd), .host.cell td, .host.cell th { background: red; padding: 20px; }
.host.cell p, .host.cell h3, .host.cell code, .host.cell span { color: red; font-size: 30px; display: block; }
</style>"""
INSIDE = """
const kept = ["color", "backgroundColor", "font", "margin", "padding", "border", "textAlign", "display"];
const all = Array.from(document.querySelectorAll(".memsim, .memsim :not(style)"));
return all.map(e => e.tagName + " " + kept.map(name => getComputedStyle(e)[name]).join("; "));
"""


def test_a_notebook_fragment_leaves_the_page_around_it_alone(browser: Chrome, tmp_path: Path) -> None:
    with_it, without = tmp_path / "with.html", tmp_path / "without.html"
    fragment = kernel("kernel_v4_colmajor")._repr_html_()
    with_it.write_text(HOST.format(style="", fragment=fragment), "utf-8")
    without.write_text(HOST.format(style="", fragment=""), "utf-8")
    assert Page(browser, without).run(STYLES) == Page(browser, with_it).run(STYLES)
    page = Page(browser, with_it)
    assert page.complaints() == []
    colour = page.run("return getComputedStyle(document.querySelector('.heat .cell')).backgroundColor")
    assert colour == "rgb(254, 204, 92)"


def test_the_style_of_a_notebook_does_not_reach_into_a_fragment(browser: Chrome, tmp_path: Path) -> None:
    plain, styled = tmp_path / "plain.html", tmp_path / "styled.html"
    fragment = kernel("kernel_v4_colmajor")._repr_html_()
    plain.write_text(HOST.format(style="", fragment=fragment), "utf-8")
    styled.write_text(HOST.format(style=OTHERS, fragment=fragment), "utf-8")
    alone = Page(browser, plain).run(INSIDE)
    assert len(alone) > 500
    assert Page(browser, styled).run(INSIDE) == alone
    styled.write_text(HOST.format(style=OTHERS, fragment=fragment.replace("all: revert", "")), "utf-8")
    assert Page(browser, styled).run(INSIDE) != alone


def test_a_heading_sorts_its_table(browser: Chrome, made: Made) -> None:
    page = Page(browser, made(*BAD))
    table = ".accesses[data-space=shared]"
    cells = f"{table} tbody [data-field={{}}]"

    def numbers(field: str) -> list[int]:
        return [int(text.replace(",", "")) for text in page.texts(cells.format(field))]

    assert numbers("wavefronts") == sorted(numbers("wavefronts"), reverse=True)
    buttons = {text: at for at, text in enumerate(page.texts(f"{table} thead button"))}
    elements = browser.find_elements(By.CSS_SELECTOR, f"{table} thead button")
    elements[buttons["bank conflicts"]].click()
    assert numbers("conflicts") == sorted(numbers("conflicts"), reverse=True)
    assert numbers("wavefronts") != sorted(numbers("wavefronts"), reverse=True)
    assert page.texts(f"{table} [aria-sort=descending]") == ["bank conflicts"]
    elements[buttons["line"]].send_keys(Keys.ENTER)
    lines = [int(text) for text in page.texts(f"{table} tbody th")]
    assert lines == sorted(lines) or lines == sorted(lines, reverse=True)
    elements[buttons["code"]].click()
    codes = page.texts(f"{table} tbody .code")
    assert page.run("return arguments[0].slice().sort((a, b) => a.localeCompare(b))", codes) == codes
    elements[buttons["code"]].click()
    assert page.texts(f"{table} tbody .code")[0] == codes[-1]
    assert page.complaints() == []


def test_counters_that_are_0_are_shown_when_they_are_asked_for(browser: Chrome, made: Made) -> None:
    page = Page(browser, made(*BAD))
    shown = "return Array.from(document.querySelectorAll('#totals tbody tr')).map(e => e.offsetHeight > 0)"
    before = page.run(shown)
    assert any(before) and not all(before)
    page.run("document.getElementById('zeros').click()")
    assert all(page.run(shown)) and len(page.run(shown)) == len(before)
