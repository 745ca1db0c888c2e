"""The rooms of docs/architecture.md: data flows one way, and `import memsim` is light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "memsim"

# A room may import those before it. "memsim" is the package's own `__init__.py`.
ROOMS = (
    *("errors", "launch", "arch", "data", "source"),
    *("compile", "ptx", "state", "isa", "sass", "simt", "trace", "model", "analysis", "bound", "details", "guard"),
    *("arguments", "kernel", "job", "api", "kernels", "targets", "validate", "report"),
    *("memsim", "cli", "pytest_plugin", "__main__"),
)
# What a room must not know although it comes before: models are plain numpy, reports compute nothing.
MUST_NOT_KNOW = {
    "arch": {"launch"},
    "state": {"compile"},
    "isa": {"compile", "ptx"},
    "model": {"launch", "compile", "ptx", "state", "isa", "sass", "simt", "trace"},
    "analysis": {"compile", "ptx", "state", "isa", "sass", "simt"},
    "job": {"compile", "ptx", "state", "isa", "sass", "simt", "trace", "model"},
    "guard": {"compile", "ptx", "state", "isa", "sass", "simt", "trace"},
    "validate": {"simt", "isa", "state"},
    "report": {"compile", "ptx", "state", "isa", "sass", "simt", "model", "api", "kernels"},
}
# The one door back: an `Analysis` shows itself, by hooks that import a report when they are called.
DOORS = {("memsim.analysis", "report")}
HEAVY = ("click", "cupy", "jinja2", "matplotlib", "networkx", "numpy", "rich")


def room_of(module: str) -> str:
    """`memsim.ptx.program` -> `ptx`; a name that is no module of the package is the package's own."""
    name = module.partition(".")[2].partition(".")[0]
    is_module = (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()
    return name if name and is_module else "memsim"


def imported_modules(source: str, package: str) -> set[str]:
    """Full names of all that a module in `package` imports, wherever in the file."""
    modules = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            modules |= {f"{base}.{alias.name}" for alias in node.names}
    return modules


def faults(source: str, module: str, package: str) -> list[str]:
    """Imports of `source` that run backwards, or into a room that it must not know."""
    room = room_of(module)
    others = {room_of(name) for name in imported_modules(source, package) if name.split(".")[0] == "memsim"}
    return [
        f"{module} ({room}) imports {other}"
        for other in sorted(others - {room})
        if (module, other) not in DOORS
        and (ROOMS.index(other) > ROOMS.index(room) or other in MUST_NOT_KNOW.get(room, ()))
    ]


def every_module() -> list[tuple[Path, str, str]]:
    """(path, module, package) of each Python file of memsim."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = ["memsim", *path.relative_to(PACKAGE).with_suffix("").parts]
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append((path, module, module if path.stem == "__init__" else ".".join(parts[:-1])))
    return found


def test_every_room_has_its_place() -> None:
    assert {room_of(module) for _, module, _ in every_module()} <= set(ROOMS)


def test_the_document_shows_the_same_rooms() -> None:
    document = (PACKAGE.parent / "docs" / "architecture.md").read_text("utf-8")
    rows = re.findall(r"^\| `memsim/(\w+)(?:\.py|/)`", document, re.MULTILINE)
    assert [{"__init__": "memsim"}.get(room, room) for room in rows] == [*ROOMS[:-1]]


def test_no_import_runs_backwards() -> None:
    assert [
        fault for path, *names in every_module() for fault in faults(path.read_text("utf-8"), *names)
    ] == []


@pytest.mark.parametrize(
    ("backwards", "forwards"),
    [
        ("from memsim.model import shared_access", "from memsim.ptx.program import Module"),
        ("import memsim.analysis", "import memsim.launch"),
        ("def f():\n    from memsim.report import text", "def f():\n    from memsim.ptx import program"),
        ("from ..trace.trace import Trace", "from ..ptx.program import Module"),
        ("from .. import analysis", "from . import joins"),
        ("from memsim import analyze", "from memsim import errors"),
        ("if TYPE_CHECKING:\n    from memsim.cli import main", "if TYPE_CHECKING:\n    import networkx"),
    ],
)
def test_a_planted_fault_is_found(backwards: str, forwards: str) -> None:
    assert len(faults(backwards, "memsim.simt.machine", "memsim.simt")) == 1
    assert faults(forwards, "memsim.simt.machine", "memsim.simt") == []


def test_a_model_must_not_know_the_emulator_although_it_comes_before() -> None:
    assert faults("from memsim.simt import machine", "memsim.model.shared", "memsim.model")
    assert not faults("from memsim.arch import get_arch", "memsim.model.shared", "memsim.model")


def test_the_door_back_is_shut_until_somebody_asks() -> None:
    assert faults("from memsim.report import text", "memsim.analysis", "memsim") == []
    assert faults("from memsim.report import text", "memsim.details.flow", "memsim.details")
    assert faults("from memsim.cli import main", "memsim.analysis", "memsim")
    asked = "import memsim.analysis, sys; print([name for name in sys.modules if 'memsim.report' in name])"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def loaded_by(code: str) -> str:
    """Which of the heavy packages a fresh interpreter holds after `code`."""
    code += f"; import sys; print([name for name in {HEAVY} if name in sys.modules])"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_import_memsim_is_light() -> None:
    assert loaded_by("import memsim") == "[]"
    assert loaded_by("import memsim; memsim.ArrayArg") == "['numpy']"
