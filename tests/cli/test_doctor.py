"""`memsim doctor`: what is found, what is missing, and whether counting works."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memsim import doctor
from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]


def test_what_is_here(memsim: Run) -> None:
    done = memsim("doctor")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0].endswith("ready to count")
    found = {part["name"]: part for part in memsim("doctor --json").document()["parts"]}
    assert found["NVRTC"]["found"] and found["nvdisasm"]["found"]  # tests need both
    assert all(part["found"] or part["hint"] for part in found.values())


@pytest.mark.parametrize(("name", "code"), [("nvdisasm", 1), ("NVRTC", 1), ("matplotlib", 0), ("ncu", 0)])
def test_what_is_missing(memsim: Run, monkeypatch: pytest.MonkeyPatch, name: str, code: int) -> None:
    parts = tuple(replace(part, found="" if part.name == name else "1.0") for part in doctor.examine())
    monkeypatch.setattr(doctor, "examine", lambda: parts)
    done = memsim("doctor")
    assert done.code == code
    (row,) = [line for line in done.out.splitlines() if line.startswith(f"- {name} ")]
    assert "not found" in row and next(part.hint for part in parts if part.name == name) in row
    assert (f"cannot count without {name}" in done.out) == (code == 1)


@pytest.mark.parametrize(
    ("said", "found"),
    [("RmProfilingAdminOnly: 1\n", ""), ("RmProfilingAdminOnly: 0\n", "open to all users"), (None, "")],
)
def test_who_may_read_the_counters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str | None, found: str
) -> None:
    parameters = tmp_path / "params"
    if said is not None:
        parameters.write_text(said)
    monkeypatch.setattr(doctor, "DRIVER_PARAMETERS", parameters)
    assert next(part for part in doctor.examine() if part.name == "GPU counters").found == found


def test_a_gpu_is_named_with_its_chip_and_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answers(script: str) -> Any:
        tool = tmp_path / "nvidia-smi"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        return next(part for part in doctor.examine() if part.name == "GPU and driver").found

    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert answers("echo NVIDIA H200, 9.0, 580.159.04") == "NVIDIA H200, sm_90, driver 580.159.04"
    assert answers("echo no devices; exit 9") == ""


#: Packages of others that hints name and that memsim itself never installs.
OTHERS = {
    "cuda-bindings",
    "cuda-tile",
    "ncu-report",
    "nvidia-cuda-nvrtc",
    "nvidia-curand-cu12",
    "triton",
    "numba-cuda",
}


def test_what_hints_tell_to_install_is_on_the_index() -> None:
    """memsim itself is not, so no hint may name it, or one of its extras; what its extras bring is."""
    texts = {
        path: path.read_text("utf-8")
        for folder, kind in ((ROOT / "memsim", "*.py"), (ROOT / "docs", "*.md"))
        for path in folder.rglob(kind)
    }
    named = {
        (path.name, found)
        for path, text in texts.items()
        for found in re.findall(r"pip\s+install\s+'?(?:-\S+\s+)*([A-Za-z][\w-]*)(?!\+|\w)", text)
    }
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    known = OTHERS | set(re.findall(r'^\s*(?:\w+ = \[)?"([a-z][\w-]*)', project, re.MULTILINE))
    assert {("canvas.py", "matplotlib"), ("own_kernels.md", "nvidia-cuda-nvcc-cu12")} <= named
    assert {(file, package) for file, package in named if package not in known - {"memsim"}} == set()
