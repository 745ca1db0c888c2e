"""Barriers of a block and what is behind them, beside what an H200 took for the same loops."""

from __future__ import annotations

import pytest

from lab.time.barriers import HIDING
from memsim.time.latencies import Latencies
from tests.time.patterns import estimated, measured, recorded

PLAIN = f"FFMA6 FFMA4 {HIDING}"
#: Compilers put 6 cycles or more between a barrier and what does not pass it: sooner it is not held back.
COMPILED = [one for one in recorded("barriers") if not {"BAR1", "BAR2", "BAR4", "BAR5"} & {*one.split()}]


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("pattern", COMPILED)
def test_what_is_behind_a_barrier_is_issued_when_it_is_on_the_chip(pattern: str, warps: int) -> None:
    off = 0 if "BSYNC5" not in pattern else 1.5  # what lanes that meet cost is in test_branches.py
    taken = measured("barriers", pattern, PLAIN, warps)
    assert estimated(pattern, warps) == pytest.approx(taken, abs=off + 0.1)


def test_a_barrier_is_hidden_by_arithmetic_and_not_by_a_load() -> None:
    for behind, waits in (("FFMA4", 0), ("IMAD4", 0), ("HMMA4", 0), ("LDS4", 8), ("MUFU4", 8), ("UMOV4", 8)):
        pattern = f"BAR6 {behind} {HIDING}"
        assert measured("barriers", pattern, PLAIN, 1) == pytest.approx(58 + waits, abs=0.1)
        assert estimated(pattern, 1, Latencies(barrier=9)) == pytest.approx(58 + max(waits - 3, 0), abs=0.1)
