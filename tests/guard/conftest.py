"""A project of its own for each test, checked in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memsim.cli import main
from tests.cli.conftest import Done

TILE = """\
extern "C" __global__ void turn(const float *A, float *C, int n) {
    __shared__ float tile[32][32 + PAD];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = A[y * n + x];
    __syncthreads();
    C[y * n + x] = tile[x][y];
}
"""
LAUNCHED = f"{TILE}void run(float *A, float *C) {{ turn<<<1, dim3(32, 32)>>>(A, C, 32); }}\n"
TARGET = """\
[[targets]]
file = "tile.cu"
grid = 1
block = [32, 32]
args = ["f32[1024]", "f32[1024]", 32]
options = ["-DPAD=1"]
"""


class Folder:
    """A project's folder, and memsim run in it."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = path
        self._capsys = capsys

    def write(self, name: str, text: str) -> Path:
        """Writes a file of the project."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def read(self, name: str) -> str:
        """What is in a file of the project."""
        return (self.path / name).read_text(encoding="utf-8")

    def edit(self, name: str, old: str, new: str) -> None:
        """Replaces the one place that has `old`."""
        text = self.read(name)
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {name}"
        self.write(name, text.replace(old, new))

    def run(self, *arguments: str) -> Done:
        """Runs `memsim ...`, in one process unless the arguments say how many."""
        takes_jobs = arguments[0] in ("check", "baseline", "compare") and "--jobs" not in arguments
        jobs = ("--jobs", "1") if takes_jobs else ()
        code = main([*arguments, *jobs])
        captured = self._capsys.readouterr()
        return Done(code, captured.out, captured.err)


@pytest.fixture(scope="session")
def traces_kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of this test run's own."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], traces_kept: Path
) -> Folder:
    """An empty project; the working folder is in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMSIM_CACHE_DIR", str(traces_kept))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return Folder(tmp_path, capsys)


@pytest.fixture
def tile(folder: Folder) -> Callable[..., Folder]:
    """`tile("ways <= 1")`: a project with one padded transpose and these budgets."""

    def make(*budgets: str, more: str = "") -> Folder:
        folder.write("tile.cu", LAUNCHED)
        listed = ", ".join(f"'{budget}'" for budget in budgets)
        folder.write("memsim.toml", f"budgets = [{listed}]\n{more}\n{TARGET}")
        return folder

    return make
