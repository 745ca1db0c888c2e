"""A name means one thing: no class is defined twice."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "memsim"


def classes(folder: Path) -> dict[str, list[str]]:
    """Where each class below a folder is defined."""
    found = defaultdict(list)
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(path.relative_to(folder).as_posix())
    return found


def twice(found: dict[str, list[str]]) -> dict[str, list[str]]:
    """What is defined more than once."""
    return {name: places for name, places in found.items() if len(places) > 1}


def test_no_class_is_defined_twice() -> None:
    assert twice(classes(PACKAGE)) == {}


def test_a_second_class_of_a_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("class Line:\n    pass\n\nclass Row:\n    pass\n")
    assert twice(classes(tmp_path)) == {}
    (tmp_path / "other.py").write_text("def f():\n    class Line:\n        pass\n")
    assert twice(classes(tmp_path)) == {"Line": ["one.py", "other.py"]}
