"""Running the command line in this process, as the installed command does."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memsim.cli import main

SCALE = """\
extern "C" __global__ void scale(float *data, float factor, int n) {
    __shared__ float tile[N];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x * STRIDE % N] = i < n ? data[i] : 0.0f;
    __syncthreads();
    if (i < n) data[i] = factor * tile[threadIdx.x];
}
"""


@dataclass(frozen=True)
class Done:
    """What a command printed and returned."""

    code: int
    out: str
    err: str

    def fine(self) -> list[str]:
        """Its lines, of a command that did what it was asked for and complained of nothing."""
        assert (self.code, self.err) == (0, "")
        return self.out.splitlines()

    def document(self) -> Any:
        """The JSON that it printed."""
        self.fine()
        return json.loads(self.out)

    def refused(self, *words: str) -> None:
        """One clear error: code 2, nothing on stdout, no traceback."""
        assert (self.code, self.out) == (2, "")
        assert "Traceback" not in self.err
        for word in words:
            assert word in self.err


Run = Callable[..., Done]


@pytest.fixture
def memsim(capsys: pytest.CaptureFixture[str]) -> Run:
    """`memsim("list FILE")`, or `memsim("list", path)`, runs the command; a shell would read it alike."""

    def run(*arguments: str | Path) -> Done:
        words = [[str(part)] if isinstance(part, Path) else shlex.split(part) for part in arguments]
        code = main([word for part in words for word in part])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def scale(tmp_path: Path) -> Path:
    """A kernel of a user's own, with macros N and STRIDE."""
    path = tmp_path / "scale.cu"
    path.write_text(SCALE)
    return path
