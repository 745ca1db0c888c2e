"""What docs/own_kernels.md and docs/ci.md show can be typed as it stands there."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "own_kernels.md").read_text("utf-8")


def block(language: str, words: str) -> str:
    """The fenced block of a language that has these words in it."""
    (found,) = [text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if words in text]
    return str(found)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's CUDA files, in the folder where its commands are typed."""
    for name in ("scale", "transpose", "rows"):
        (tmp_path / f"{name}.cu").write_text(block("cuda", name))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(memsim: Run, line: str) -> Done:
    """What a line of the page does."""
    program, *words = shlex.split(line, comments=True)
    assert program == "memsim"
    return memsim(shlex.join(words))


def printed_by(script: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines that a Python script prints."""
    runpy.run_path(str(script), run_name="__main__")
    return capsys.readouterr().out.splitlines()


@pytest.mark.slow
def test_the_commands(memsim: Run) -> None:
    for line in block("sh", "scale.cu").splitlines():
        assert typed(memsim, line).fine()


@pytest.mark.slow
def test_a_file_of_ones_own_with_main(memsim: Run) -> None:
    lines = block("sh", "analyze transpose.cu").splitlines()
    done = [typed(memsim, line) for line in lines]
    assert all(one.code == 0 for one in done)
    assert done[0].err.startswith("note: launch taken from the source: --grid 32,32,1")
    launched, there, another = (one.out for one in done)
    words = "memsim analyze transpose.cu --kernel 'transpose<float, 32>' --grid 32,32 --block 32,8"
    assert words in there
    assert "transpose<float,32>: worst is the load at transpose.cu:11: 32-way bank conflict" in launched
    assert "host code set aside" in launched or "made by nvcc" in launched
    assert "transpose<double,16>" in another


@pytest.mark.slow
def test_values_that_only_a_run_knows(memsim: Run) -> None:
    asks, given = (typed(memsim, line) for line in block("sh", "analyze rows.cu").splitlines())
    names = " ".join(f"--let {name}=..." for name in ("height", "m_SIZE", "sums_SIZE", "width"))
    asks.fine()
    assert f"memsim analyze rows.cu {names}\n" in asks.out
    assert given.code == 0 and "grid (8,1,1), block (128,1,1)" in given.out
    assert given.err.startswith("note: launch taken from the source: --grid 8,1,1")


@pytest.mark.slow
def test_the_python(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "own.py").write_text(block("python", "memsim.load"))
    printed = printed_by(folder / "own.py", capsys)
    assert printed[0] == (
        "scale: worst is the load at scale.cu:3: 8.0 sectors per request instead of 4.0; "
        "256 of 512 global sectors are not needed (50.0 %)"
    )
    assert printed[3] == "256"
    assert printed[4].startswith("kernel_v4: conflict-free: ")
    assert printed[5] == "[32]"


def test_the_index_math(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "layouts.py").write_text(block("python", "SharedArray"))
    printed = printed_by(folder / "layouts.py", capsys)
    assert printed[0].startswith("transpose: worst is the load at layouts.py:9: 32-way bank conflict")
    assert any("32!" in line for line in printed)
    assert (
        printed[-2:] == ["transpose: conflict-free: 64 shared wavefronts, none wasted by bank conflicts"] * 2
    )


@pytest.mark.slow
def test_the_pictures(folder: Path, memsim: Run) -> None:
    heatmap, explain, report = block("sh", "memsim heatmap").splitlines()
    assert typed(memsim, heatmap).fine() and typed(memsim, explain).fine()
    assert typed(memsim, report).fine() == []
    assert (folder / "report.html").is_file()
