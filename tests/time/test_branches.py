"""Warps whose lanes go two ways, beside what an H200 took for the same loops."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim.api.loading import Module, load
from memsim.api.running import job_of
from memsim.data import data_folder
from memsim.time.latencies import Latencies
from memsim.time.predict_time import PreparedTime

SOURCE = Path(__file__).resolve().parents[2] / "lab" / "time" / "branches.cu"
MEASURED: dict[str, Any] = json.loads((data_folder("docs/validation") / "branches.json").read_text("utf-8"))
#: Iterations of the loops, and those before they are timed.
ITERATIONS: int = MEASURED["iterations"]
BEFORE = 8
#: Lanes that enter the branch: none, one, half of them, all.
FEW = (0, 1, 16, 32)
SLOW = [
    pytest.param(kernel, marks=pytest.mark.slow)
    for kernel in ("whole", "loaded", "stored", "trips", "meets_warp")
]


def measured(kernel: str, few: int) -> float:
    """Cycles of an iteration of a warp alone."""
    (found,) = (
        one["cycles"]
        for one in MEASURED["launches"]
        if (one["kernel"], one["few"], one["warps"]) == (kernel, few, 1)
    )
    return int(found) / ITERATIONS


@cache
def module() -> Module:
    return load(SOURCE)


@cache
def prepared(kernel: str, few: int) -> PreparedTime:
    args = [np.zeros(8, np.uint64), np.float32(1.5), np.int32(few)]
    return PreparedTime(job_of(module()[kernel], 1, 32, args))


def estimated(kernel: str, few: int, set_to: Latencies | None = None) -> float:
    """Cycles of an iteration, beyond those of a loop with nothing else."""
    times = [
        prepared(*which).predict("warm", set_to=set_to).cycles for which in ((kernel, few), ("nothing", 0))
    ]
    return (times[0] - times[1]) / (ITERATIONS + BEFORE)


@pytest.mark.parametrize("few", FEW)
@pytest.mark.parametrize("kernel", ["one_way", "two_ways", *SLOW])
def test_branches_take_what_they_take_on_the_chip(kernel: str, few: int) -> None:
    nothing = measured("nothing", 0)
    assert nothing + estimated(kernel, few) == pytest.approx(measured(kernel, few), rel=0.05)


@pytest.mark.parametrize("few", [0, 32])
def test_lanes_that_meet_hold_their_warp(few: int) -> None:
    """Without that, a branch that all lanes take in the same way is 5 % too short at least."""
    without = measured("nothing", 0) + estimated("one_way", few, Latencies(meet=0))
    assert without < 0.95 * measured("one_way", few)


def test_a_warp_that_divides_takes_both_ways_and_longer() -> None:
    both = measured("two_ways", 16) - measured("nothing", 0)
    each = [measured("two_ways", few) - measured("nothing", 0) for few in (0, 32)]
    assert max(each) < both < sum(each)
    assert max(estimated("two_ways", few) for few in (0, 32)) < estimated("two_ways", 16)
