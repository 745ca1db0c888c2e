"""When an H200 writes into registers what loads bring, by loops of which each shows one thing."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from lab.time.register_writes import Loop, loops
from memsim.data import data_folder

RECORDED = json.loads(data_folder("docs/validation/register_writes.json").read_text("utf-8"))["loops"]
#: Cycles of a loop, run by one warp.
CYCLES = {Loop(*(one[name] for name in asdict(Loop("zero", "1", 0)))): one["cycles"][0] for one in RECORDED}
#: Cycles in which no arithmetic is issued, after a result has waited for too long.
PAUSE = 3


def longer(loop: Loop) -> float:
    """Than without loads."""
    return CYCLES[loop] - CYCLES[Loop(loop.results, loop.load if loop.spread else "1", 0, spread=loop.spread)]


def test_what_the_laboratory_makes_was_recorded() -> None:
    assert list(CYCLES) == [*loops()]


@pytest.mark.parametrize("load", ["1", "o", "2", "4"])
def test_nothing_is_in_the_way_where_arithmetic_writes_nowhere(load: str) -> None:
    assert all(abs(longer(Loop("zero", load, loads))) < 0.1 for loads in (1, 2, 3, 4, 6, 8))


def test_a_register_is_written_while_arithmetic_writes_to_the_other_bank() -> None:
    assert all(abs(longer(Loop("alternating", load, loads))) < 0.1 for load in "1o" for loads in (1, 4, 8))
    assert all(abs(longer(Loop("even", "o", loads))) < 0.1 for loads in (1, 4, 8))
    assert all(longer(Loop("even", "1", loads)) > PAUSE - 0.1 for loads in (1, 4, 8))


@pytest.mark.parametrize(("load", "pairs"), [("2", 1), ("4", 2)])
def test_a_pair_waits_for_a_cycle_without_arithmetic_and_a_pause_has_room_for_three(
    load: str, pairs: int
) -> None:
    for loads in (1, 2, 3, 4, 6):
        pauses = -(-loads * pairs // 3)
        assert longer(Loop("alternating", load, loads)) == pytest.approx(PAUSE * pauses, abs=0.1)


def test_a_gap_serves_who_has_come_and_does_not_wait_too_long() -> None:
    found = {gap: longer(Loop("alternating", "2", 1, gap)) for gap in range(8, 72, 3)}
    served = [gap for gap, cycles in found.items() if cycles < 0.1]
    assert served == [14, 17, 20, 23, 26]
    assert all(cycles == pytest.approx(PAUSE, abs=0.1) for gap, cycles in found.items() if abs(gap - 20) > 9)


@pytest.mark.parametrize(("load", "loads", "pairs"), [("2", 1, 1), ("2", 2, 2), ("2", 4, 4), ("4", 2, 4)])
def test_who_waits_leaves_gaps_and_goes_on_eight_cycles_after_the_last_write(
    load: str, loads: int, pairs: int
) -> None:
    waits = [longer(Loop("alternating", load, loads, waiting=place)) for place in (20, 24, 28)]
    assert waits == pytest.approx([7 + pairs] * 3, abs=0.1)


@pytest.mark.parametrize("load", ["2", "4"])
def test_what_comes_in_as_many_wavefronts_as_registers_is_no_pair(load: str) -> None:
    """One register after the other finds a cycle in which arithmetic writes to the other bank."""
    assert all(abs(longer(Loop("alternating", load, loads, spread=True))) < 0.1 for loads in (1, 2, 4, 8))
    for loads in (1, 2, 4):
        for waiting in (8, 16, 24, 32):
            free = longer(Loop("zero", load, loads, waiting=waiting, spread=True))
            assert longer(Loop("alternating", load, loads, waiting=waiting, spread=True)) == pytest.approx(
                free, abs=0.1
            )
