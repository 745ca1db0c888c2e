"""A headless Chromium, driven by Selenium; where there is none, the tests say so and are skipped.

Pages are opened from files. The browser has a fresh profile and asks for nothing on the network by itself.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from memsim.cli import main

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--window-size=1500,1000",
)
#: A change of the address, such as by a click, is told to the page's script as a task of its own.
SETTLED = "requestAnimationFrame(() => setTimeout(arguments[0]))"


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    binary = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("needs chromium and chromedriver (Debian: apt-get install chromium chromium-driver)")
    options = ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = Chrome(options=options, service=Service(driver))
    yield chrome
    chrome.quit()


class Page:
    """A page in the browser: what it logged, what it asked the network for, and what its scripts say."""

    def __init__(self, browser: Chrome, path: Path, *, dark: bool = False, width: int = 1500) -> None:
        self.browser = browser
        browser.get_log("browser")
        browser.get_log("performance")
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        browser.set_window_size(width, 1000)
        browser.get("about:blank")
        browser.get(path.as_uri())

    def run(self, script: str, *arguments: Any) -> Any:
        """What `return ...` gives in the page, once it has done what a click or a key has begun."""
        self.browser.execute_async_script(SETTLED)
        return self.browser.execute_script(script, *arguments)

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements that a CSS selector finds, hidden ones too."""
        found: list[str] = self.run(
            "return Array.from(document.querySelectorAll(arguments[0])).map(e => e.textContent.trim())",
            selector,
        )
        return found

    def shown(self) -> list[str]:
        """The sites whose details can be seen."""
        sites: list[str] = self.run(
            "return Array.from(document.querySelectorAll('.detail'))"
            ".filter(e => e.checkVisibility()).map(e => e.dataset.site)"
        )
        return sites

    def complaints(self) -> list[str]:
        """What the console said, warnings too."""
        return [entry["message"] for entry in self.browser.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses that the page asked for."""
        events = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`made("report", "kernel_v4", ...)` runs the verb, once, and gives the page that it wrote."""
    pages: dict[tuple[str, ...], Path] = {}

    def make(*arguments: str) -> Path:
        if arguments not in pages:
            path = tmp_path_factory.mktemp("pages") / "page.html"
            assert main([*arguments, "-o", str(path)]) == 0
            pages[arguments] = path
        return pages[arguments]

    return make
