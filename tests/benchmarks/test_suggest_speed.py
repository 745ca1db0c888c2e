"""How long `memsim suggest` takes as a whole process, the edited kernel compiled and replayed.

Run with `pytest tests/benchmarks/test_suggest_speed.py`. Not part of the default test run.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.benchmarks.test_analyze_speed import process


@pytest.mark.parametrize("kernel", ["kernel_v4_colmajor", "transpose_naive"])
def test_suggest(benchmark: Any, kernel: str) -> None:
    command = ("-m", "memsim", "suggest", kernel)
    printed = benchmark.pedantic(process, args=command, rounds=5, warmup_rounds=1)
    assert "Proven by replay: proposal 1 in" in printed
