"""Running the command line in this process, as the installed command does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

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


@pytest.fixture
def memsim(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """`memsim("list")` runs `memsim list`."""

    def run(*arguments: str | Path) -> Done:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def scale(tmp_path: Path) -> Path:
    """A kernel of a user's own, with macros N and STRIDE."""
    path = tmp_path / "scale.cu"
    path.write_text(SCALE)
    return path
