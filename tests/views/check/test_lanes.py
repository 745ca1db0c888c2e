"""The lanes to blame, in a sentence, from the model's own numbers."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from memsim.analysis import analyze_trace
from memsim.trace.trace import Trace
from memsim.views.check.findings import worst_request
from memsim.views.labels import lane_names
from tests.guard.subjects import CLEAN, OUT, SCATTERED, TWO_WAY, shared, subject, unresolved
from tests.traces import LANES, Request, make_trace, site, traces


def sentence(addresses: Any, **fields: Any) -> str:
    analysis = subject(shared(np.asarray(addresses), site(**fields))).analysis
    return worst_request(analysis, analysis.sites[0])


@pytest.mark.parametrize(
    ("addresses", "fields", "expected"),
    [
        (TWO_WAY, {}, "lanes 0, 16 of warp 0, block (0,0,0) meet in bank 0: 2 different words"),
        (SCATTERED, {}, "lanes 0-31 of warp 0, block (0,0,0) meet in bank 0: 32 different words"),
        (LANES * 0, {"op": "atomic"},
         "lanes 0-31 of warp 0, block (0,0,0) meet in bank 0: 32 accesses that cannot share"),
        (LANES * 32, {"width": 16},
         "lanes 0, 4 of warp 0, block (0,0,0) meet in banks 0-3: 2 different words"),
        (CLEAN, {}, "no lanes of warp 0, block (0,0,0) conflict; they take 1 wavefront, ideal is 1"),
    ],
)  # fmt: skip
def test_who_collides(addresses: Any, fields: dict[str, Any], expected: str) -> None:
    assert sentence(addresses, **fields) == expected


def test_who_reads_from_one_bank_of_the_cache() -> None:
    copy = site(op="cp_async"), [Request(LANES * 4, partner=LANES % 8 * 4 + LANES // 8 * 4096)]
    analysis = subject(copy).analysis
    assert worst_request(analysis, analysis.sites[0]) == (
        "lanes 0, 8, ... 24 of warp 0, block (0,0,0) read from one bank of the L1 cache: "
        "4 accesses one after the other"
    )


def test_who_scatters() -> None:
    analysis = subject((OUT, [Request(SCATTERED), Request(CLEAN, 1000)])).analysis
    said = worst_request(analysis, analysis.sites[0])
    assert said == ("lanes 0-31 of warp 0, block (0,0,0), 128 bytes apart, access 32 sectors instead of 4")


def test_the_worst_request_speaks() -> None:
    trace = make_trace((site(), [Request(CLEAN, 1000), Request(SCATTERED), Request(TWO_WAY, 10)]))
    trace = dataclasses.replace(trace, warp=np.array([0, 3, 1], np.int32), block=np.array([0, 1, 0]))
    analysis = analyze_trace(trace)
    assert worst_request(analysis, analysis.sites[0]).startswith("lanes 0-31 of warp 3, block (1,0,0) meet")


def test_nobody_is_to_blame_for_what_is_not_known() -> None:
    analysis = subject(unresolved()).analysis
    assert worst_request(analysis, analysis.sites[0]) == ""
    never = subject((site(), [])).analysis
    assert worst_request(never, never.sites[0]) == ""


@given(trace=traces())
def test_as_many_words_as_ways(trace: Trace) -> None:
    analysis = analyze_trace(trace)
    for row in analysis.sites:
        said = worst_request(analysis, row)
        if not (row.wavefronts or row.sectors) or not row.operation.is_of_lanes:
            assert said == ""
        elif row.space == "shared" and (row.max_ways or 0) > 1:
            assert f": {row.max_ways} " in said
        elif row.space == "shared":
            assert said.startswith("no lanes")
        else:
            assert " sector" in said


def test_lists_of_lanes_are_short() -> None:
    assert lane_names([5]) == "lane 5"
    assert lane_names([0, 1, 2, 3]) == "lanes 0-3"
    assert lane_names([0, 1, 8, 10, 11, 12]) == "lanes 0-1, 8, 10-12"
