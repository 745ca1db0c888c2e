"""`memsim probe --export` writes the program of one file."""

from __future__ import annotations

from pathlib import Path

from memsim.validate.device import program_text
from tests.cli.conftest import Run


def test_the_program_is_one_file(memsim: Run, tmp_path: Path) -> None:
    file = tmp_path / "memsim_probe.py"
    done = memsim("probe --export", file)
    assert (done.code, done.out) == (0, f"written: {file}; on the GPU's machine: python3 memsim_probe.py\n")
    assert file.read_text("utf-8") == program_text()


def test_it_writes_or_does_nothing(memsim: Run) -> None:
    memsim("probe").refused("Missing option '--export'")
