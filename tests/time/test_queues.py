"""Queues in front of units, their rates and when results come, beside what an H200 took for such loops."""

from __future__ import annotations

import pytest

from lab.experiments import TIME
from lab.time.barriers import HIDING
from lab.time.patterns import asked
from lab.time.queues import TIMES
from memsim.data import data_folder
from memsim.sass.decode import decode
from memsim.sass.listing import read_listing
from memsim.time.latencies import Latencies
from memsim.time.timed_instructions import timed_instructions
from tests.time.patterns import estimated, measured

PLAIN = f"IMAD1 {HIDING}"
#: Loads of 16 bytes a lane are not among them, as they were timed without a register to go to.
IN_QUEUES = "LDS STS SHFL MUFU".split()
IN_PIPES = "IMAD IADD3 ISETP DFMA HMMA VOTE MOV".split()


def both(pattern: str, warps: int) -> tuple[float, float]:
    """Cycles of a repetition: estimated, measured."""
    whole = f"{pattern} {HIDING}"
    return estimated(whole, warps), measured("queues", whole, PLAIN, warps)


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("name", IN_QUEUES)
def test_instructions_wait_for_a_queue_if_it_is_full(name: str, times: int) -> None:
    pattern = " ".join([f"{name}1"] * times)
    for warps in (1, 4):
        found, taken = both(pattern, warps)
        assert found == pytest.approx(taken, rel=0.08)


@pytest.mark.parametrize("name", IN_PIPES)
def test_instructions_wait_for_a_pipe_if_it_is_busy(name: str) -> None:
    for times in (1, 4, 12):
        for warps in (1, 4):
            found, taken = both(" ".join([f"{name}1"] * times), warps)
            assert found == pytest.approx(taken, abs=0.3)


@pytest.mark.parametrize("name", ["LDS", "S2R", "S2UR", "LDC", "SHFL", "MUFU"])
@pytest.mark.parametrize("times", [1, 2, 4])
def test_results_come_when_they_do_on_the_chip(name: str, times: int) -> None:
    found, taken = both(f"{f'{name}2>0 ' * times}FFMA4<0", 1)
    assert found == pytest.approx(taken, abs=2.1)


@pytest.mark.parametrize("name", ["LDS", "STS", "SHFL"])
@pytest.mark.parametrize("times", [1, 4])
def test_registers_may_be_overwritten_when_they_may_on_the_chip(name: str, times: int) -> None:
    for warps in (1, 4):
        found, taken = both(f"{f'{name}2)0 ' * times}FFMA4<0", warps)
        assert found == pytest.approx(taken, abs=0.1)


@pytest.mark.parametrize("board", ["h100-80gb-hbm3", "h200"])
@pytest.mark.parametrize(
    ("text", "name"),
    [("STS [R2], R4", "sts32"), ("STS.128 [R2], R4", "sts128"), ("ATOMS.CAS R0, [R2], R4, R6", "cass")],
)
def test_a_scheduler_sends_registers_as_slowly_as_on_the_chip(board: str, text: str, name: str) -> None:
    """Of 24 instructions of one warp, with stall counts of 4, those beyond 16."""
    listing = f'\t.section\t.text.k,"ax",@progbits\n        /*0000*/ {text} ;\n'
    (op,) = decode(read_listing(listing)["k"]).ops
    ((one,), _) = timed_instructions([op], [asked("NOP4").control], {}, Latencies())
    recorded = TIME.newest(data_folder("traces"), f"nvidia-{board}")
    early, late = (recorded.value("sequence", 0, op=name, k=k, warps=1) for k in (16, 24))
    assert max(one.sends, 4) == pytest.approx((late - early) / 8, abs=0.1)
