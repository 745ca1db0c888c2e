"""What docs/own_kernels.md and docs/ci.md show can be typed as it stands there."""

from __future__ import annotations

import os
import re
import runpy
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from memsim.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "own_kernels.md").read_text("utf-8")


def block(language: str, words: str) -> str:
    """The fenced block of a language that has these words in it."""
    (found,) = [text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if words in text]
    return str(found)


def run(folder: Path, command: str) -> str:
    """What a command of memsim prints."""
    name, *arguments = shlex.split(command, comments=True)
    assert name == "memsim"
    out, err = StringIO(), StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        code = main(arguments)
    assert (code, err.getvalue()) == (0, "")
    return out.getvalue()


def run_script(file: Path) -> list[str]:
    """The lines that a Python script prints, run in its folder."""
    out = StringIO()
    with chdir(file.parent), redirect_stdout(out):
        runpy.run_path(file.name, run_name="__main__")
    return out.getvalue().splitlines()


@contextmanager
def chdir(folder: Path) -> Iterator[None]:
    """The working folder, meanwhile; `contextlib.chdir` since Python 3.11."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scale.cu").write_text(block("cuda", "scale"))
    (tmp_path / "transpose.cu").write_text(block("cuda", "transpose"))
    (tmp_path / "rows.cu").write_text(block("cuda", "rows"))
    return tmp_path


def test_the_commands(folder: Path) -> None:
    for line in block("sh", "scale.cu").splitlines():
        assert run(folder, line)


@pytest.mark.slow
def test_a_file_of_ones_own_with_main(folder: Path) -> None:
    there, launched, another = block("sh", "analyze transpose.cu").splitlines()
    words = "memsim analyze transpose.cu --kernel 'transpose<float, 32>' --grid 32,32 --block 32,8"
    assert words in run(folder, there)
    printed = run(folder, launched)
    assert "transpose<float,32>: worst is the load at transpose.cu:11: 32-way bank conflict" in printed
    assert "host code set aside" in printed or "made by nvcc" in printed
    assert "transpose<double,16>" in run(folder, another)


def test_values_that_only_a_run_knows(folder: Path) -> None:
    asks, given = block("sh", "analyze rows.cu").splitlines()
    names = " ".join(f"--let {name}=..." for name in ("height", "m_SIZE", "sums_SIZE", "width"))
    assert f"memsim analyze rows.cu {names}\n" in run(folder, asks)
    out, err = StringIO(), StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        assert main(shlex.split(given)[1:]) == 0
    assert "grid (8,1,1), block (128,1,1)" in out.getvalue()
    assert err.getvalue().startswith("note: launch taken from the source: --grid 8,1,1")


def test_the_python(folder: Path) -> None:
    (folder / "own.py").write_text(block("python", "memsim.load"))
    printed = run_script(folder / "own.py")
    assert printed[0] == (
        "scale: worst is the load at scale.cu:3: 8.0 sectors per request instead of 4.0; "
        "256 of 512 global sectors are not needed (50.0 %)"
    )
    assert printed[3] == "256"
    assert printed[4].startswith("kernel_v4: conflict-free: ")
    assert printed[5] == "[32]"


def test_the_index_math(tmp_path: Path) -> None:
    (tmp_path / "layouts.py").write_text(block("python", "SharedArray"))
    printed = run_script(tmp_path / "layouts.py")
    assert printed[0].startswith("transpose: worst is the load at layouts.py:9: 32-way bank conflict")
    assert any("32!" in line for line in printed)
    assert (
        printed[-2:] == ["transpose: conflict-free: 64 shared wavefronts, none wasted by bank conflicts"] * 2
    )


def test_the_pictures(tmp_path: Path) -> None:
    heatmap, explain, report = block("sh", "memsim heatmap").splitlines()
    for line in heatmap, explain:
        assert run(tmp_path, line)
    run(tmp_path, report)
    assert (tmp_path / "report.html").is_file()
