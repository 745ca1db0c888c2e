"""All targets of a project at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from memsim.cli import main

KERNEL = """__global__ void k(int *o) { __shared__ int s[64]; int t = threadIdx.x;
s[t] = t;
BARRIER
o[t] = s[t ^ 32]; }
"""
TARGET = """[[targets]]
name = "{0}"
file = "k.cu"
grid = 1
block = 64
args = ["i32[64]"]
options = ["-DBARRIER={1}"]
"""
WITHOUT, WITH = TARGET.format("without", ""), TARGET.format("whole", "__syncthreads()")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a kernel."""
    (tmp_path / "k.cu").write_text(KERNEL.replace("BARRIER", "BARRIER;"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_a_target_all_of_the_project_are_looked_at(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "memsim.toml").write_text(WITHOUT + WITH)
    assert main(["sanitize"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "k: 1 race" and said[-2] == "whole: no error found"
    assert said[-1] == "2 targets: findings in 1, not all judged in 0"
    (here / "memsim.toml").write_text(WITH)
    assert main(["sanitize"]) == 0


def test_a_target_that_does_not_compile_is_not_judged(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "memsim.toml").write_text(WITH + TARGET.format("broken", "no_such_name"))
    assert main(["sanitize"]) == 2
    said = capsys.readouterr()
    assert "broken: not judged: k.cu:3" in said.err and "whole: no error found" in said.out


def test_without_a_project_a_target_is_asked_for(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sanitize"]) == 2
    assert "there is no TARGET, and no memsim.toml here" in capsys.readouterr().err
