"""What a machine lacks is one sentence with a way out, and exit code 2."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memsim.validate import profiler
from tests.cli.conftest import Done
from tests.validate.fake_gpu import CUDARuntimeError, FakeGpu, gpu
from tests.validate.test_profiler import fake_ncu

__all__ = ["gpu"]  # a fixture
pytestmark = pytest.mark.skipif(os.name == "nt", reason="a program by its first line")

VALIDATE = ("validate", "transpose_xor", "--live", "--size", "32,32")
NO_PERMISSION = (
    "print('==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access')\nsys.exit(1)"
)


class Machine:
    """A machine where everything is there; each method takes one thing away."""

    def __init__(self, gpu: FakeGpu, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gpu, self.folder, self.monkeypatch = gpu, folder, monkeypatch
        fake_ncu(folder, "print('==ERROR== this ncu measures nothing')\nsys.exit(9)", monkeypatch)

    def no_cupy(self) -> None:
        self.monkeypatch.setitem(sys.modules, "cupy", None)

    def no_driver(self) -> None:
        self._no_device("cudaErrorInsufficientDriver: CUDA driver version is insufficient")

    def no_gpu(self) -> None:
        self._no_device("cudaErrorNoDevice: no CUDA-capable device is detected")

    def _no_device(self, problem: str) -> None:
        def properties(number: int) -> Any:
            raise CUDARuntimeError(problem)

        self.monkeypatch.setattr(self.gpu.cupy.cuda.runtime, "getDeviceProperties", properties)

    def unknown_chip(self) -> None:
        there = {"name": b"Tesla V100-SXM2-16GB", "major": 7, "minor": 0}
        self.monkeypatch.setattr(self.gpu.cupy.cuda.runtime, "getDeviceProperties", lambda number: there)

    def no_ncu(self) -> None:
        (self.folder / "ncu").unlink()
        self.monkeypatch.setattr(profiler, "KNOWN_FOLDERS", ())

    def no_permission(self) -> None:
        fake_ncu(self.folder, NO_PERMISSION, self.monkeypatch)


SAYS = {
    Machine.no_cupy: "CuPy ",
    Machine.no_driver: "there is no NVIDIA driver that CuPy can use",
    Machine.no_gpu: "there is no NVIDIA GPU here",
    Machine.unknown_chip: "there are no rules for Tesla V100-SXM2-16GB (sm_70), only for sm_75, ",
    Machine.no_ncu: "ncu, Nsight Compute's command line, was not found",
    Machine.no_permission: "this user may not read the GPU's performance counters (ERR_NVGPUCTRPERM)",
}


def check_missing(done: Done, take_away: Callable[[Machine], None]) -> None:
    """One sentence that names what is missing, and a hint."""
    assert (done.code, done.out) == (2, "")
    error, hint = done.err.splitlines()
    assert error.startswith(f"error: {SAYS[take_away]}")
    assert hint.startswith("hint: ")


@pytest.mark.parametrize("take_away", SAYS)
def test_a_missing_part(
    take_away: Callable[[Machine], None],
    memsim: Callable[..., Done],
    gpu: FakeGpu,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take_away(Machine(gpu, tmp_path, monkeypatch))
    check_missing(memsim(*VALIDATE, "--record --traces", tmp_path / "traces"), take_away)
    assert not (tmp_path / "traces").exists()


def test_with_all_parts_it_gets_further(
    memsim: Callable[..., Done], gpu: FakeGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMSIM_CACHE_DIR", str(tmp_path / "cache"))
    Machine(gpu, tmp_path, monkeypatch)
    done = memsim(*VALIDATE)
    assert (done.code, done.err) == (2, "error: ncu failed (exit code 9): this ncu measures nothing\n")
