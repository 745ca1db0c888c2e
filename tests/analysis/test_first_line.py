"""What a first line says is explained, where its reader is."""

from __future__ import annotations

import io
import re

import pytest

from memsim import data
from memsim.analysis import analyze_trace
from memsim.analysis import verdict as first_line
from memsim.analysis.verdict import phrases_in
from memsim.arch import ARCHS
from memsim.views.analyze import terminal
from memsim.views.report import report_page
from tests.traces import LANES, Request, make_trace, site

CONFLICT = (site(), [Request(LANES * 128)])
CLEAN = (site(), [Request(LANES * 4)])
PUBLISHED = "https://example.org/blob/v1/docs/index.md"


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_line, "documentation", lambda: PUBLISHED)
    first_line._phrases.cache_clear()


@pytest.fixture(autouse=True)
def anew() -> None:
    first_line._phrases.cache_clear()


def said(verdict: str, kernel: str = "k") -> list[tuple[str, str]]:
    return [(verdict[place], phrase.anchor) for place, phrase in phrases_in(verdict, kernel)]


def test_each_phrase_is_found_where_it_stands() -> None:
    verdict = (
        "k: worst is the load at k.cu:3: 32-way bank conflict; rules of sm_80 are assumed to equal sm_90's"
    )
    assert said(verdict) == [
        ("32-way bank conflict", "n-way-bank-conflict"),
        ("are assumed to equal", "are-assumed-to-equal"),
    ]


def test_names_of_kernels_and_files_say_nothing() -> None:
    assert said("textures: worst is the load at textures.cu:3: x", "textures") == []
    assert said("k: textures: 4 sectors in 1 request") == [("textures", "textures")]
    assert said("k: conflict-free: 4 shared wavefronts, none wasted by bank conflicts") == [
        ("conflict-free", "conflict-free")
    ]


def test_a_document_has_the_phrases_with_their_meaning() -> None:
    (phrase,) = analyze_trace(make_trace(CONFLICT)).to_dict()["phrases"]
    assert phrase["phrase"] == "N-way bank conflict" and "one bank" in phrase["means"]
    assert phrase["address"] == "docs/first-line.md#n-way-bank-conflict"


def test_a_report_leads_from_each_phrase_to_its_explanation() -> None:
    page = report_page(analyze_trace(make_trace(CLEAN), "sm_80"))
    (verdict,) = re.findall(r'<p id="verdict"[^>]*>(.*)</p>', page)
    assert verdict.startswith('<a href="#conflict-free">Conflict-free</a>: ')
    for anchor in re.findall(r'href="#([^"]+)"', verdict):
        assert page.count(f'<dt id="{anchor}">') == 1
    assert "https:" not in page.partition('<dl class="said">')[2].partition("</dl>")[0]


def test_what_a_name_has_of_html_is_text() -> None:
    trace = make_trace((site(file="<b>.cu"), [Request(LANES * 128)]), kernel="k<T&>")
    (verdict,) = re.findall(r'<p id="verdict"[^>]*>(.*)</p>', report_page(analyze_trace(trace)))
    assert verdict.startswith("Worst is") and "&lt;b&gt;.cu" in verdict and "<b>" not in verdict


def test_where_the_pages_are_published_everything_leads_there(published: None) -> None:
    analysis = analyze_trace(make_trace(CLEAN))
    address = "https://example.org/blob/v1/docs/first-line.md#conflict-free"
    assert analysis.to_dict()["phrases"][0]["address"] == address
    assert f'<a href="{address}">conflict-free</a>' in report_page(analysis)
    shown, plain = io.StringIO(), io.StringIO()
    terminal.write(analysis, shown, colours=True)
    terminal.write(analysis, plain)
    assert f";{address}\x1b\\conflict-free" in re.sub(r"\x1b\[[\d;]*m", "", shown.getvalue())
    assert address not in plain.getvalue()


def test_the_address_is_that_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    class Metadata:
        def __init__(self, urls: list[str] | None) -> None:
            self.urls = urls

        def get_all(self, name: str) -> list[str] | None:
            return self.urls if name == "Project-URL" else None

    urls = ["Source, https://example.org", f"Documentation, {PUBLISHED}"]
    for told, expected in ((urls, PUBLISHED), (urls[:1], ""), (None, "")):
        monkeypatch.setattr("importlib.metadata.metadata", lambda name, told=told: Metadata(told))
        assert data.documentation() == expected


def test_every_chip_has_its_phrase() -> None:
    for name in ARCHS:
        verdict = analyze_trace(make_trace(CLEAN), name).verdict
        assert [anchor for _, anchor in said(verdict, "kernel")][1:] or "rules of" not in verdict
