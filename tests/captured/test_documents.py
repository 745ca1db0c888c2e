"""What README.md and docs/python_kernels.md show of packages runs as it stands there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from docs.capture import folded
from docs.python_kernels import RECORDED, printed
from memsim.captured.saved_launch import read_launch

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
PAGE = (ROOT / "docs" / "python_kernels.md").read_text("utf-8")
OWN = (ROOT / "docs" / "own_kernels.md").read_text("utf-8")


def block(document: str, language: str, words: str) -> str:
    (found,) = [
        text for text in re.findall(rf"```{language}\n(.*?)```", document, re.DOTALL) if words in text
    ]
    return str(found)


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_recorded_launch_is_of_the_pages_kernel() -> None:
    assert (RECORDED / "add" / "add.py").read_text("utf-8") == block(PAGE, "python", "def add(")
    assert folded(printed("add")) in PAGE


def test_the_readmes_script(tmp_path: Path) -> None:
    """It has the same kernel; the script itself needs PyTorch's CUDA wheel and `memsim exec`."""
    script = block(README, "python", "import torch")
    assert script.splitlines()[5:13] == block(PAGE, "python", "def add(").splitlines()[5:13]
    assert printed("add").splitlines()[0] in " ".join(README.split())
    torch = pytest.importorskip("torch")
    if not torch.version.cuda:
        pytest.skip("needs PyTorch's CUDA wheel")
    pytest.importorskip("triton")
    (tmp_path / "add.py").write_text(script)
    shown = run(tmp_path, "-m", "memsim", "exec", "--analyze", "--", sys.executable, "add.py")
    assert shown == "right\n"


def test_the_pages_kernel(tmp_path: Path) -> None:
    triton = pytest.importorskip("triton")
    (tmp_path / "add.py").write_text(block(PAGE, "python", "def add("))
    shown = run(tmp_path, "add.py")
    recorded = read_launch(RECORDED / "add" / "launch.json").analyze()
    if (
        recorded.trace.origin is not None
        and f"Triton {triton.__version__} " in recorded.trace.origin.compiler
    ):
        assert shown == printed("add")
    assert shown.startswith("add: worst is the load at add.py:9: 15.8 sectors per request instead of 4.0")
    script = block(PAGE, "python", "def add(").replace("n = 9_999", "n = 10_000")
    (tmp_path / "add.py").write_text(script)
    assert run(tmp_path, "add.py").startswith("add: coalesced: 3,750 global sectors, all needed")


def test_a_whole_script(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    (tmp_path / "add.py").write_text(block(PAGE, "python", "def add("))
    first, second = block(PAGE, "sh", "memsim capture").splitlines()
    for line in (first, second):
        shown = run(tmp_path, "-m", *shlex.split(line, comments=True))
    assert shown.startswith("add: worst is the load at add.py:9")


def test_the_pages_kernel_of_triton(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    (tmp_path / "double.py").write_text(block(PAGE, "python", "def double("))
    lines = run(tmp_path, "double.py").splitlines()
    assert [line.split(",")[0] for line in lines] == ["BLOCK=512", "BLOCK=1024", "BLOCK=512"]
    assert all("double: coalesced: 512 global sectors" in line for line in lines)


def test_the_pages_kernel_of_cupy(tmp_path: Path) -> None:
    pytest.importorskip("cupy")
    (tmp_path / "scale.py").write_text(block(PAGE, "python", "cupy.RawKernel("))
    shown = run(tmp_path, "scale.py").splitlines()
    assert len(shown) == 2 and all(line.startswith("scale: coalesced: ") for line in shown)


def test_the_pages_kernel_of_cutile(tmp_path: Path) -> None:
    pytest.importorskip("cuda.tile")
    (tmp_path / "plus.py").write_text(block(PAGE, "python", "export_kernel("))
    assert run(tmp_path, "plus.py") == "plus: coalesced: 384 global sectors, all needed\n"


def test_the_pages_kernel_of_warp(tmp_path: Path) -> None:
    pytest.importorskip("warp")
    (tmp_path / "lengths.py").write_text(block(PAGE, "python", "import warp"))
    shown = run(tmp_path, "lengths.py").splitlines()[-1]
    assert "worst is the load at lengths.py:8: 12.0 sectors per request instead of 4.0" in shown


def test_the_pages_kernel_of_cute(tmp_path: Path) -> None:
    pytest.importorskip("cutlass")
    (tmp_path / "transpose.py").write_text(block(PAGE, "python", "import cutlass"))
    shown = run(tmp_path, "transpose.py")
    assert shown.startswith("transpose_kernel: worst is the load at transpose.py:15: 32-way bank conflict")


@pytest.mark.slow
def test_the_pages_launch(tmp_path: Path) -> None:
    (tmp_path / "scale.cu").write_text(block(OWN, "cuda", "scale"))
    (tmp_path / "launch.json").write_text(block(PAGE, "json", "scale.cu"))
    assert run(tmp_path, "-m", "memsim", "analyze", "launch.json").startswith(
        "scale: worst is the load at scale.cu:3"
    )
