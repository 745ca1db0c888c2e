"""Which row is meant: by line, or the worst."""

from __future__ import annotations

import pytest

from memsim.analysis import Analysis, analyze_trace
from memsim.errors import MemsimError
from memsim.kernels import catalog
from memsim.views.analyze.costs import cost_ratio, sites_on_line, worst_site
from tests.traces import LANES, Request, make_trace, site

CLEAN = (site(), [Request(LANES * 4, count=9)])
TWO_WAY = (site(op="store"), [Request(LANES * 8)])
SCATTERED = (site(space="global", line=4), [Request(LANES * 128)])
NEAR = (site(space="global", line=2), [Request(LANES * 4)])
ABOVE = (site(line=6, width=16), [Request(LANES % 16 * 16, count=3)])  # 4 wavefronts, 2 would do
WIDE = (site(line=7, width=16, op="store"), [Request(LANES * 16)])  # 4 wavefronts, and no fewer would do
FOUR = (site(op="store"), [Request(LANES * 8, count=4)])  # 4 conflicts, 4 wavefronts above the ideal
BOTH = (site(line=8, width=16), [Request(LANES % 16 * 32)])  # 4 conflicts, 6 wavefronts above the ideal
UNKNOWN = (site(line=5, unresolved="a call"), [])
GROUP = (site(line=9, op="wgmma", width=8), [Request(LANES * 4, count=99)])
REMOTE = (site(line=10, op="cluster_load"), [Request(LANES * 128, count=99)])


def analysis(*accesses: tuple) -> Analysis:
    return analyze_trace(make_trace(*accesses))


def test_how_many_times_too_dear() -> None:
    found = analysis(CLEAN, TWO_WAY, SCATTERED, NEAR, UNKNOWN)
    by_kind = {(s.line, s.space, s.op): cost_ratio(s) for s in found.sites}
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
        ((CLEAN, ABOVE, WIDE), 6, "load"),
        ((CLEAN, WIDE), 7, "store"),
        ((CLEAN, ABOVE, SCATTERED), 4, "load"),
        ((ABOVE, TWO_WAY, SCATTERED), 3, "store"),
        ((FOUR, BOTH), 8, "load"),
        ((GROUP, REMOTE, NEAR), 2, "load"),  # lanes decide neither what wgmma costs nor what goes elsewhere
    ],
)
def test_the_worst(accesses: tuple, line: int, op: str) -> None:
    for given in (accesses, accesses[::-1]):
        found = analysis(*given)
        worst = found.sites[worst_site(found)]
        assert (worst.line, worst.op) == (line, op)
        if "worst is" in found.verdict:
            assert f": worst is the {op} at kernel.cu:{line}: " in found.verdict


def test_equal_conflicts_are_equal() -> None:
    four, both = analysis(FOUR, BOTH).sites
    assert (four.conflicts, both.conflicts) == (4, 4)
    assert [site.wavefronts - site.ideal_wavefronts for site in (four, both)] == [4, 6]


def test_in_a_clean_kernel_it_is_what_stands_farthest_from_the_ideal() -> None:
    found = catalog()["kernel_v4"].analyze(size=(128, 128, 16))
    worst = found.sites[worst_site(found)]
    assert (worst.wavefronts, worst.ideal_wavefronts, worst.conflicts) == (512, 256, 0)
    store = next(site for site in found.sites if site.op == "store")
    assert store.wavefronts == store.ideal_wavefronts


def test_the_verdict_and_the_choice_name_the_same_access_where_conflicts_are_equal() -> None:
    found = catalog()["opt_4_tile2d_register"].analyze(size=(128, 128, 16))
    worst = found.sites[worst_site(found)]
    assert [site.conflicts for site in found.sites].count(worst.conflicts) == 2
    assert f"worst is the load at opt_4_tile2d_register.cu:{worst.line}: 2-way" in found.verdict


def test_there_may_be_no_worst() -> None:
    with pytest.raises(MemsimError, match="no access that could be analyzed"):
        worst_site(analysis(UNKNOWN))
    with pytest.raises(MemsimError, match="no access that could be analyzed"):
        worst_site(analysis(GROUP, REMOTE))


def test_the_rows_on_a_line_worst_first() -> None:
    found = analysis(CLEAN, TWO_WAY, NEAR)
    assert [found.sites[i].op for i in sites_on_line(found, "3")] == ["store", "load"]
    two_way, unknown = (site(line=4, op="store"), TWO_WAY[1]), (site(line=4, unresolved="a call"), [])
    mixed = analysis(unknown, SCATTERED, two_way)
    rows = [mixed.sites[i] for i in sites_on_line(mixed, "4")]
    assert [(row.op, row.space) for row in rows[:2]] == [("store", "shared"), ("load", "global")]
    assert rows[2].unresolved
    assert sites_on_line(found, "kernel.cu:3") == sites_on_line(found, "3")
    for place, message in (
        ("7", "line 7 of kernel"),
        ("other.cu:3", "other.cu:3"),
        ("three", "is not a line"),
    ):
        with pytest.raises(MemsimError, match=message):
            sites_on_line(found, place)
