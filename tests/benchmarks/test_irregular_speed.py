"""Launches whose requests do not repeat, each in a process of its own: processor time and memory."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from tests.benchmarks.irregular import SIZES

ROOT = Path(__file__).resolve().parents[2]
ANSWER = re.compile(r"([\d,]+) requests in ([\d.]+) s: .* M/s, (\d+) MiB")


@pytest.mark.parametrize("name", SIZES)
def test_irregular(benchmark: BenchmarkFixture, name: str) -> None:
    def run() -> str:
        command = [sys.executable, "-m", "tests.benchmarks.irregular", name]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    found = ANSWER.search(benchmark.pedantic(run, rounds=1))
    assert found is not None
    requests, seconds, peak = int(found[1].replace(",", "")), float(found[2]), int(found[3])
    benchmark.extra_info.update(irregular_requests=requests, processor_s=seconds, peak_mib=peak)
