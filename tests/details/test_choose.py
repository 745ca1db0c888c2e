"""Which row is meant: by line, or the worst."""

from __future__ import annotations

import pytest

from memsim.analysis import Analysis, analyze_trace
from memsim.details.choose import dearer, sites_on_line, worst_site
from memsim.errors import MemsimError
from tests.traces import LANES, Request, make_trace, site

CLEAN = (site(), [Request(LANES * 4, count=9)])
TWO_WAY = (site(op="store"), [Request(LANES * 8)])
SCATTERED = (site(space="global", line=4), [Request(LANES * 128)])
NEAR = (site(space="global", line=2), [Request(LANES * 4)])
UNKNOWN = (site(line=5, unresolved="a call"), [])


def analysis(*accesses: tuple) -> Analysis:
    return analyze_trace(make_trace(*accesses))


def test_how_many_times_too_dear() -> None:
    found = analysis(CLEAN, TWO_WAY, SCATTERED, NEAR, UNKNOWN)
    by_kind = {(s.line, s.space, s.op): dearer(s) for s in found.sites}
    assert by_kind == {
        (3, "shared", "load"): 1.0,
        (3, "shared", "store"): 2.0,
        (4, "global", "load"): 8.0,
        (2, "global", "load"): 1.0,
        (5, "shared", "load"): None,
    }


@pytest.mark.parametrize(
    ("accesses", "line", "op"),
    [
        ((CLEAN, TWO_WAY, SCATTERED), 3, "store"),
        ((CLEAN, SCATTERED, NEAR), 4, "load"),
        ((NEAR, CLEAN), 3, "load"),
        ((NEAR, UNKNOWN), 2, "load"),
    ],
)
def test_the_worst(accesses: tuple, line: int, op: str) -> None:
    found = analysis(*accesses)
    worst = found.sites[worst_site(found)]
    assert (worst.line, worst.op) == (line, op)


def test_there_may_be_no_worst() -> None:
    with pytest.raises(MemsimError, match="no access that could be analyzed"):
        worst_site(analysis(UNKNOWN))


def test_the_rows_on_a_line_dearest_first() -> None:
    found = analysis(CLEAN, TWO_WAY, NEAR)
    assert [found.sites[i].op for i in sites_on_line(found, "3")] == ["store", "load"]
    assert sites_on_line(found, "kernel.cu:3") == sites_on_line(found, "3")
    for place, message in (("7", "line 7 of kernel"), ("other.cu:3", "other.cu:3"), ("three", "is no line")):
        with pytest.raises(MemsimError, match=message):
            sites_on_line(found, place)
