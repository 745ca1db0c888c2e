"""The playground in a real browser: what is typed is answered, a cure is a click, the address keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from memsim.cli import main
from memsim.play.gallery import static_page
from memsim.play.server import server
from tests.browser.conftest import Page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with server() as listening:
        Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_address[1]}/"
        listening.shutdown()


def shows(browser: Chrome, text: str, where: str = "answers") -> None:
    WebDriverWait(browser, 20).until(lambda b: text in b.find_element(By.ID, where).text)


def test_a_conflict_is_typed_cured_and_kept_in_the_address(browser: Chrome, address: str) -> None:
    browser.get(address)
    shows(browser, "32-way bank conflict")
    field = browser.find_element(By.NAME, "load")
    field.clear()
    field.send_keys("x, 2 * y % 32")
    shows(browser, "tile[x, 2 * y % 32].load()")
    swizzle = next(b for b in browser.find_elements(By.CSS_SELECTOR, "#cures button") if "swizzle" in b.text)
    swizzle.click()
    shows(browser, "conflict-free")
    titles = [h.text for h in browser.find_elements(By.CSS_SELECTOR, "#answers h2")]
    assert titles[0].startswith("after: tile Sw<") and titles[1].startswith("before: tile (32,32):(32,1)")
    kept = browser.current_url
    browser.get("about:blank")
    browser.get(kept)
    shows(browser, "conflict-free")
    assert str(browser.find_element(By.NAME, "layout").get_attribute("value")).startswith("Sw<")


def test_every_example_has_an_answer_and_a_mistake_its_reason(browser: Chrome, address: str) -> None:
    browser.get(address)
    shows(browser, "32-way bank conflict")
    examples = browser.find_elements(By.CSS_SELECTOR, "#gallery button")
    assert len(examples) == 10
    for example in examples:
        browser.execute_script("document.getElementById('answers').replaceChildren()")
        example.click()
        shows(browser, "tile")
        assert browser.find_element(By.ID, "error").text == "", example.text
    field = browser.find_element(By.NAME, "load")
    field.clear()
    field.send_keys("x, y +")
    shows(browser, "an index is integer arithmetic", "error")
    entries = browser.get_log("browser")  # type: ignore[no-untyped-call]
    assert all("422" in entry["message"] for entry in entries if entry["level"] == "SEVERE")


def test_the_gallery_needs_no_server_and_says_what_does(browser: Chrome, tmp_path: Path) -> None:
    path = tmp_path / "gallery.html"
    path.write_text(static_page(), "utf-8")
    page = Page(browser, path)
    shows(browser, "32-way bank conflict")
    swizzle = next(b for b in browser.find_elements(By.CSS_SELECTOR, "#cures button") if "swizzle" in b.text)
    swizzle.click()
    shows(browser, "conflict-free")
    for example in browser.find_elements(By.CSS_SELECTOR, "#gallery button"):
        browser.execute_script("document.getElementById('answers').replaceChildren()")
        example.click()
        shows(browser, "tile")
        assert browser.find_element(By.ID, "error").text == "", example.text
    field = browser.find_element(By.NAME, "load")
    field.clear()
    field.send_keys("y, x + 1")
    shows(browser, "memsim play '#layout=", "error")
    assert not browser.find_element(By.ID, "saved").is_displayed()
    assert page.complaints() == []
    assert [url for url in page.requests() if not url.startswith(("data:", "about:"))] == [path.as_uri()]


def test_the_folder_of_a_saved_launch_becomes_a_report(browser: Chrome, address: str, tmp_path: Path) -> None:
    assert (
        main(["analyze", "transpose_naive", "--size", "64,64", "--save-launch", str(tmp_path / "run")]) == 0
    )
    browser.get(address)
    browser.find_element(By.ID, "launch").send_keys(str(tmp_path / "run"))
    WebDriverWait(browser, 20).until(lambda b: b.current_url.startswith("blob:"))
    assert browser.find_element(By.ID, "verdict").text.startswith("Worst is the load")
