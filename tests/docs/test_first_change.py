"""docs/first-change.md: its excerpts are whole definitions. tests/test_generated.py keeps them fresh."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs import first_change

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "first-change.md").read_text("utf-8")


def test_an_excerpt_has_its_decorators_and_nothing_else() -> None:
    shown = first_change.excerpt("memsim/isa/definitions.py", "executes", "computes")
    code = shown.removeprefix("```python\n# memsim/isa/definitions.py\n").removesuffix("\n```\n")
    assert code.startswith("def executes(") and "\n\n\ndef computes(" in code and "def define(" not in code
    assert all(
        part in (ROOT / "memsim/isa/definitions.py").read_text("utf-8") for part in code.split("\n\n\n")
    )
    assert first_change.PARTS["first change: opcode"]().splitlines()[2].startswith("@executes(")


def test_a_definition_that_is_gone_is_named() -> None:
    with pytest.raises(KeyError, match=r"memsim/isa/definitions.py does not define nothing"):
        first_change.excerpt("memsim/isa/definitions.py", "computes", "nothing")


def test_the_files_that_the_page_names_are_there() -> None:
    named = set(re.findall(r"(?:memsim|tests|docs)/[\w/.-]*\w", PAGE))
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []
