"""Requests stand for each other only if no count differs: pairs that differ in one alone, and good twins."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from memsim.arch import SM_90
from memsim.model import shared_access
from memsim.model.alike import BITS, _packed, alike
from memsim.model.cp_async import limits_of_copies
from memsim.model.operations import operation
from memsim.model.remote import limits_of_blocks
from memsim.model.shared import rounds_of_one_warp

Lanes = NDArray[np.int64]
LANES = np.arange(32)


def moved(addresses: Lanes, **lanes: int) -> Lanes:
    """Addresses, but for those of some lanes: `_17=128`."""
    found = addresses.copy()
    for lane, address in lanes.items():
        found[int(lane[1:])] = address
    return found


def key(space: str, access: str, width: int, addresses: Lanes, partner: Lanes | int = -1) -> bytes:
    columns = addresses[None], np.ones((1, 32), np.bool_), np.broadcast_to(partner, (1, 32))
    return alike(space, access, width, *columns, SM_90).tobytes()


WIDE = LANES * 8
SIXTEEN = LANES * 16
#: (space, access, width, one request, another that costs something else, one that costs the same).
PAIRS = {
    # two groups of 2 wavefronts each, and of 1 and 3: only the worst group differs
    "ways": ("shared", "store", 8, moved(WIDE, _1=128, _17=256), moved(WIDE, _17=256, _18=384),
             moved(WIDE, _2=128 + 8 * 3, _18=256 + 8 * 3)),
    # as many sectors and lines, but updates of one word come one after the other
    "updates of a word": ("global", "reduction", 4, LANES % 4 * 4, np.maximum(LANES - 28, 0) * 4,
                          LANES // 8 * 4),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_what_costs_something_else_is_told_apart(name: str) -> None:
    *access, one, other, twin = PAIRS[name]
    assert key(*access, one) != key(*access, other)  # type: ignore[arg-type]
    assert key(*access, one) == key(*access, twin)  # type: ignore[arg-type]


def test_a_copy_that_may_miss_is_none_that_cannot() -> None:
    """Its lanes read from one line or from two, in the same banks."""
    words = LANES * 4
    one_line, two_lines = (
        key("shared", "cp_async", 4, words, words + 128 * (far <= LANES)) for far in (32, 16)
    )
    assert one_line != two_lines
    assert two_lines == key("shared", "cp_async", 4, words + 256, words + 128 * (LANES >= 16) + 512)


@pytest.mark.parametrize(("access", "width"), [("cp_async", 4), ("cp_async_cg", 16)])
def test_lanes_of_a_copy_that_write_zeros_are_counted(access: str, width: int) -> None:
    words = LANES * width
    assert key("shared", access, width, words, words) != key(
        "shared", access, width, words, np.where(LANES < 31, words, -1)
    )


def test_a_copy_past_the_cache_whose_lanes_write_to_one_place_has_no_rule() -> None:
    """Lane 1 writes to lane 0's place, or to the one in the same banks 512 or 1,024 bytes further."""
    of = [key("shared", "cp_async_cg", 16, moved(SIXTEEN, _1=to), SIXTEEN) for to in (512, 1024, 0)]
    assert of[0] == of[1] != of[2]


def test_each_combination_of_counts_is_a_key_of_its_own() -> None:
    """Strides and idle lanes: up to 32 wavefronts, each number of lanes; no two of them share a number."""
    strides = np.repeat([0, 4, 8, 16, 32, 64, 128], 32)
    addresses = strides[:, None] * LANES
    active = np.tile(LANES[None] <= LANES[:, None], (7, 1))
    found = alike("shared", "load", 4, addresses, active, np.full(active.shape, -1), SM_90)
    cost = shared_access(addresses, 4, "load", active)
    counts = np.stack([active.sum(1), cost.wavefronts, cost.conflicts, cost.ways, cost.ideal], 1)
    together = np.unique(np.hstack([found, counts]), axis=0)
    assert len(together) == len(np.unique(found, axis=0)) == len(np.unique(counts, axis=0))


@pytest.mark.parametrize("piece", [128, 32])  # a compare-and-swap is served by half lines
def test_atomics_whose_limits_differ_are_told_apart(piece: int) -> None:
    """Four places of three lines or sectors: where the array lies decides which lanes are served together."""
    random = np.random.default_rng(1)
    addresses = random.integers(0, 3, (400, 32)) * piece + random.integers(0, 4, (400, 32)) * 4
    on = random.random(addresses.shape) < (1 if piece == 128 else 0.2)
    keys = alike("global", "reduction", 4, addresses, on, np.full(addresses.shape, -1), SM_90)
    limits = limits_of_blocks(addresses, 4, on, (32, 128, 64))
    together = np.unique(np.column_stack([keys, *(column for pair in limits for column in pair)]), axis=0)
    assert len(np.unique(keys, axis=0)) == len(together) > 10


@pytest.mark.parametrize(("access", "width"), [("cp_async", 4), ("cp_async", 16), ("cp_async_cg", 16)])
def test_copies_whose_limits_differ_are_told_apart(access: str, width: int) -> None:
    """They read from three lines, and some of their lanes write zeros."""
    random = np.random.default_rng(2)
    to = np.argsort(random.random((300, 64)), axis=1)[:, :32] * width
    source = random.integers(0, 3, (300, 32)) * 128 + random.integers(0, 2, (300, 32)) * width
    partner = np.where(random.random((300, 32)) < 0.9, source, -1)
    on = np.ones(to.shape, np.bool_)
    keys = alike("shared", access, width, to, on, partner, SM_90)
    least, most, _ = limits_of_copies(operation("shared", access), width, to, on, partner, SM_90)
    together = np.unique(np.column_stack([keys, least, least if most is None else most]), axis=0)
    assert len(np.unique(keys, axis=0)) == len(together) > 10


@pytest.mark.parametrize("width", [4, 8])
def test_loops_of_compare_and_swaps_are_told_apart_by_their_rounds(width: int) -> None:
    random = np.random.default_rng(3)
    addresses = random.integers(0, random.integers(1, 80, (60, 1)), (60, 32)) * width
    on = random.random((60, 32)) < 0.9
    keys = alike("shared", "atomic_loop", width, addresses, on, np.full(on.shape, -1), SM_90)
    rounds = [
        column for changes in (False, True) for column in rounds_of_one_warp(addresses, width, on, changes)
    ]
    together = np.unique(np.column_stack([keys, *rounds]), axis=0)
    assert len(np.unique(keys, axis=0)) == len(together) > 10


def test_counts_of_fifteen_bits_do_not_run_into_each_other() -> None:
    largest = (1 << BITS) - 1
    counts = np.array(
        [[0, 0, 0, 0, 0], [largest] * 5, [1, 0, 0, 0, 0], [0, largest, 0, 0, largest], [0, 0, 1, 0, 1]]
    )
    assert len(np.unique(_packed(list(counts.T)), axis=0)) == len(counts)
    assert len(np.unique(_packed([np.array([0, 1]), np.array([16, 0])]), axis=0)) == 2


def test_what_the_profiler_does_not_know_hides_nothing_else() -> None:
    """Copies of as many sectors, two lanes of one place to the same 128 bytes: only one of them overlaps."""
    active = LANES[None] < 4

    def copied(to: list[int], source: list[int]) -> bytes:
        shared, outside = (np.pad(np.array([lanes]), ((0, 0), (0, 28))) for lanes in (to, source))
        return alike("global", "cp_async_cg", 16, outside, active, shared, SM_90).tobytes()

    one = copied([32, 0, 16, 48], [48, 16, 0, 16])
    assert one != copied([48, 32, 32, 16], [0, 32, 16, 32])
    assert one == copied([32, 0, 16, 48], [176, 144, 128, 144])
