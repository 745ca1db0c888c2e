"""The tools and recorders: what they import is there. What they do needs a GPU, a network or a long time."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOLS = sorted([*(ROOT / "tools").glob("*.py"), *(ROOT / "lab").glob("record_*.py")])


@pytest.mark.parametrize("path", TOOLS, ids=lambda path: path.stem)
def test_a_tool_finds_what_it_imports(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location(f"tools_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look their module up
    monkeypatch.syspath_prepend(path.parent)  # as when it is run
    spec.loader.exec_module(module)
    assert module.__doc__
