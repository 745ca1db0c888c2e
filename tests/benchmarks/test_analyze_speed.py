"""How long `memsim analyze` takes as a whole process, and what the emulator does in a second.

Run with `pytest tests/benchmarks/test_analyze_speed.py`. Not part of the default test run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.benchmarks.irregular import SIZES, SOURCE, case

CORES = 2


def limit_cores() -> None:
    """The two cores that the figures are for."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


def process(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True, preexec_fn=limit_cores
    )
    return done.stdout


@pytest.mark.parametrize("extent", [1024, 4096])
def test_analyze_kernel_v4(benchmark: Any, extent: int) -> None:
    size = f"{extent},{extent},{extent}"
    command = ("-m", "memsim", "analyze", "kernel_v4", "--size", size, "--no-cache")
    printed = benchmark.pedantic(process, args=command, rounds=5, warmup_rounds=1)
    blocks = (extent // 128) ** 2
    assert f"{blocks} of {blocks} blocks replayed".replace(",", "") in printed.replace(",", "")
    measured = f"main({[*command[2:]]!r}); print(peak())"
    told = process(
        "-c", f"from memsim.cli import main; from tests.benchmarks.irregular import peak; {measured}"
    )
    benchmark.extra_info["peak_mib"] = int(told.split()[-1])
    sites = json.loads(process(*command, "--json"))["sites"]
    benchmark.extra_info["memory_requests"] = sum(site["requests"] for site in sites)


def test_analyze_once_more(benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was said before, and of which nothing has changed, beside `test_numpy_alone`."""
    monkeypatch.setenv("MEMSIM_CACHE_DIR", str(tmp_path))
    command = ("-m", "memsim", "analyze", "kernel_v4")
    assert process(*command) == benchmark.pedantic(process, args=command, rounds=10, warmup_rounds=1)


@pytest.mark.parametrize("jobs", [1, 2])
def test_one_launch_divided(benchmark: Any, jobs: int, tmp_path: Path) -> None:
    """The join of `irregular.py`, four times as large, as a user has it: with arrays in files."""
    made = case("join", 4 * SIZES["join"])
    arguments: list[str] = []
    for number, value in enumerate(made.arguments):
        if isinstance(value, np.ndarray):
            np.save(tmp_path / f"{number}.npy", value)
        text = f"@{tmp_path / f'{number}.npy'}" if isinstance(value, np.ndarray) else str(value)
        arguments += ["--arg", text]
    launch = f"--kernel join --grid {made.grid} --block {made.block} --no-cache -j {jobs}".split()
    command = ("-m", "memsim", "analyze", str(SOURCE), *launch, *arguments, "--json")
    printed = benchmark.pedantic(process, args=command, rounds=5, warmup_rounds=1)
    benchmark.extra_info["memory_requests"] = sum(site["requests"] for site in json.loads(printed)["sites"])


def test_import(benchmark: Any) -> None:
    assert benchmark.pedantic(process, args=("-c", "import memsim"), rounds=10, warmup_rounds=1) == ""


def test_numpy_alone(benchmark: Any) -> None:
    assert benchmark.pedantic(process, args=("-c", "import numpy"), rounds=10, warmup_rounds=1) == ""


def test_python_alone(benchmark: Any) -> None:
    """What of the above is Python itself."""
    assert benchmark.pedantic(process, args=("-c", "pass"), rounds=10, warmup_rounds=1) == ""
