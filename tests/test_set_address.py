"""What is published knows its own address: the README's links, and the project's URLs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from memsim.version import __version__
from tools import set_address

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
ADDRESS, TAG = "https://github.com/someone/memsim", "v1.2.3"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that are rewritten, and the tool."""
    (tmp_path / "tools").mkdir()
    for name in ("README.md", "pyproject.toml", "tools/set_address.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def set_in(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(checkout / "tools" / "set_address.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_link_of_the_published_readme_is_absolute_and_leads_to_a_file(checkout: Path) -> None:
    before = (ROOT / "README.md").read_text("utf-8")
    assert set_in(checkout, ADDRESS, TAG).returncode == 0
    text = (checkout / "README.md").read_text("utf-8")
    there = list(set_address.links(text))
    assert len(there) == len(list(set_address.links(before))) >= 8
    for kind, target in there:
        start = f"{ADDRESS}/{'raw' if kind == 'image' else 'blob'}/{TAG}/"
        assert target.startswith(start)
        assert (ROOT / target.removeprefix(start)).is_file()
    assert {kind for kind, _ in there} == {"link", "image"}
    assert "pip install memsim\n" in text and "pip install ." not in text
    changed = [line for line in before.splitlines() if line not in text.splitlines()]
    assert [line for line in changed if not re.search(r"\]\([\w/.]+\)|pip install", line)] == []


def test_the_project_has_urls(checkout: Path) -> None:
    assert set_in(checkout, ADDRESS, TAG).returncode == 0
    old, new = (tomllib.loads((folder / "pyproject.toml").read_text("utf-8")) for folder in (ROOT, checkout))
    found = new["project"].pop("urls")
    assert new == old
    assert list(found) == ["Source", "Documentation", "Changelog", "Issues"]
    for url in found.values():
        name = url.removeprefix(f"{ADDRESS}/blob/{TAG}/")
        assert url in (ADDRESS, f"{ADDRESS}/issues") or (ROOT / name).is_file()


@pytest.mark.parametrize("address", ["github.com/someone/memsim", "https://github.com", f"{ADDRESS}/tree"])
def test_what_is_no_address_changes_nothing(checkout: Path, address: str) -> None:
    assert set_in(checkout, address, TAG).returncode != 0
    for name in ("README.md", "pyproject.toml"):
        assert (checkout / name).read_bytes() == (ROOT / name).read_bytes()


def test_code_holds_no_links() -> None:
    assert list(set_address.links("```python\nadd[n](x)\n```\n[a](b.md) ![c](d.png)\n")) == [
        ("link", "b.md"),
        ("image", "d.png"),
    ]


def test_the_version_is_the_same_wherever_it_stands() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    (latest, *_) = re.findall(r"^## (\S+)", changelog, re.MULTILINE)
    (cited,) = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    assert latest == cited == __version__


def test_a_tag_of_the_action_publishes_nothing() -> None:
    (pattern,) = re.findall(r'tags: \["(.*)"\]', (ROOT / ".github/workflows/release.yml").read_text("utf-8"))
    assert fnmatch("v0.1.0", pattern) and not fnmatch("v1", pattern)
