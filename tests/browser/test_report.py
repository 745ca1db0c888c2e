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
from memsim.report.html import report_page
from memsim.report.html.page import NUMBERS
from tests.browser.conftest import Page
from tests.report.cases import kernel
from tests.traces import make_trace, site

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
        "return Array.from(document.querySelectorAll('.numbers tbody tr')).map(r => Object.fromEntries("
        "Array.from(r.querySelectorAll('[data-field]')).map(c => [c.dataset.field, c.textContent])))"
    )
    numbers = [
        {name: None if text == "-" else int(text.replace(",", "")) for name, text in row.items()}
        for row in cells
    ]
    assert numbers == [{name: site[name] for name in NUMBERS} for site in document["sites"]]
    totals = page.run(
        "return Object.fromEntries(Array.from(document.querySelectorAll('#totals [data-metric]')).map("
        "r => [r.dataset.metric, r.querySelector('[data-field=predicted]').textContent]))"
    )
    assert {metric: int(text.replace(",", "")) for metric, text in totals.items()} == document["totals"]
    assert page.texts("#verdict") == [document["verdict"]]
    assert json.loads(page.texts("#analysis")[0]) == document
    details = page.run(
        "return Array.from(document.querySelectorAll('.detail')).map(d => "
        "Object.fromEntries(Array.from(d.querySelectorAll('.numbers-of [data-field]')).map("
        "c => [c.dataset.field, c.textContent])))"
    )
    for row, shown in zip(document["sites"], details, strict=True):
        known = {name: row[name] for name in NUMBERS if row[name] is not None}
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
    assert "would call this a 4-way conflict; it is none" in detail.text
    for part in (".heat", ".words", ".lanes", ".graph", ".numbers-of"):
        assert detail.find_element(By.CSS_SELECTOR, part).is_displayed()

    browser.back()
    assert page.shown() == ["2"]
    assert page.complaints() == []


def test_rows_and_arrows_lead_to_the_same_details(browser: Chrome, made: Made) -> None:
    page = Page(browser, made(*BAD))
    for selector in (
        "#heatmap ~ .wide a[href='#site-7']",
        ".numbers a[href='#site-11']",
        ".flow a[href='#site-0'] text",
    ):
        target = browser.find_element(By.CSS_SELECTOR, selector)
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", target)
        ActionChains(browser).move_to_element(target).click().perform()
        site = selector.partition("#site-")[2].partition("'")[0]
        assert page.shown() == [site]
        top = page.run("return document.querySelector('.detail:not([hidden])').getBoundingClientRect().top")
        assert 0 <= top < 200


def test_two_accesses_on_one_line_are_both_shown(browser: Chrome, made: Made) -> None:
    page = Page(browser, made("report", "transpose_naive", "--size", "64,64"))
    browser.find_element(By.CSS_SELECTOR, ".source a[data-sites='0 1']").click()
    assert page.shown() == ["0", "1"]


def test_the_keyboard_reaches_everything(browser: Chrome, made: Made) -> None:
    page = Page(browser, made(*BAD))
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert page.run("return document.activeElement.className") == "skip"
    for _ in range(20):
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
    assert named["heading"][0] == "kernel_v4_colmajor: what its memory accesses cost"
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


def test_the_tables_are_not_cut_off_on_a_small_screen(browser: Chrome, made: Made) -> None:
    for arguments in (("report", "kernel_v4_colmajor"), ("heatmap", "kernel_v4_colmajor")):
        page = Page(browser, made(*arguments), width=1400)
        regions = page.run(WIDE, ".wide:has(> .heat):not(.detail *), .wide:has(> .numbers)")
        assert len(regions) == (2 if "report" in arguments else 1)
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
    assert colours == ["rgb(127, 205, 187)", "rgb(199, 233, 180)"]


HOST = """<!doctype html><title>n</title><h1 id="before" style="font: 10px serif">x</h1>{}
<table id="after"><tr><td>y</table>"""
STYLES = """
return ["before", "after"].map(id => {
  const style = getComputedStyle(document.getElementById(id));
  return [style.margin, style.font, style.borderCollapse, style.color];
});
"""


def test_a_notebook_fragment_leaves_the_page_around_it_alone(browser: Chrome, tmp_path: Path) -> None:
    with_it, without = tmp_path / "with.html", tmp_path / "without.html"
    with_it.write_text(HOST.format(kernel("kernel_v4_colmajor")._repr_html_()), "utf-8")
    without.write_text(HOST.format(""), "utf-8")
    assert Page(browser, without).run(STYLES) == Page(browser, with_it).run(STYLES)
    page = Page(browser, with_it)
    assert page.complaints() == []
    colour = page.run("return getComputedStyle(document.querySelector('.heat .cell')).backgroundColor")
    assert colour == "rgb(127, 205, 187)"
