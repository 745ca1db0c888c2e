"""The programs under the profiler make every launch of their folder, between its start and stop."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from lab.experiments import HOPPER
from lab.hopper import run_hopper
from lab.probe import run_probe
from memsim.validate.profiler import ANSWER
from tests.validate.conftest import H200, TRACES

Launched = list[tuple[str, str, Any, Any]]


class Refused(Exception):
    """CUDA's error."""


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Launched:
    """File, kernel, grid and block of each launch that the profiler counts; a file called BAD is refused."""
    found: Launched = []
    is_counting = False

    @contextlib.contextmanager
    def profile() -> Iterator[None]:
        nonlocal is_counting
        is_counting = True
        yield
        is_counting = False

    class Kernel:
        def __init__(self, path: str, name: str) -> None:
            self.path, self.name = Path(path), name

        def __call__(self, grid: Any, block: Any, arguments: Any, shared_mem: int = 0) -> None:
            assert is_counting
            if self.path.stem == "BAD":
                raise Refused("out of resources")
            found.append((self.path.name, self.name, grid, block))

    cupy = MagicMock()
    cupy.zeros.return_value.data.ptr = 5000
    cupy.cuda.runtime.CUDARuntimeError = cupy.cuda.driver.CUDADriverError = Refused
    cupy.RawModule = lambda path: SimpleNamespace(get_function=lambda name: Kernel(path, name))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "cupyx.profiler", SimpleNamespace(profile=profile))
    monkeypatch.setattr(run_hopper, "driver", lambda: None)
    return found


def probe_folder(folder: Path, *names: str) -> None:
    (folder / "names.json").write_text(json.dumps(names))
    tables = {
        f"{name}_{of}": np.zeros((2, 4, 32), np.uint32) for name in names for of in ("table", "origins")
    }
    np.savez(folder / "tables.npz", **tables)


def test_the_probe_launches_each_instruction_on_each_table(launched: Launched, tmp_path: Path) -> None:
    probe_folder(tmp_path, "LDS32", "STS32")
    assert run_probe.main([str(tmp_path)]) == 0
    files = ("LDS32.ptx", "LDS32.ptx", "STS32.ptx", "STS32.ptx")
    assert launched == [(file, "probe", (1,), (32,)) for file in files]


def test_a_launch_that_the_gpu_refuses_is_told(launched: Launched, tmp_path: Path) -> None:
    probe_folder(tmp_path, "LDS32", "BAD")
    assert run_probe.main([str(tmp_path)]) == 2
    told = json.loads((tmp_path / ANSWER).read_text())["error"]
    assert told == "the probe of BAD does not run on this GPU: out of resources"
    assert len(launched) == 2


def test_hopper_launches_its_kernels_in_order(launched: Launched, tmp_path: Path) -> None:
    some = [one for one in HOPPER.newest(TRACES, H200).parts["bulk_and_clusters"] if one.map is None][:40:10]
    np.save(tmp_path / run_hopper.TABLES, np.array([one.table for one in some]))
    (tmp_path / run_hopper.PLAN).write_text(json.dumps([one.described() for one in some]))
    assert run_hopper.main([str(tmp_path)]) == 0
    assert launched == [(run_hopper.CODE, one.kernel, (one.grid,), (one.block,)) for one in some]
    assert len(launched) == 4
