"""How many requests a second the models count, on one core: distinct random patterns.

Run with `pytest tests/benchmarks/test_model_speed.py`; `requests_per_s` in the extra information is
from the best round. Not part of the default test run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim.model import global_access, shared_access

REQUESTS = 1 << 17


def random_requests(width: int, kibibytes: int) -> np.ndarray:
    rng = np.random.default_rng(width)
    return rng.integers(0, kibibytes * 1024 // width, (REQUESTS, 32)) * width


def timed(benchmark: Any, call: Any, *args: Any) -> Any:
    result = benchmark.pedantic(call, args=args, rounds=7, warmup_rounds=1)
    if benchmark.stats is not None:
        benchmark.extra_info["requests_per_s"] = round(REQUESTS / benchmark.stats.stats.min)
    return result


@pytest.mark.parametrize("lanes", ["every lane", "some idle"])
@pytest.mark.parametrize(
    ("op", "width"), [("load", 4), ("load", 8), ("load", 16), ("store", 16), ("ldmatrix", 16), ("atomic", 4)]
)
def test_shared_access(benchmark: Any, op: str, width: int, lanes: str) -> None:
    addresses = random_requests(width, 48)
    active = None if lanes == "every lane" else np.random.default_rng(0).random(addresses.shape) < 0.9
    cost = timed(benchmark, shared_access, addresses, width, op, active)
    assert cost.wavefronts.shape == (REQUESTS,)
    assert cost.wavefronts.min() >= 1


@pytest.mark.parametrize("width", [4, 16])
def test_global_access(benchmark: Any, width: int) -> None:
    cost = timed(benchmark, global_access, random_requests(width, 1 << 20), width)
    assert cost.sectors.shape == (REQUESTS,)
    assert cost.sectors.min() >= 1
