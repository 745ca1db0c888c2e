"""A project in a repository, and a file outside of it whose lines nobody may see."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Run, memsim

__all__ = ["Done", "Run", "memsim"]

SECRET = "int rootpw_7f3a = hunter2_c91e;"


@dataclass(frozen=True)
class Place:
    """`project` is a repository; `secret` lies outside of it, `inside` within, with the same line."""

    project: Path
    secret: Path
    inside: Path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The project, which is the working folder."""
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    secret, inside = tmp_path / "elsewhere" / "secret.txt", project / "shown.txt"
    secret.parent.mkdir()
    for file in (secret, inside):
        file.write_text(f"{SECRET}\n")
    monkeypatch.chdir(project)
    return Place(project, secret, inside)
