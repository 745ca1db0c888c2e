"""The rooms of docs/architecture.md: data flows one way, and `import memsim` is light.

The contracts are in pyproject.toml; here, that they hold, and that a fault would be found.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "memsim"
HEAVY = ("click", "cupy", "jinja2", "matplotlib", "networkx", "numpy", "rich")
LINT = (
    "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_logo=True, no_cache=True))"
)

# The module that gets an import, what breaks a contract, its good twin, and how the fault is told.
FAULTS = (
    (
        "simt/groups",
        "from memsim.views import labels",
        "from memsim.names import demangle",
        "-> memsim.views",
    ),
    ("sass/decode", "import memsim.analysis", "import memsim.launch", "-> memsim.analysis"),
    ("isa/number_formats", "def f():\n    from memsim.cli import main", "import networkx", "-> memsim.cli"),
    ("isa/control", "from ..trace.trace import Trace", "from ..errors import MemsimError", "-> memsim.trace"),
    ("trace/writers", "from memsim import analyze", "from memsim import errors", "-> memsim"),
    ("state/rounding", "if 0:\n    from memsim.simt import engine", "import memsim.launch", "-> memsim.simt"),
    ("order/warp_clocks", "import memsim.isa.op", "import memsim.state.parts", "-> memsim.isa"),
    ("model/choice", "from memsim.simt import engine", "import memsim.errors", "-> memsim.simt"),
    (
        "analysis/analysis",
        "def f():\n    from memsim.views.plot import Plots",
        "import memsim.bound",
        "-> memsim.views",
    ),
    ("suggest/suggestions", "import memsim.shown", "import memsim.job", "-> memsim.shown"),
    ("errors", "import studies.counted", "import networkx", "-> studies.counted"),
    ("version", "import lab.rules_file", "import networkx", "-> lab.rules_file"),
    (
        "views/labels",
        "import memsim.targets.analyze_targets",
        "import memsim.guard.judge",
        "-> memsim.targets",
    ),
    ("views/explain/sentences", "import memsim.model.shared", "import memsim.guard.judge", "-> memsim.model"),
)
CYCLES = (
    ("guard/select", "import memsim.guard.judge", "import memsim.guard.select"),
    ("model/checked_requests", "import memsim.model.shared", "import memsim.arch"),
)


def contracts() -> list[dict[str, Any]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    found: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return found


def lint(folder: Path) -> tuple[int, str]:
    """What import-linter says of the package in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", LINT], cwd=folder, env=environment, capture_output=True, encoding="utf-8"
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package by itself, to be spoilt."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for folder in (PACKAGE, ROOT / "studies", ROOT / "lab"):
        shutil.copytree(folder, tmp_path / folder.name, ignore=shutil.ignore_patterns("__pycache__", "_data"))
    return tmp_path


@pytest.mark.slow
def test_the_contracts_hold() -> None:
    code, said = lint(ROOT)
    assert code == 0, said
    assert f"{len(contracts())} kept, 0 broken" in said


def test_no_contract_has_an_exception() -> None:
    assert [contract["name"] for contract in contracts() if "ignore_imports" in contract] == []
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    assert set(settings) == {"root_packages", "contracts"}  # imports under TYPE_CHECKING count too


def plant(copy: Path, lines: dict[str, str]) -> None:
    """Adds a line to each of these modules."""
    for module, line in lines.items():
        text = (PACKAGE / f"{module}.py").read_text("utf-8")
        (copy / "memsim" / f"{module}.py").write_text(f"{text}\n{line}\n", "utf-8")


@pytest.mark.slow
def test_a_planted_fault_is_found_and_its_good_twin_is_none(copy: Path) -> None:
    plant(copy, {module: fault for module, fault, *_ in (*FAULTS, *CYCLES)})
    code, said = lint(copy)
    assert code == 1
    for module, _, _, told in FAULTS:
        assert f"memsim.{module.replace('/', '.')} {told}" in said
    for module, *_ in CYCLES:
        assert f"No cycles are allowed in memsim.{module.partition('/')[0]}." in said

    plant(copy, {module: twin for module, _, twin, *_ in (*FAULTS, *CYCLES)})
    code, said = lint(copy)
    assert code == 0, said


@pytest.mark.slow
def test_a_module_without_a_room_is_found(copy: Path) -> None:
    (copy / "memsim" / "utils.py").write_text("")
    code, said = lint(copy)
    assert code == 1 and "utils" in said


def test_every_folder_is_seen() -> None:
    """A folder without `__init__.py` is no part of the graph that import-linter reads."""
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_the_document_shows_the_same_rooms() -> None:
    document = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rows = re.findall(r"^\| `memsim/(\w+)(?:\.py|/)`", document, re.MULTILINE)
    (layers,) = (contract["layers"] for contract in contracts() if contract["type"] == "layers")
    assert [room for room in rows if room != "__init__"] == [*reversed(layers)][:-1]  # but for __main__


def test_nothing_that_shows_is_imported_before_somebody_asks() -> None:
    asked = "import memsim.shown, sys; print([name for name in sys.modules if 'memsim.views' in name])"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def loaded_by(code: str) -> str:
    """Which of the heavy packages a fresh interpreter holds after `code`."""
    code += f"; import sys; print([name for name in {HEAVY} if name in sys.modules])"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_help_is_light() -> None:
    said = loaded_by("import memsim.cli; memsim.cli.run(memsim.cli.cli, ['--help'], 'memsim')")
    assert "analyze" in said and said.splitlines()[-1] == "['click']"


def test_import_memsim_is_light() -> None:
    assert loaded_by("import memsim") == "[]"
    assert loaded_by("import memsim; memsim.ArrayArg") == "['numpy']"
