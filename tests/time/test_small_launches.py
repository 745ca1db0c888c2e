"""Constants beside what tiny launches, and stores of many multiprocessors, were measured to take."""

from __future__ import annotations

import json
from statistics import mean, median
from typing import Any

import numpy as np
import pytest

from docs.time_errors import DRAM_READ, L2_HITS, L2_SECTORS
from lab.experiments import TIME
from lab.time.run_time import timed_lines
from memsim.arch import get_arch
from memsim.data import data_folder
from memsim.time.latencies import Latencies
from memsim.time.launch_survey import BESIDE_FOUND, LaunchSurvey, Patience
from memsim.validate.device import slug

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


def first(what: str, count: int = 4, **how: str) -> np.ndarray:
    """The clocks of lines of `lab/time/first.cu`, differences from step to step [lines, steps]."""
    found = [
        line.values
        for line in timed_lines("\n".join(MEASURED["first"]))
        if line.what == what and how.items() <= line.how.items()
    ]
    assert len(found) == count
    return np.diff(np.array(found), axis=1, prepend=0)


def test_code_that_is_skipped_over_and_constants_come_late_at_first() -> None:
    set_to = Latencies()
    for what in ("jumps64", "jumps128"):
        steps = first(what)
        late = np.median(steps[:, 1:8]) - np.median(steps[:, 9:])
        assert set_to.code_first + set_to.code_jump + set_to.code_skipped == pytest.approx(late, rel=0.1)
    far = first("jumps1024")
    assert set_to.code_moved == pytest.approx(np.median(far[:, 1:8]) - np.median(far[:, 9:]), rel=0.1)
    apart = {words: first("constants", apart=str(words)) for words in (1, 16, 64)}
    there = np.median(apart[1][:, 1:8])
    assert set_to.constant_line == pytest.approx(np.median(apart[16][:, 1:8]) - there, abs=3)
    assert set_to.constant_block == pytest.approx(np.median(apart[64][:, 1:8]) - there, rel=0.03)


def test_textures_and_printf_take_as_long_as_measured() -> None:
    set_to = Latencies()
    shapes = np.array([first(shape) for shape in ("flat", "solid", "layered", "cube")])
    assert set_to.fetch == pytest.approx(shapes[..., 1].min() - 25, abs=5)
    assert set_to.fetch + set_to.first_fetch == pytest.approx(np.median(shapes[..., 0]), rel=0.1)
    calls = [
        first(f"print{which}", grid="1", block="32").mean(1)
        for which in ("1", "16", "64", "_int", "_4_ints", "_8_ints", "_double", "_text")
    ]
    assert set_to.printf == pytest.approx(np.median(calls), rel=0.03)
    assert 0.85 < np.min(calls) / set_to.printf < np.max(calls) / set_to.printf < 1.4


def profiled(kernel: str) -> list[dict[str, Any]]:
    return [one for one in MEASURED["profiled"] if one["kernel"] == kernel]


def test_atomics_of_all_multiprocessors_take_turns_at_slices() -> None:
    """At 4 bytes to 8 KiB. Which slices meet is not known on the chip, so that some are off."""
    requests, ratios = 132 * 8 * 16, []
    rng = np.random.default_rng(1)
    for one in profiled("histogram"):
        survey, some = LaunchSurvey(1, 1, Patience()), 200
        address = 4 * rng.integers(0, one["words"], 32 * some)
        survey.take_turns(np.repeat(np.arange(some), 32), address)
        turns = survey.turns.max() * requests / some
        ratios.append(turns * Latencies().turn / 100 / one["cycles"])
    assert len(ratios) == 9
    assert median(ratios) == pytest.approx(1, abs=0.1)
    assert 0.4 < min(ratios) < max(ratios) < 1.6


def test_columns_are_stored_slower() -> None:
    set_to, rates = Latencies(), get_arch("sm_90").memory
    assert rates is not None
    columns = [one for one in profiled("only_columns") if one["pitch"] < 2048]  # beyond, DRAM takes part
    sector = (set_to.partial + 3 * set_to.gap) / 100 / rates.l2_written
    assert [one["sectors"] * sector / one["cycles"] for one in columns] == pytest.approx([0.94] * 4, abs=0.05)


def test_dram_delivers_64_bytes() -> None:
    (apart,) = (one for one in profiled("spread") if one["apart"] == 8 and one["grid"] == "(132, 1, 1)")
    (far,) = (one for one in profiled("spread") if one["apart"] == 32 and one["grid"] == "(132, 1, 1)")
    assert apart["sectors"] == far["sectors"]
    assert far["dram"] == pytest.approx(64 * 132 * 256, rel=0.01)
    assert apart["dram"] == pytest.approx(32 * 132 * 256, rel=0.01)


@pytest.mark.parametrize("product", [board.product for board in get_arch("sm_90").boards])
def test_l2_counts_some_sectors_as_found_that_come_beside_others(product: str) -> None:
    """Those of rows that threads walk along, beyond what L2 finds of launches that ask for whole lines."""
    cold = {
        one.name: one.counters
        for one in TIME.newest(data_folder("traces"), slug(product)).launches
        if one.l2 == "cold"
    }

    def found(name: str) -> float:
        counters = cold[name]
        missing = counters[L2_SECTORS] * (1 - counters[L2_HITS] / 100)
        return counters[DRAM_READ] / 32 - missing

    others = mean(found(name) for name in ("add4_1056", "sum_1056"))
    beside = (found("row_each_256") - others) / (8192 * 256 * 4 / 64)
    assert pytest.approx(beside, abs=0.03) == BESIDE_FOUND


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
