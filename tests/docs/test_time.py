"""What docs/time-accuracy.md and `memsim time` say of the error, against the recordings."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from statistics import mean

import pytest

from docs import time_errors
from memsim.time.launch_time import HELD_OUT_ERROR, PROJECTS_ERROR


@pytest.mark.slow
def test_the_error_that_is_told_is_that_of_the_kernels_that_were_held_out() -> None:
    kernels = time_errors.timed_kernels()
    held_out = [one for one in kernels if not one.chosen]
    assert len(held_out) >= 20
    assert {one.name for one in kernels} == set(time_errors.recorded())
    worst = max(mean(abs(one.error(board)) for one in held_out) for board in time_errors.products())
    assert ceil(100 * worst) / 100 == HELD_OUT_ERROR


@pytest.mark.slow
def test_every_kernel_that_is_far_off_is_named() -> None:
    said = (Path(__file__).parents[2] / "docs" / "time-accuracy.md").read_text("utf-8")
    paragraph = said[said.index("What is far off") :].partition("\n\n")[0]
    for one in time_errors.timed_kernels():
        if max(abs(one.error(board)) for board in time_errors.products()) > 0.12:
            assert f"`{one.name}`" in paragraph


def test_the_recordings_are_of_both_boards() -> None:
    assert time_errors.products() == ["NVIDIA H200", "NVIDIA H100 80GB HBM3"]
    assert set(time_errors.ABLATED) <= set(time_errors.recorded())


def test_the_error_of_projects_that_is_told_is_the_median_of_all_launches_of_programs() -> None:
    (row,) = (row for row in time_errors.programs_table().splitlines() if time_errors.ALL_LAUNCHES in row)
    launches, median = (row.split("|")[at].strip(" %") for at in (2, 4))
    assert int(launches) > 400
    assert ceil(float(median)) / 100 == PROJECTS_ERROR


@pytest.mark.slow
def test_nearly_every_published_step_has_the_right_sign() -> None:
    rows = [row.split("|") for row in time_errors.ladders_table().splitlines()[4:]]
    assert len(rows) == sum(len(ladder) - 1 for ladder in time_errors.LADDERS) >= 20
    assert sum(row[5].strip() == "wrong" for row in rows) <= len(rows) // 20
