"""A name means one thing: no class is defined twice, and a module's name says what is in it.

Modules that correspond have the same name, and only these: a verb of `memsim/cli/` and what it shows, the
formats in the folders of `memsim/views/`, and a module of `memsim/ptx/lowering/` and the one of `memsim/isa/`
with the instructions that it emits.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path
from pkgutil import resolve_name

import pytest

from memsim.isa.table import DEFINITIONS

PACKAGE = Path(__file__).parents[2] / "memsim"
UNITS = PACKAGE / "arch" / "units.py"
FORMATS = ("terminal", "figure", "page", "json", "markdown")


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


@pytest.mark.slow
def test_no_class_is_defined_twice() -> None:
    assert twice(classes(PACKAGE)) == {}


def test_a_second_class_of_a_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("class Line:\n    pass\n\nclass Row:\n    pass\n")
    assert twice(classes(tmp_path)) == {}
    (tmp_path / "other.py").write_text("def f():\n    class Line:\n        pass\n")
    assert twice(classes(tmp_path)) == {"Line": ["one.py", "other.py"]}


def modules(folder: Path) -> dict[str, list[str]]:
    """Where a module of each name is, but for those that are called as what they correspond to."""
    found = defaultdict(list)
    for path in sorted(folder.rglob("*.py")):
        room = path.parent.relative_to(folder).as_posix()
        is_view = room.startswith("views/") and path.stem in FORMATS
        if not (room in ("cli", "ptx/lowering") or is_view or path.stem == "__init__"):
            found[path.stem].append(path.relative_to(folder).as_posix())
    return found


def test_no_two_modules_have_the_same_name() -> None:
    assert twice(modules(PACKAGE)) == {}


def test_a_second_module_of_a_name_is_found(tmp_path: Path) -> None:
    names = ("guard/check.py", "cli/check.py", "views/check/page.py", "views/flow/page.py", "isa/__init__.py")
    for name in (*names, "ptx/__init__.py", "ptx/lowering/moves.py", "isa/moves.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert twice(modules(tmp_path)) == {}
    (tmp_path / "isa/check.py").touch()
    assert twice(modules(tmp_path)) == {"check": ["guard/check.py", "isa/check.py"]}


def sizes_of_the_chip(path: Path) -> list[str]:
    """Which of a chip's sizes a module defines for itself."""
    names = {node.id for node in ast.walk(ast.parse(UNITS.read_text("utf-8"))) if isinstance(node, ast.Name)}
    return [
        target.id
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id in names
    ]


@pytest.mark.slow
def test_the_sizes_of_the_chip_are_in_one_file(tmp_path: Path) -> None:
    assert {path for path in PACKAGE.rglob("*.py") if sizes_of_the_chip(path)} == {UNITS}
    (tmp_path / "own.py").write_text("BANKS = 32\nROWS = 64\n")
    assert sizes_of_the_chip(tmp_path / "own.py") == ["BANKS"]


def not_there(text: str) -> list[str]:
    """What is named in backticks as `memsim.room.name`, and is not there."""
    found = []
    for name in re.findall(r"`(memsim(?:\.[a-z_]+)+)`", text):
        try:
            resolve_name(name)
        except (ImportError, AttributeError):
            found.append(name)
    return [name for name in found if name != "memsim.toml"]


def test_what_docstrings_name_is_there() -> None:
    texts = {path.relative_to(PACKAGE): path.read_text("utf-8") for path in PACKAGE.rglob("*.py")}
    found = {path: not_there(text) for path, text in texts.items()}
    assert {path: names for path, names in found.items() if names} == {}
    named = "`memsim.views.explain`, `memsim.load`, `memsim.inspect.request` and `memsim.launch`"
    assert not_there(named) == ["memsim.inspect.request"]


def opcodes_in(path: Path) -> list[str]:
    """The strings of a module, but for its docstrings, that name an opcode, and where it asks for one."""
    tree = ast.parse(path.read_text("utf-8"))
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    asked = (node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return [f".{name}" for name in asked if name in ("opcode", "modifiers")] + [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in prose
        and not DEFINITIONS.keys().isdisjoint(re.split(r"\W", node.value))
    ]


#: A cause in a report, which users know by this name.
TOLD = "the last bit of MUFU"
#: Of the interpreter, whose operations do what functions of memsim/isa/ do: it asks for modes, as they do.
MODES = {".modifiers", "POPC"}


def test_what_listens_and_executes_names_no_opcode(tmp_path: Path) -> None:
    """What it asks of instructions are traits, accesses and signatures, which their definitions state."""
    rooms = (PACKAGE / name for name in ("simt", "order", "state", "sanitizer"))
    found = [name for room in rooms for path in room.rglob("*.py") for name in opcodes_in(path)]
    assert found == [TOLD]
    found = [name for path in (PACKAGE / "interpreter").rglob("*.py") for name in opcodes_in(path)]
    assert {*found} == MODES
    (tmp_path / "own.py").write_text('"""As LDS does."""\nif op.name in ("LDS.U", "load"):\n    "STS"\n')
    assert opcodes_in(tmp_path / "own.py") == ["LDS.U"]
    (tmp_path / "own.py").write_text("if op.form.opcode == MINE or form.modifiers or op.traits:\n    pass\n")
    assert {*opcodes_in(tmp_path / "own.py")} == {".opcode", ".modifiers"}
