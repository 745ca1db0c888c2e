"""How long `memsim check` takes for the whole catalogue, on two processors: the whole process.

Run with `pytest tests/benchmarks/test_guard_speed.py`. Cold: nothing is kept from before. Warm: every
target's trace is, and it is judged anew. Passed: nothing has changed since it passed. Not part of the default
test run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def two_processors() -> None:
    """Keeps a new process, and those that it starts, to two processors, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:2]))


@pytest.mark.parametrize("cache", ["cold", "warm", "passed"])
def test_check_the_whole_catalogue(benchmark: Any, tmp_path: Path, cache: str) -> None:
    kept = tmp_path / "cache"
    command = [sys.executable, "-m", "memsim", "check", "--jobs", "2"]
    if cache == "warm":  # a file is written anew each time
        command += ["--format", "json", "--output", str(tmp_path / "check.json")]
    environment = os.environ | {"MEMSIM_CACHE_DIR": str(kept)}

    def check() -> str:
        printed = subprocess.check_output(
            command, cwd=ROOT, env=environment, preexec_fn=two_processors, text=True
        )
        return printed.splitlines()[-1]

    def forget() -> None:
        if cache == "cold":
            shutil.rmtree(kept, ignore_errors=True)

    verdict = benchmark.pedantic(check, setup=forget, rounds=3, warmup_rounds=int(cache != "cold"))
    assert verdict.startswith("OK: ")
    benchmark.extra_info["kernels"] = int(verdict.split()[1])
    assert len(list(kept.iterdir())) > 0
