"""Code of loops that comes from the caches of instructions or does not, beside what an H200 took for them."""

from __future__ import annotations

import json

import pytest

from memsim.data import data_folder
from memsim.time.code_caches import InstructionCache
from memsim.time.latencies import Latencies
from tests.time.conftest import program, ran

FFMA = {"pipe": "fma", "busy": 2}
BRANCH = {"stall": 6, "branches": True, "holds": Latencies().branch}
#: Instructions of an iteration beside those that are counted.
BESIDE, OVER = 8, 2
Loop = tuple[str, int, int, int]
MEASURED: dict[Loop, list[float]] = {
    (one["kernel"], one["n"], one["pieces"], one["over"]): one["cycles"][0]
    for one in json.loads((data_folder("docs/validation") / "loops.json").read_text("utf-8"))["loops"]
}
#: One warp on each scheduler.
FOUR = 1
LOOPS = [loop for loop in MEASURED if loop[0] != "nested"]
#: What the multiprocessor's cache holds, with all that is jumped over, which it may fetch ahead.
HELD = [loop for loop in LOOPS if loop[1] + loop[2] * loop[3] < 1600]
PLAIN_LOOP = ("straight", 64, 1, 0)


def estimated(loop: Loop, times: int = 4) -> float:
    """Cycles of an iteration."""
    kernel, n, pieces, over = loop
    gap = over + OVER if kernel == "jumps" else 0
    code = program(*[FFMA] * BESIDE, *[*[FFMA] * (n // pieces), BRANCH, *[FFMA] * gap] * pieces, BRANCH)
    body = list(range(BESIDE))
    for piece in range(pieces):
        start = BESIDE + piece * (n // pieces + 1 + gap)
        body += range(start, start + n // pieces + (kernel == "jumps"))
    body.append(len(code) - 1)
    less, more = (
        ran(code, [body * count] * 4, set_to=Latencies(), off=frozenset()) for count in (2, 2 + times)
    )
    return (more.cycles - less.cycles) / times


def longer(loop: Loop) -> tuple[float, float]:
    """Cycles of an iteration beyond those of 64 instructions: estimated, measured."""
    at = MEASURED[loop][FOUR] - MEASURED[PLAIN_LOOP][FOUR]
    return estimated(loop) - estimated(PLAIN_LOOP), at


@pytest.mark.parametrize("loop", HELD)
def test_code_that_a_multiprocessor_holds_comes_as_on_the_chip(loop: Loop) -> None:
    found, taken = longer(loop)
    assert found == pytest.approx(taken, rel=0.05, abs=8)  # compilers schedule the ends of loops as they like


def test_only_loops_that_a_scheduler_does_not_hold_wait() -> None:
    """Both those that do and those that do not are there, and nearly as long as they can be."""
    held = InstructionCache.LINES * InstructionCache.LINE
    loops = [loop for loop in HELD if loop[0] == "straight"]
    waits = {
        loop[1]: (estimated(loop), MEASURED[loop][FOUR] - MEASURED[PLAIN_LOOP][FOUR] + estimated(PLAIN_LOOP))
        for loop in loops
    }
    late = {n: [cycles - n - estimated(PLAIN_LOOP) + 64 for cycles in both] for n, both in waits.items()}
    assert all(-1.5 < wait < 1.5 for n, both in late.items() if n <= held - 32 for wait in both)
    assert all(12 < wait < 16 for n, both in late.items() if n >= held - 16 for wait in both)
    assert {held - 32, held - 16} <= {*late}


@pytest.mark.parametrize(("n", "off"), [(2048, 0.09), (3072, 0.03), (4096, 0.03), (6144, 0.03)])
def test_code_that_a_multiprocessor_does_not_hold_comes_line_by_line(n: int, off: float) -> None:
    found, taken = longer(("straight", n, 1, 0))
    assert found == pytest.approx(taken, rel=off)
