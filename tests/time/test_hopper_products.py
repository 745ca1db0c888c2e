"""Estimates of a product of matrices with TMA, mbarriers and `wgmma`, by whichever compiler there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from docs.time_errors import HOPPER_CYCLES, launches_of
from memsim import TensorMap
from memsim.api.loading import load
from memsim.api.running import job_of
from memsim.argument_types import ArrayArg
from memsim.time.behind_l1 import COLD
from memsim.time.predict_time import PreparedTime

SOURCE = Path(__file__).parents[1] / "validate" / "data" / "hopper_gemm.cu"
LAUNCHES = [one for one in launches_of(HOPPER_CYCLES) if one["kernel"] == "hopper_gemm"]


@pytest.fixture(scope="module")
def gemm() -> Any:
    return load(SOURCE, ["-arch=sm_90a"])["hopper_gemm"]


@pytest.mark.parametrize(
    "launch",
    [pytest.param(one, marks=[pytest.mark.slow] * (place > 0)) for place, one in enumerate(LAUNCHES)],
    ids=lambda one: one["problem"],
)
def test_it_is_near_what_an_h200_took(gemm: Any, launch: Any) -> None:
    m, n, k = map(int, launch["problem"].split(" x "))
    a, b = (TensorMap(ArrayArg((rows, k), "float16"), (128, 64), 128) for rows in (m, n))
    args = [a, b, ArrayArg((m, n)), n, k]
    job = job_of(gemm, (n // 128, m // 128), 384, args, 8 * 16384 + 1024)
    time = PreparedTime(job).predict(COLD)
    assert time.cycles == pytest.approx(launch["measured"][COLD], rel=0.1)
    assert not time.lacks
    assert {*list(time.stalls)[:2]} <= {"barrier", "long_scoreboard"}  # as ncu's samples say
