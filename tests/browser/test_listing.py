"""Source and machine code in a real browser: what belongs together is lit, scrolled to, reached by keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from memsim.kernels import catalog
from memsim.views.report import report_page
from tests.browser.conftest import Page
from tests.views.report.test_listing import long

pytestmark = pytest.mark.slow

Made = Callable[..., Path]
BAD = ("report", "kernel_v4_colmajor", "--size", "256,256,16")

IN_VIEW = """
const box = arguments[0].closest(".source, .listing").getBoundingClientRect();
const at = arguments[0].getBoundingClientRect();
return at.height > 0 && at.top >= box.top - 1 && at.bottom <= box.bottom + 1;
"""


def line(browser: Chrome, number: int) -> WebElement:
    return browser.find_element(By.CSS_SELECTOR, f".source a[href='#line-0-{number}']")


def rows(browser: Chrome, selector: str) -> list[WebElement]:
    return browser.find_elements(By.CSS_SELECTOR, f".listing {selector}")


def current(browser: Chrome) -> WebElement:
    (row,) = rows(browser, "a[aria-current]")
    return row


def test_a_line_leads_to_its_instructions_one_after_the_other(browser: Chrome, made: Made) -> None:
    page = Page(browser, made(*BAD))
    line(browser, 50).click()
    loads = [row.get_attribute("href") for row in rows(browser, "a[data-line='0-50'][data-sites]")]
    assert len(loads) == 8
    assert page.shown() == ["7"]
    assert page.run(IN_VIEW, current(browser))
    assert current(browser).get_attribute("href") == loads[0]
    seen = [loads[0]]
    for _ in loads[1:]:
        line(browser, 50).click()
        assert page.run(IN_VIEW, current(browser))
        seen.append(current(browser).get_attribute("href"))
    assert seen == loads
    marked = rows(browser, "a:is(.kin, [aria-current])")
    assert {row.get_attribute("data-line") for row in marked} == {"0-50"}
    assert page.texts("#pair") == ["Line 50: 8 instructions, here number 8."]
    line(browser, 50).click()
    assert current(browser).get_attribute("href") == loads[0]
    assert page.complaints() == []


def test_an_instruction_leads_to_its_line_and_its_details(browser: Chrome, made: Made) -> None:
    page = Page(browser, made(*BAD))
    line(browser, 66).click()
    assert page.shown() == ["11"]
    page.run("document.querySelector('.source').scrollTop = 0")
    assert not page.run(IN_VIEW, line(browser, 52))
    row = rows(browser, "a[data-line='0-52'][data-sites]")[3]
    page.run("arguments[0].scrollIntoView({block: 'center'})", row)
    row.click()
    assert page.shown() == ["9"]
    assert page.texts(".source a[aria-current] .n") == ["52"]
    assert page.run(IN_VIEW, line(browser, 52))
    assert current(browser).get_attribute("href") == row.get_attribute("href")
    assert page.texts("#pair") == ["Line 52: 8 instructions, here number 4."]
    browser.back()
    assert (page.shown(), page.texts(".source a[aria-current] .n")) == (["11"], ["66"])


def test_what_the_pointer_is_on_is_lit_on_both_sides(browser: Chrome, made: Made) -> None:
    page = Page(browser, made(*BAD))
    page.run("document.querySelector('.columns > .source').parentElement.scrollIntoView()")
    ActionChains(browser).move_to_element(line(browser, 43)).perform()
    assert [row.text.split()[1:3] for row in rows(browser, "a.lit")] == [["conflict", "0c80"]]
    assert page.texts(".source .lit .n") == ["43"]
    ActionChains(browser).move_to_element(rows(browser, "a[data-line='0-40'][data-sites]")[0]).perform()
    assert page.texts(".source .lit .n") == ["40"]
    ActionChains(browser).move_to_element(line(browser, 53)).perform()
    assert len(rows(browser, "a.lit")) == 8
    ActionChains(browser).move_to_element(browser.find_element(By.ID, "pair")).perform()
    assert browser.find_elements(By.CSS_SELECTOR, ".lit") == []


def test_a_fold_is_lit_and_opens_for_what_is_in_it(browser: Chrome, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(report_page(long(1000, 100)), "utf-8")
    page = Page(browser, path)
    folds = rows(browser, "details")
    assert len(folds) == 10 and not any(fold.get_property("open") for fold in folds)
    assert not rows(browser, "details a")[0].is_displayed()
    ActionChains(browser).move_to_element(line(browser, 2)).perform()
    assert len(rows(browser, "summary.lit")) == 10
    rows(browser, "details")[3].find_element(By.TAG_NAME, "summary").click()
    assert [fold.get_property("open") for fold in folds].count(True) == 1
    for _ in range(12):
        line(browser, 2).click()
        assert page.run(IN_VIEW, current(browser))
    assert [fold.get_property("open") for fold in folds].count(True) > 1
    assert page.complaints() == []


def test_ten_thousand_instructions_answer_at_once(browser: Chrome, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(report_page(long(10_000, 40)), "utf-8")
    page = Page(browser, path)
    took = page.run(
        "const from = performance.now(); document.querySelectorAll('.listing a[data-sites]')[200].click();"
        "document.querySelector('.source a').dispatchEvent(new MouseEvent('mouseover', {bubbles: true}));"
        "document.body.offsetHeight; return performance.now() - from"
    )
    assert took < 2000
    assert page.run(IN_VIEW, current(browser))
    assert len(rows(browser, "a")) == 10_000


def test_the_keyboard_goes_through_the_instructions_and_to_the_other_side(
    browser: Chrome, made: Made
) -> None:
    page = Page(browser, made(*BAD))
    stops = page.run(
        "return Array.from(document.querySelectorAll('.listing a')).filter(a => a.tabIndex >= 0).length"
    )
    assert stops == 1
    line(browser, 40).send_keys(Keys.ARROW_RIGHT)
    assert page.run("return document.activeElement.hash") == "#at-c20"
    for key, hash in ((Keys.ARROW_DOWN, "#at-c30"), (Keys.ARROW_DOWN, "#at-c40")):
        browser.switch_to.active_element.send_keys(key)
        assert page.run("return document.activeElement.hash") == hash
        assert page.run(IN_VIEW, browser.switch_to.active_element)
    assert page.shown() == ["3"]
    assert page.run("return getComputedStyle(document.activeElement).outlineStyle") != "none"
    browser.switch_to.active_element.send_keys(Keys.ARROW_LEFT)
    assert page.run("return document.activeElement.hash") == "#line-0-41"
    browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    browser.switch_to.active_element.send_keys(Keys.HOME)
    assert page.run("return document.activeElement.tagName") == "SUMMARY"
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    assert page.run("return document.activeElement.hash") == "#at-0"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_both_sides_have_names_and_stand_side_by_side_or_stacked(
    browser: Chrome, made: Made, dark: bool
) -> None:
    page = Page(browser, made(*BAD), dark=dark)
    boxes = (
        "return ['.source', '.listing', '#details'].map(s => document.querySelector(s))"
        ".map(e => e.getBoundingClientRect()).map(b => [b.left, b.right, b.top, b.bottom])"
    )
    source, listing, details = page.run(boxes)
    assert source[1] <= listing[0] and source[2] == listing[2] and details[2] >= listing[3]
    tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    names = {
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in tree
        if not node.get("ignored")
    }
    assert {("region", "Source"), ("region", "Machine code")} <= names
    (row,) = (name for role, name in names if role == "link" and "0c20" in name)
    assert [
        row.count(part)
        for part in ("2-way conflict", "STS [R85], R68", "64 requests", "128 wavefronts", "2 ways")
    ] == [1] * 5
    source, listing, details = Page(browser, made(*BAD), dark=dark, width=500).run(boxes)
    assert source[3] <= listing[2] and listing[3] <= details[2]


def test_a_trace_without_machine_code_has_no_listing(browser: Chrome, made: Made, tmp_path: Path) -> None:
    trace = catalog()["kernel_v4_colmajor"].trace((256, 256, 16))
    path = tmp_path / "no_listing.npz"
    replace(trace, listing=(), executed=trace.executed[:0]).save(path)
    page = Page(browser, made("report", str(path)))
    assert page.texts("#source") == ["Source"]
    assert browser.find_elements(By.CSS_SELECTOR, ".listing, #pair") == []
    assert page.complaints() == []
    line(browser, 52).click()
    assert page.shown() == ["9"]
