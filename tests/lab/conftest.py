"""Running the laboratory's command line in this process, and a GPU that is none."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from lab.command import main
from tests.cli.conftest import Done, Run
from tests.validate.fake_gpu import any_gpu, gpu

__all__ = ["any_gpu", "gpu"]  # fixtures


@pytest.fixture
def lab(capsys: pytest.CaptureFixture[str]) -> Run:
    """`lab("probe --live")`, or `lab("clock", path)`, runs the command; a shell would read it alike."""

    def run(*arguments: str | Path) -> Done:
        words = [[str(part)] if isinstance(part, Path) else shlex.split(part) for part in arguments]
        code = main([word for part in words for word in part])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run
