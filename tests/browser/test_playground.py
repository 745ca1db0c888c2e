"""The playground in a real browser: what is typed is answered, a cure is a click, the address keeps it."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copytree
from threading import Thread

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

import memsim
from docs.gallery import static_page
from docs.playground import FILES
from memsim.cli import main
from memsim.play.replies import NARROW, reply
from memsim.play.server import HERE, server
from tests.browser.conftest import Page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with server() as listening:
        Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_address[1]}/"
        listening.shutdown()


def shows(browser: Chrome, text: str, where: str = "answers", seconds: int = 20) -> None:
    WebDriverWait(browser, seconds).until(lambda b: text in b.find_element(By.ID, where).text)


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


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """The address of the gallery on a site with Python for the browser."""
    if not FILES.is_dir():
        pytest.skip("needs the files that `python docs/playground.py` fetches")
    copytree(FILES, tmp_path / "playground")
    (tmp_path / "playground" / "worker.js").write_bytes((HERE / "worker.js").read_bytes())
    (tmp_path / "gallery.html").write_text(static_page("playground/worker.js"), "utf-8")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_address[1]}/gallery.html"
        listening.shutdown()


def test_the_site_answers_everything_by_python_in_the_browser(
    browser: Chrome, site: str, tmp_path: Path
) -> None:
    browser.get(site)
    shows(browser, "32-way bank conflict")
    field = browser.find_element(By.NAME, "load")
    field.clear()
    field.send_keys("x, 2 * y % 32")
    shows(browser, "tile[x, 2 * y % 32].load()", seconds=300)
    field.clear()
    field.send_keys("x, y + 1")
    shows(browser, "outside of tile", "error")
    memsim.catalog()["transpose_naive"].trace((64, 64)).save(tmp_path / "t.npz")
    browser.find_element(By.ID, "trace").send_keys(str(tmp_path / "t.npz"))
    WebDriverWait(browser, 60).until(lambda b: b.current_url.startswith("blob:"))
    native = reply("trace", (tmp_path / "t.npz").read_bytes())[1].decode()
    island = browser.execute_script("return document.getElementById('analysis').textContent")
    assert json.loads(island) == json.loads(native.split('id="analysis">')[1].split("</script>")[0])
    assert browser.find_element(By.ID, "verdict").text.startswith("Worst is the load")


def test_the_site_executes_a_saved_launch(browser: Chrome, site: str, tmp_path: Path) -> None:
    """With addresses beyond 32 bits; its counts are those of the emulator outside, said not to be certain."""
    (tmp_path / "far.cu").write_text(
        "__global__ void far(float *x, double *y, long step) {\n"
        "    __shared__ float t[1024];\n"
        "    size_t at = (size_t)blockIdx.x * step + threadIdx.x;\n"
        "    t[threadIdx.x * 3 % 1024] = x[at * 2];\n"
        "    __syncthreads();\n"
        "    y[at] = t[threadIdx.x] + x[at + 1];\n"
        "}\n"
    )
    arrays = ["--arg", "f32[8589934592]", "--arg", "f64[4294967296]", "--arg", "67108864"]
    run = tmp_path / "run"
    words = [str(tmp_path / "far.cu"), "--grid", "60", "--block", "128", *arrays]
    assert main(["analyze", *words, "--save-launch", str(run)]) == 0
    browser.get(site)
    browser.find_element(By.ID, "launch").send_keys(str(run))
    WebDriverWait(browser, 300).until(lambda b: b.current_url.startswith("blob:"))
    island = json.loads(browser.execute_script("return document.getElementById('analysis').textContent"))
    files = {
        path.relative_to(run).as_posix(): b64encode(path.read_bytes()).decode()
        for path in run.rglob("*")
        if path.is_file()
    }
    native = reply("launch", json.dumps(files).encode())[1].decode()
    expected = json.loads(native.split('id="analysis">')[1].split("</script>")[0])
    for document in (island, expected):
        for site_row in document["sites"]:
            site_row["file"] = Path(site_row["file"]).name
    assert island["uncertain"] == [NARROW] and not expected["uncertain"]
    assert island["sites"] == expected["sites"] and island["sites"]
