"""Constants beside what tiny launches, and stores of many multiprocessors, were measured to take."""

from __future__ import annotations

import json
from statistics import median
from typing import Any

import pytest

from lab.time.run_time import timed_lines
from memsim.arch import get_arch
from memsim.data import data_folder
from memsim.time.latencies import Latencies

MEASURED: dict[str, Any] = json.loads(
    (data_folder("traces").parent / "docs" / "validation" / "small_launches.json").read_text("utf-8")
)
FEW, ALL = (1, 2, 4), (100, 132, 133)


def cycles(kernel: str, threads: int, blocks: tuple[int, ...], l2: str) -> float:
    """The median of launches of so many blocks."""
    those = [one for one in MEASURED["tiny"] if (one["kernel"], one["threads"]) == (kernel, threads)]
    return median(taken for one in those if one["blocks"] in blocks for taken in one[l2])


def of_a_sector(width: int, apart: int) -> float:
    """Cycles of a multiprocessor for each sector of another store of 256 lanes, while all store."""
    (values,) = zip(
        *(
            line.values
            for line in timed_lines("\n".join(MEASURED["sharing"]))
            if line.what == "stores"
            and line.how["again"] == "0"
            and (line.how["width"], line.how["apart"], line.how["grid"]) == (str(width), str(apart), "132")
        )
    )
    return (max(values) - min(values)) / 28 / (256 * apart / 32)


def test_launches_on_all_multiprocessors_start_later_than_on_one() -> None:
    set_to = Latencies()
    assert (cycles("load", 32, ALL, "warm") - cycles("load", 32, FEW, "warm")) / 130 == pytest.approx(
        set_to.each_warm, abs=0.3
    )
    growth = [
        (cycles(kernel, threads, ALL, "cold") - cycles(kernel, threads, FEW, "cold")) / 130
        for kernel, threads in (("load", 32), ("load", 256), ("load_store", 32), ("load_store", 256))
    ]
    assert min(growth) < set_to.each_cold < max(growth)


def test_parts_of_sectors_are_stored_slower() -> None:
    whole, part = of_a_sector(8, 8), of_a_sector(4, 8)
    rates = get_arch("sm_90").memory
    assert rates is not None
    assert whole == pytest.approx(132 / rates.l2_written, rel=0.02)
    assert of_a_sector(1, 8) == pytest.approx(part, rel=0.02)  # of one byte as of four
    assert 1.2 < part / whole < Latencies().partial / 100
