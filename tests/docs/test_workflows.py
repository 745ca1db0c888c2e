"""The workflows, issue templates and pre-commit's hooks: valid, and about commands and files that exist."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from memsim.cli import VERBS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
ON = True  # YAML 1.1 reads the key `on` so
# What a step may run, and the extra that brings it; None: it is always there, or the step before installs it.
TOOLS = {"lint-imports": "dev", "mkdocs": "docs", "mypy": "dev", "ruff": "dev", "test": None}
MODULES = {"build": None, "pip": None, "pytest": "test", "twine": None}


def load(path: Path) -> dict[Any, Any]:
    document = yaml.safe_load(path.read_text("utf-8"))
    assert isinstance(document, dict)
    return document


def scripts(document: dict[Any, Any]) -> Iterator[tuple[str, str]]:
    """(job, line) of everything that a workflow runs."""
    for name, job in document["jobs"].items():
        for step in job["steps"]:
            for line in step.get("run", "").splitlines():
                yield name, line


def problem(line: str, extras: set[str]) -> str | None:
    """What is wrong with a line of a step, where some extras are installed."""
    words = shlex.split(line)
    if words[0] == "memsim":
        return None if words[1] in VERBS else f"no verb {words[1]}"
    if words[:2] == ["python", "-c"]:
        compile(words[2], line, "exec")
        return None
    if words[0] == "python" and words[1].endswith(".py"):
        return None if (ROOT / words[1]).is_file() else f"no file {words[1]}"
    tools, tool = (MODULES, words[2]) if words[:2] == ["python", "-m"] else (TOOLS, words[0])
    if tool not in tools:
        return f"no tool {tool}"
    if tool == "pytest":
        missing = [word for word in words[3:] if word.startswith("tests/") and not (ROOT / word).exists()]
        markers = " ".join(PROJECT["tool"]["pytest"]["ini_options"]["markers"])
        if missing or ("-m" in words[3:] and f"{words[words.index('-m', 3) + 1]}:" not in markers):
            return f"no such tests: {line}"
    if "--cov" in words and "coverage" not in extras:
        return "pytest-cov is not installed"
    needed = tools[tool]
    return None if needed is None or extras & {needed, "dev", "capture-test"} else f"{tool} is not installed"


def extras_of(document: dict[Any, Any], job: str) -> set[str]:
    lines = [line for name, line in scripts(document) if name == job and "pip install" in line]
    return {
        extra for line in lines for held in re.findall(r"\.\[([\w,-]+)\]", line) for extra in held.split(",")
    }


def test_there_are_all_of_them() -> None:
    names = ["docs", "lint", "newest", "nightly", "release", "tests"]
    assert [path.stem for path in WORKFLOWS] == names
    assert [path.stem for path in TEMPLATES] == ["bug", "config", "idea", "wrong_count"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_what_exists(path: Path) -> None:
    document = load(path)
    assert document["name"] and document[ON] and document["permissions"] == {"contents": "read"}
    known = set(PROJECT["project"]["optional-dependencies"])
    ran = list(scripts(document))
    assert ran
    for job, line in ran:
        extras = extras_of(document, job)
        assert extras <= known
        assert problem(line, extras) is None, line
        assert "${{" not in line  # nothing from outside is pasted into a script
    for job in document["jobs"].values():
        assert job["runs-on"] == "ubuntu-latest"
        assert job.get("needs", "build") in document["jobs"] or "needs" not in job
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
            assert re.fullmatch(r"[\w-]+/[\w-]+@[\w/.]+", step.get("uses", "a/b@v1"))


@pytest.mark.parametrize(
    ("line", "extras"),
    [
        ("memsim chekc", set()),
        ("mkdcos build", {"docs"}),
        ("python tools/set_adress.py", set()),
        ("mkdocs build --strict", {"test"}),
        ("python -m pytest tests/nowhere", {"test"}),
        ("python -m pytest -m slwo", {"test"}),
        ("python -m pytest --cov", {"test"}),
    ],
)
def test_a_wrong_line_would_be_found(line: str, extras: set[str]) -> None:
    assert problem(line, extras) is not None


def test_the_tests_run_on_every_python_that_is_declared() -> None:
    matrix = load(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["tests"]["strategy"]["matrix"]
    declared = [
        found[1]
        for text in PROJECT["project"]["classifiers"]
        if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", text))
    ]
    assert matrix["python"] == declared == ["3.10", "3.11", "3.12", "3.13", "3.14"]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_an_issue_template(path: Path) -> None:
    document = load(path)
    if path.stem == "config":
        assert set(document) <= {"blank_issues_enabled", "contact_links"}
        return
    assert document["name"] and document["description"]
    asked = [item["id"] for item in document["body"]]
    assert len(asked) == len(set(asked))
    assert any(item.get("validations", {}).get("required") for item in document["body"])
    for item in document["body"]:
        assert item["type"] in {"textarea", "input", "dropdown", "markdown", "checkboxes"}
        assert item["attributes"]["label"]
    for verb in re.findall(r"`memsim (\w+)", path.read_text("utf-8")):
        assert verb in VERBS


def test_the_hooks_are_tools_of_the_extra_dev() -> None:
    (repository,) = load(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        assert TOOLS[hook["entry"].split()[0]] == "dev"
        assert hook["language"] == "system"


def test_coverage_is_of_a_package_that_exists() -> None:
    settings = PROJECT["tool"]["coverage"]
    assert [(ROOT / name).is_dir() for name in settings["run"]["source"]] == [True]
    for pattern in settings["report"]["exclude_also"]:
        re.compile(pattern)
