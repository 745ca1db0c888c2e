"""What the README shows can be typed as it stands there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def block(language: str, words: str) -> str:
    """The fenced block of a language that has these words in it."""
    (found,) = [text for text in re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL) if words in text]
    return str(found)


def run(folder: Path, *command: str) -> str:
    done = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scale.cu").write_text(block("cuda", "scale"))
    (tmp_path / "transpose.cu").write_text(block("cuda", "transpose"))
    return tmp_path


def test_the_commands(folder: Path) -> None:
    for line in block("sh", "scale.cu").splitlines():
        command = shlex.split(line)
        assert command[0] == "memsim"
        assert run(folder, "-m", *command)


def test_a_file_of_ones_own_with_main(folder: Path) -> None:
    there, launched, another = block("sh", "analyze transpose.cu").splitlines()
    words = "memsim analyze transpose.cu --kernel 'transpose<float, 32>' --grid 32,32 --block 32,8"
    assert words in run(folder, "-m", *shlex.split(there))
    printed = run(folder, "-m", *shlex.split(launched))
    assert "transpose<float,32>: worst is the load at transpose.cu:11: 32-way bank conflict" in printed
    assert "host code set aside" in printed or "made by nvcc" in printed
    assert "transpose<double,16>" in run(folder, "-m", *shlex.split(another))


def test_the_python(folder: Path) -> None:
    printed = run(folder, "-c", block("python", "memsim.load")).splitlines()
    assert printed[0] == (
        "scale: worst is the load at scale.cu:3: 8.0 sectors a request where 4.0 would do; "
        "256 of 512 global sectors are not needed (50.0 %)"
    )
    assert printed[3] == "256"
    assert printed[4].startswith("kernel_v4: conflict-free: ")
    assert printed[5] == "[32]"


def test_the_index_math(tmp_path: Path) -> None:
    (tmp_path / "layouts.py").write_text(block("python", "SharedArray"))
    printed = run(tmp_path, "layouts.py").splitlines()
    assert printed[0].startswith("transpose: worst is the load at layouts.py:9: 32-way bank conflict")
    assert any("32!" in line for line in printed)
    assert (
        printed[-2:] == ["transpose: conflict-free: 64 shared wavefronts, none wasted by bank conflicts"] * 2
    )


def test_the_guard(tmp_path: Path) -> None:
    (tmp_path / "memsim.toml").write_text(block("toml", "budgets"))
    for line in block("sh", "memsim check").splitlines():
        assert run(tmp_path, "-m", *shlex.split(line, comments=True))
    assert (tmp_path / "memsim-baseline.toml").is_file()


def test_the_pictures(tmp_path: Path) -> None:
    heatmap, explain, report = block("sh", "memsim heatmap").splitlines()
    for line in heatmap, explain:
        assert run(tmp_path, "-m", *shlex.split(line, comments=True))
    run(tmp_path, "-m", *shlex.split(report, comments=True))
    assert (tmp_path / "report.html").is_file()


def test_ci_runs_both_commands_of_the_readme() -> None:
    marked = re.findall(
        r"^<!-- command: (\w+) -->\n```sh\n(.*?)```\n<!-- end -->$", README, re.DOTALL | re.MULTILINE
    )
    assert [name for name, _ in marked] == ["analyze", "test"]
    ci = (Path(__file__).parents[1] / ".ci" / "run").read_text("utf-8")
    for name, command in marked:
        assert f'run "$(readme_command {name})"' in ci
        assert command.strip()
