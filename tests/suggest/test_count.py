"""Counts that are forecast for a layout are those of a kernel that is compiled with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsim.analysis import Analysis, analyze_trace
from memsim.suggest.count import _count, count, least_wavefronts
from memsim.suggest.maps import UNCHANGED, Map, Padding, XorSwizzle, candidates
from memsim.suggest.prove import wavefronts_of
from memsim.suggest.tiles import tiles
from tests.model import oracle
from tests.suggest.kernels import analyzed, copied_tile, transpose
from tests.traces import Request, make_trace, site


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    """The transpose through a plain tile."""
    return analyzed(transpose("float tile[32][32]").job(tmp_path_factory.mktemp("plain")))


@pytest.mark.parametrize(
    "padding",
    [
        1,
        pytest.param(2, marks=pytest.mark.slow),
        pytest.param(4, marks=pytest.mark.slow),
        pytest.param(17, marks=pytest.mark.slow),
        pytest.param(32, marks=pytest.mark.slow),
    ],
)
def test_a_padding(padding: int, plain: Analysis, tmp_path: Path) -> None:
    padded = analyzed(transpose(f"float tile[32][32 + {padding}]").job(tmp_path))
    (tile,) = tiles(plain)
    change = Padding(128, 4 * padding)
    cost = count(plain, tile, [change])[change]
    assert cost.certain
    assert cost.wavefronts == wavefronts_of(padded, "tile")


@pytest.mark.parametrize(
    ("index", "change"),
    [
        ("x ^ y", XorSwizzle(128, 5, 2)),
        pytest.param("x ^ ((y & 7) << 2)", XorSwizzle(128, 3, 4), marks=pytest.mark.slow),
        pytest.param("x ^ ((y >> 2 & 3) << 1)", XorSwizzle(512, 2, 3), marks=pytest.mark.slow),
        pytest.param("x ^ (y & 1)", XorSwizzle(128, 1, 2), marks=pytest.mark.slow),
    ],
)
def test_a_swizzle(index: str, change: Map, plain: Analysis, tmp_path: Path) -> None:
    turned = index.translate(str.maketrans("xy", "yx"))
    swizzled = transpose("float tile[32][32]", f"[y][{index}]", f"[x][{turned}]")
    (tile,) = tiles(plain)
    cost = count(plain, tile, [change])[change]
    assert cost.wavefronts == wavefronts_of(analyzed(swizzled.job(tmp_path)), "tile")


@pytest.mark.some(1)
@pytest.mark.parametrize(("level", "wavefronts", "sectors"), [("cg", 32, 144), ("ca", 64, 128)])
def test_copies(level: str, wavefronts: int, sectors: int, tmp_path: Path) -> None:
    """A cp.async.cg moves a sector for each line of global memory and sector of shared memory that meet."""
    plain = analyzed(copied_tile(level).job(tmp_path))
    padded = analyzed(copied_tile(level, 8).job(tmp_path))
    (tile,) = tiles(plain)
    cost = count(plain, tile, [UNCHANGED, Padding(128, 16)])
    assert cost[UNCHANGED].wavefronts == wavefronts_of(plain, "tile")
    for analysis, change in ((plain, UNCHANGED), (padded, Padding(128, 16))):
        (copy,) = [site for site in analysis.sites if site.space == "global" and "cp_async" in site.op]
        assert cost[change].sectors == copy.sectors
    after = cost[Padding(128, 16)]
    assert (after.wavefronts, after.sectors) == (wavefronts_of(padded, "tile"), copy.sectors)
    assert (after.wavefronts, after.sectors) == (wavefronts, sectors)


LANES = st.lists(st.integers(0, 127), min_size=32, max_size=32).map(lambda words: np.array(words) * 4)


@settings(max_examples=30)
@given(st.lists(LANES, min_size=1, max_size=3), st.sampled_from(["load", "store", "atomic"]))
def test_the_scalar_rules_count_the_same(requests: list[np.ndarray], op: str) -> None:
    on = np.arange(32) % 5 != 0
    analysis = analyze_trace(
        make_trace(
            (
                site(op=op),
                [Request(addresses, count=n + 2, active=on) for n, addresses in enumerate(requests)],
            ),
            arrays=(("tile", "shared", 0, 512),),
            apart=True,
        )
    )
    (tile,) = tiles(analysis)
    costs = count(analysis, tile, candidates(analysis, tile))
    least = least_wavefronts(analysis, tile)
    for change, cost in list(costs.items())[::17]:
        expected = sum(
            (n + 2) * oracle.shared(change.places(addresses).tolist(), 4, op, on.tolist())["wavefronts"]
            for n, addresses in enumerate(requests)
        )
        assert (cost.wavefronts, cost.most) == (expected, expected)
        assert least <= expected


def test_merged_requests_are_counted_wherever_they_may_lie(tmp_path: Path) -> None:
    """A merged trace gives the number, or bounds around it, of one that keeps requests apart."""
    job = transpose("float tile[32][32]").job(tmp_path)
    exact, merged = analyzed(job), analyzed(job, apart=False)
    (one,), (other,) = tiles(exact), tiles(merged)
    assert len(other.rows) < len(one.rows)
    maps = candidates(exact, one)
    truth, bounds = (_count(a, tile, maps, tile.rows) for a, tile in ((exact, one), (merged, other)))
    assert all(
        bounds[change].wavefronts <= truth[change].wavefronts <= bounds[change].most for change in maps
    )
    assert any(bounds[change].certain for change in maps)


def test_a_layout_that_tells_merged_requests_apart_is_not_certain() -> None:
    """Rows of 48 words: 32 words at the start of a row cost one wavefront, across two padded rows two."""
    request = Request(np.arange(32) * 4, count=2)
    analysis = analyze_trace(make_trace((site(), [request]), arrays=(("tile", "shared", 0, 384),)))
    (tile,) = tiles(analysis)
    change = Padding(192, 4)
    cost = count(analysis, tile, [change])[change]
    assert (cost.wavefronts, cost.most, cost.certain) == (2, 4, False)
    assert count(analysis, tile, [Padding(128, 4)])[Padding(128, 4)].certain


def test_of_many_requests_the_best_layout_is_found_by_a_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the first requests have no conflicts."""
    rows = [Request(np.arange(32) * 4 + 128 * row, count=1) for row in range(32)]
    columns = [Request(np.arange(32) * 128 + 4 * column, count=1) for column in range(32)]
    trace = make_trace((site(), [*rows, *columns]), arrays=(("tile", "shared", 0, 4096),), apart=True)
    analysis = analyze_trace(trace)
    (tile,) = tiles(analysis)
    maps = candidates(analysis, tile)
    whole = count(analysis, tile, maps)
    monkeypatch.setattr("memsim.suggest.count.FIRST_LOOK", 3 * len(maps))
    few = count(analysis, tile, maps)
    assert len(few) < len(whole)
    assert min(cost.most for cost in few.values()) == min(cost.most for cost in whole.values()) == 64
    assert all(whole[change] == cost for change, cost in few.items())


def test_rows_that_are_padded_are_padded_once_more_in_pairs() -> None:
    """Of 8 rows each has every second of 8 banks: 12 B behind a row leave two lanes in a bank, twice."""
    halves = Request(np.arange(32) // 4 * 524 + np.arange(32) % 4 * 8)
    arrays = (("tile", "shared", 0, 8 * 524),)
    analysis = analyze_trace(make_trace((site(width=2), [halves]), arrays=arrays, apart=True))
    (tile,) = tiles(analysis)
    costs = count(analysis, tile, candidates(analysis, tile, (524,)))
    assert analysis.sites[0].wavefronts == 2
    assert costs[Padding(1048, 8)].most == 1


def test_lanes_that_cannot_share_wait_in_any_layout() -> None:
    """8 lanes add to one word, and the others to words of its bank: 8 wavefronts are left, and found."""
    addresses = np.where(np.arange(32) < 8, 0, np.arange(32) * 128)
    analysis = analyze_trace(
        make_trace(
            (site(op="atomic"), [Request(addresses)]), arrays=(("tile", "shared", 0, 4096),), apart=True
        )
    )
    (tile,) = tiles(analysis)
    costs = count(analysis, tile, candidates(analysis, tile))
    assert analysis.sites[0].wavefronts == 32
    assert least_wavefronts(analysis, tile) == min(cost.most for cost in costs.values()) == 8
