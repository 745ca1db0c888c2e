"""The site has every page, and every question is a real one with an answer that a command gives."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import yaml

import memsim
from docs import questions, reference
from memsim.analysis import verdict
from memsim.cli import VERBS
from memsim.counts import assumed_of_copies, unknown_accesses
from memsim.trace import trace_data
from memsim.trace.trace import Trace

ROOT = Path(__file__).parents[2]
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
PAGE = (ROOT / "docs" / "questions.md").read_text("utf-8")


def pages(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [page for item in (nav.values() if isinstance(nav, dict) else nav) for page in pages(item)]


def test_every_page_is_in_the_navigation_once() -> None:
    assert sorted(pages(SITE["nav"])) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))


def test_every_phrase_of_a_first_line_has_a_heading() -> None:
    page = (ROOT / "docs" / "first-line.md").read_text("utf-8")
    keys = re.findall(r"^## (.+)$", page, re.MULTILINE)
    parts = inspect.getsource(verdict), *map(inspect.getsource, (assumed_of_copies, unknown_accesses))
    said = [
        "".join(part.value if isinstance(part, ast.Constant) else "" for part in text.values)
        for source in parts
        for text in ast.walk(ast.parse(source))
        if isinstance(text, ast.JoinedStr)
    ]
    phrases = [phrase for phrase in said if len(re.findall("[a-z]{3,}", phrase)) >= 2]
    assert len(phrases) > 10
    keys = [key.removeprefix("N") for key in keys]  # any number
    assert [phrase for phrase in phrases if not any(key in phrase for key in keys)] == []
    source = "".join(parts) + inspect.getsource(trace_data) + inspect.getsource(Trace)
    assert [key for key in keys if key not in source] == []


def test_each_question_was_asked_somewhere_and_is_answered_by_a_command() -> None:
    asked = PAGE.split("\n## ")[1:]
    assert 10 <= len(asked) <= 15
    shown = []
    for text in asked:
        assert text.splitlines()[0].endswith("?")
        assert "](https://" in text or "same question" in text
        shown += re.findall(r"begin generated: question: (.+) -->\n```text\n\$ memsim ", text)
    assert shown == list(questions.ANSWERS)


def test_the_reference_has_every_verb_and_every_public_name() -> None:
    commands = reference.command_line()
    assert re.findall(r"^## memsim (\S+)$", commands, re.MULTILINE) == list(VERBS)
    assert commands.count("Usage: memsim ") >= len(VERBS)
    names = reference.python_names()
    for name in set(memsim.__all__) - {"__version__"}:
        doc = inspect.getdoc(getattr(memsim, name))
        assert doc and f"## memsim.{name}\n" in names and doc.splitlines()[0] in names


def test_the_answer_about_arbitration_has_the_column_of_it() -> None:
    text = PAGE.split("<!-- begin generated: question: arbitration -->")[1].split("<!-- end generated -->")[0]
    assert "predicted  measured  difference  arbitration  verdict" in " ".join(text.splitlines())
