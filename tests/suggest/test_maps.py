"""Maps of layouts: one to one, in bounds, aligned; and what they say of themselves is so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsim.analysis import analyze_trace
from memsim.model import shared_access
from memsim.source.values import ArrayShape
from memsim.suggest.maps import Map, Padding, XorSwizzle, candidates
from memsim.suggest.tiles import Tile, tiles
from memsim.views.suggest.advice import change_name
from tests.traces import Request, make_trace, site

SIZES = st.sampled_from([512, 1024, 1088, 2048, 4096, 4224])


@st.composite
def swizzles(draw: st.DrawFn) -> XorSwizzle:
    base = draw(st.integers(2, 6))
    bits = draw(st.integers(1, 7 - base))
    return XorSwizzle(draw(st.integers(1, 12)) << base + bits, bits, base)


paddings = st.builds(
    Padding, st.integers(1, 64).map(lambda n: n * 4), st.integers(1, 32).map(lambda n: n * 4)
)
maps = st.one_of(paddings, swizzles())


@given(maps, SIZES)
def test_no_two_bytes_come_to_one_place(change: Map, size: int) -> None:
    block = 1 << change.base + change.bits if isinstance(change, XorSwizzle) else 1
    offsets = np.arange(size // block * block)
    places = change.places(offsets)
    assert len(np.unique(places)) == len(offsets)
    assert places.min() >= 0
    assert places.max() < change.size(len(offsets))


@given(maps, st.sampled_from([4, 8, 16]))
def test_what_stays_whole_is_aligned_and_side_by_side(change: Map, width: int) -> None:
    places = change.places(np.arange(4096).reshape(-1, width))
    aligned = (places[:, 0] % width == 0) & (np.diff(places, axis=1) == 1).all(axis=1)
    if change.whole(width):
        assert aligned.all()
    if not aligned.all():
        assert not change.whole(width)


@given(maps, st.lists(st.integers(0, 255), min_size=32, max_size=32), st.integers(1, 40))
def test_requests_a_period_apart_cost_the_same(change: Map, words: list[int], times: int) -> None:
    lanes = np.array(words) * 4
    costs = shared_access(change.places(np.stack([lanes, lanes + times * change.period])), 4)
    assert costs.wavefronts[0] == costs.wavefronts[1]


def test_a_swizzle_is_cutlass_s() -> None:
    """Swizzle<B, M, S> of cute/swizzle.hpp: offset ^ ((offset & yyy_mask) >> S), on elements of 2 bytes."""
    offsets = np.arange(16 * 64)
    for b, m, s in ((3, 3, 3), (2, 3, 3), (1, 3, 4), (3, 3, 4)):
        mask = ((1 << b) - 1) << m + s
        expected = offsets ^ ((offsets & mask) >> s)
        ours = XorSwizzle(2 << m + s, b, m + 1)
        assert (ours.places(offsets * 2) == expected * 2).all()


@pytest.mark.some(5)
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize(
    "declared", ["float tile[16][32]", "__half tile[32][32]", "float tile[3][11][8]", ""]
)
def test_every_candidate_keeps_its_promises(declared: str, width: int) -> None:
    size = 1056 if "11" in declared else 2048
    element = next((n for word, n in (("float", 4), ("half", 2)) if word in declared), width)
    if width < element:
        return  # nobody reads a part of an element
    text = f"__shared__ {declared};" if declared else ""
    strided = Request(np.arange(32) * (size // 32 // 16 * 16) % (size - 15) // 16 * 16)
    analysis = analyze_trace(
        make_trace(
            (site(width=width), [strided]),
            arrays=(("tile", "shared", 0, size),),
            sources={"kernel.cu": text},
        )
    )
    (tile,) = tiles(analysis)
    assert (tile.shape is not None) == bool(declared)
    found = candidates(analysis, tile)
    assert found
    accesses = np.arange(size // width * width).reshape(-1, width)
    for change in found:
        places = change.places(accesses)
        assert len(np.unique(places)) == places.size, change
        assert places.min() >= 0 and places.max() < change.size(size), change
        assert (places[:, 0] % width == 0).all(), change
        assert (np.diff(places, axis=1) == 1).all(), change


@pytest.mark.parametrize(
    ("extents", "declared", "change", "name"),
    [
        ((32, 32), 4, XorSwizzle(128, 5, 2), "s[row][col ^ row], CUTLASS's Swizzle<5,0,5>"),
        ((64, 32), 4, XorSwizzle(128, 5, 2), "s[row][col ^ (row & 31)], CUTLASS's Swizzle<5,0,5>"),
        ((1024,), 4, XorSwizzle(256, 4, 3), "s[i ^ (i / 64 % 16 << 1)], CUTLASS's Swizzle<4,1,5>"),
        ((16, 48), 4, XorSwizzle(128, 3, 4), "o ^ (o / 128 % 8 << 4), CUTLASS's Swizzle<3,2,3>"),
        (None, 4, XorSwizzle(384, 3, 4), "s[i ^ (i / 96 % 8 << 2)]"),
        (None, 0, XorSwizzle(128, 3, 4), "o ^ (o / 128 % 8 << 4), CUTLASS's Swizzle<3,4,3> of bytes"),
    ],
)
def test_a_swizzle_is_named_as_its_user_writes_it(
    extents: tuple[int, ...] | None, declared: int, change: XorSwizzle, name: str
) -> None:
    """An index that the name gives is where the map puts the element."""
    shape = None if extents is None else ArrayShape(extents, declared)
    none = np.zeros(0, dtype=np.int64)
    tile = Tile("s", 0, 4096, shape, {}, {}, (), none, none, 4, 4, declared, 4096)
    assert change_name(change, tile) == f"swizzle: {name}"
    if "[i" in name:
        i = np.arange(768)
        index = name[name.index("[") + 1 : name.index("]")].replace("/", "//")
        assert (eval(index, {"i": i}) * declared == change.places(i * declared)).all()
