"""Constants of what lies behind L1, beside reads of all multiprocessors that were timed."""

from __future__ import annotations

import json
import re
from statistics import mean, median
from typing import Any

import numpy as np
import pytest

from memsim.data import data_folder
from memsim.time.latencies import Latencies

MEASURED: dict[str, Any] = json.loads(
    (data_folder("traces").parent / "docs" / "validation" / "reads.json").read_text("utf-8")
)
COLUMNS = re.compile(r"columns pitch=(\d+) piece=(\d+) ahead=(\d+) warm=(\d) : (\d+) (\d+) (\d+)")
SET_TO = Latencies()


def distances() -> np.ndarray:
    """Cycles of a hop from DRAM and from L2, of each multiprocessor [runs, multiprocessors, 2]."""
    return np.array(
        [[line.split(" : ")[1].split() for line in run] for run in MEASURED["distances"]], np.float64
    )


def steps(piece: int, ahead: int, warm: int, pitches: tuple[int, ...]) -> float:
    """Cycles in which the warps of a block have read `ahead` times 512 bytes each, in pieces so far apart."""
    found = []
    for line in (line for run in MEASURED["columns"] for line in run):
        values = COLUMNS.fullmatch(line)
        assert values is not None
        pitch, *form, cycles, _, _ = map(int, values.groups())
        if form == [piece, ahead, warm] and pitch in pitches:
            found.append(cycles / (1024 / (128 / (piece / 16) * ahead)))
    assert len(found) == 2 * len(pitches)
    return median(found)


FAR_APART = (4096, 8192, 16384, 32768)


def test_the_farthest_multiprocessor_is_as_far_as_was_measured() -> None:
    from_dram, from_l2 = distances().mean(0).T
    assert from_l2.max() - from_l2.mean() == pytest.approx(SET_TO.l2_far, abs=1)
    assert from_dram.max() - from_dram.mean() == pytest.approx(SET_TO.dram_far, abs=2)


def test_a_load_of_one_sector_waits_less_for_dram() -> None:
    one = float(np.subtract(*distances().mean((0, 1))))
    line = mean(steps(512, 1, warm, FAR_APART) * (1 if warm == 0 else -1) for warm in (0, 1)) * 2
    assert one < line
    assert one == pytest.approx((SET_TO.dram - SET_TO.l2) * (1 - SET_TO.alone / 100), rel=0.02)
    assert SET_TO.dram - SET_TO.l2 == pytest.approx(line, rel=0.05)


def test_lines_are_asked_for_one_after_the_other() -> None:
    """Four warps that ask for 64 lines each take longer than those that ask for 16."""
    longer = steps(32, 4, 1, FAR_APART) - steps(512, 4, 1, FAR_APART)
    assert longer / (4 * (64 - 16)) == pytest.approx(SET_TO.line / 100, rel=0.15)


@pytest.mark.parametrize(("piece", "doublings"), [(256, 1), (128, 2), (64, 3), (32, 4)])
def test_a_load_waits_longer_for_more_rows_of_dram(piece: int, doublings: int) -> None:
    """Rows are 4 KiB: pieces within one take as long as a row's."""
    waits = {at: steps(at, 1, 0, FAR_APART) - steps(at, 1, 1, FAR_APART) for at in (piece, 512)}
    assert waits[piece] / waits[512] == pytest.approx(1 + doublings * SET_TO.rows / 100, rel=0.07)
    if piece >= 64:
        inside = steps(piece, 1, 0, (256,)) - steps(piece, 1, 1, (256,))
        assert inside == pytest.approx(waits[512], rel=0.1)
