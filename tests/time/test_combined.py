"""What is said of requests on their way to L2, beside what was measured of pairs of multiprocessors."""

from __future__ import annotations

import json
import re
from typing import Any

from memsim.data import data_folder

MEASURED: dict[str, Any] = json.loads((data_folder("docs/validation") / "combined.json").read_text("utf-8"))
PAIR = re.compile(r"pair first=(\d+) other=(\d+) number=\d+ members=\d bytes=(\d+) : \d+ (.+)")
SECTOR, MANY = 32, 132


def pairs(state: str) -> dict[tuple[int, int], list[float]]:
    """(first, other) -> what L2 counted, as shares of the sectors that one multiprocessor reads."""
    found = {}
    for line in MEASURED[state]:
        if told := PAIR.fullmatch(line):
            sectors = int(told[3]) / SECTOR
            found[int(told[1]), int(told[2])] = [int(count) / sectors for count in told[4].split()]
    return found


def placed(grid: int) -> list[list[int]]:
    """The multiprocessor of each block, of each launch of so many."""
    lines = (line.split(" :") for line in MEASURED["placed"])
    return [[*map(int, where.split())] for what, where in lines if f"grid={grid} " in what]


def test_requests_are_combined_within_a_gpc_only() -> None:
    """Blocks are started on one GPC after the other, so that those combined are near each other there."""
    order = placed(MANY)[0]
    assert sorted(order) == [*range(MANY)]
    found = pairs("warm")
    assert len(found) == 2 * MANY
    for first in (0, 71):
        together = {other for other in range(MANY) if other != first and found[first, other][0] < 1.5}
        apart = {other for other in range(MANY) if found[first, other][0] > 1.9}
        assert len(together) >= 8 and len(together | apart | {first}) == MANY
        # a GPC has at most 18, and one of them begins with eight that have the last numbers
        beside = {order.index(other) for other in together if other < 124}
        assert max(beside) - min(beside) < 18


def test_a_half_of_l2_asks_the_other_for_what_belongs_there() -> None:
    """Of sectors that one half reads L2 misses 1.5 in the mean, of those that both do, 2."""
    found = pairs("cold")
    assert len(found) == MANY
    misses = {other: counted[3] for (_, other), counted in found.items()}
    of_one = {other for other, share in misses.items() if abs(share - 1.5) < 0.1}
    of_both = {other for other, share in misses.items() if abs(share - 2) < 0.1}
    assert 0 in of_one and of_one | of_both == {*range(MANY)}
    assert 60 <= len(of_one) <= 72
    asked = {other: counted[0] for (_, other), counted in found.items()}
    assert all(abs(share - (1 if other == 0 else 2)) < 0.1 for other, share in asked.items())
