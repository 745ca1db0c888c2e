"""Blocks that ask for the same but for whole periods are counted as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from memsim.access import NONE, AccessSide
from memsim.arch.units import WARP
from memsim.state.parts import Part
from memsim.state.predicates import to_bools
from memsim.state.registers import Sum, to_array
from memsim.trace import events
from memsim.trace.events import Sides, WarpCounts, block_classes, written_out

PERIOD = 128
PERIODS = (PERIOD, 32)  # of a copy's sides
BLOCKS, WARPS = 5, 2
FIRST_BLOCK = 40
SHAPES = {"u": (BLOCKS, 1), "v": (1, WARPS * WARP), "f": (BLOCKS, WARPS * WARP)}


@pytest.mark.parametrize("further", [0, 7 * PERIOD, 1 << 63, 1 << 80, -(1 << 90)])
def test_a_constant_of_more_bits_than_an_address_has_is_a_period_further(further: int) -> None:
    """Where a damaged kernel adds up what no address is, or a block's part brings it back."""
    blocks = Part(np.array([[0], [32], [PERIOD], [PERIOD + 32], [5 * PERIOD]], np.int64))
    chosen, weights = block_classes([(Sum(64 + further, u=blocks), True)], (PERIOD, PERIOD), 5)
    assert (chosen.tolist(), weights.tolist()) == ([0, 1], [3, 2])


@pytest.mark.parametrize("further", [0, 1 << 63, 1 << 64, 3 << 63, -(1 << 64), 1 << 90])
@pytest.mark.parametrize("has_threads", [True, False])
def test_addresses_that_are_written_out_have_64_bits(further: int, has_threads: bool) -> None:
    blocks = Part(np.array([[0], [PERIOD], [PERIOD], [32]], np.int64))
    threads = Part(np.arange(WARP, dtype=np.int64)[None] * 4) if has_threads else None
    made, weights = written_out(
        [AccessSide(Sum(64 + further, u=blocks, v=threads), True)], PERIODS, np.arange(4), 1, np.zeros(4, int)
    )
    wrapped = (64 + further + (1 << 63)) % (1 << 64) - (1 << 63)
    lanes = np.arange(WARP) * 4 * has_threads
    assert (made.addresses == np.array([[wrapped], [wrapped + 32]]) + lanes).all()
    assert (weights.tolist(), made.block.tolist()) == ([3, 1], [0, 3])


@pytest.mark.parametrize(
    ("address", "chosen", "weights"),
    [
        (64, [1], [8]),
        (Sum(64, u=Part(np.arange(32).reshape(32, 1) // 4 % 2 * 32)), [1, 5], [4, 4]),
    ],
)
def test_blocks_that_do_not_take_part_are_not_counted(
    address: int | Sum, chosen: list[int], weights: list[int]
) -> None:
    """`if (blockIdx.x % 4 == 1) ...` in 32 blocks is executed by 8."""
    some = Part(np.arange(32).reshape(32, 1) % 4 == 1)
    found, times = block_classes([(address, some)], (PERIOD, PERIOD), 32)
    assert (found.tolist(), times.tolist()) == (chosen, weights)


def numbers(random: np.random.Generator, rows: int, columns: int) -> Part:
    return Part(random.integers(0, 10, (rows, columns)) * 16)


def some(random: np.random.Generator, rows: int, columns: int) -> Part:
    """Active threads, of some warps none. A predicate that no thread has would be no part."""
    lanes = random.random((rows, columns)) < 0.6
    if columns > 1:
        lanes &= np.repeat(random.random((rows, columns // WARP)) < 0.6, WARP, axis=1)
    lanes[-1, -1] |= not lanes.any()
    return Part(lanes)


#: What addresses and active threads may differ by: u by block, v by thread, f by both.
ADDRESSES = ("", "u", "v", "uv", "f")
ACTIVE = ("", "u", "v", "f")


def executed(random: np.random.Generator, address: str, active: str) -> tuple[int | Sum, bool | Part]:
    """A side of an execution, by what it differs by."""
    parts = {name: numbers(random, *SHAPES[name]) for name in address}
    start = int(random.integers(0, 2 * PERIOD))
    return Sum(start, **parts) if parts else start, some(random, *SHAPES[active]) if active else True


def one_by_one(sides: Sides) -> Iterator[tuple[int, int, list[tuple[int, ...]]]]:
    """(block, warp, for each side the lanes' addresses, NONE of an idle lane) of each request."""
    shape = (BLOCKS, WARPS, WARP)
    whole = BLOCKS, WARPS * WARP
    own = np.broadcast_to(to_bools(sides[0][1]), whole)
    lanes = [
        np.where(
            own & np.broadcast_to(to_bools(active), whole), np.broadcast_to(to_array(address), whole), NONE
        ).reshape(shape)
        for address, active in sides
    ]
    for block in range(BLOCKS):
        for warp in range(WARPS):
            if own.reshape(shape)[block, warp].any():
                yield block, warp, [tuple(side[block, warp].tolist()) for side in lanes]


def alike(sides: list[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """What requests have in common that differ by whole periods only."""
    return tuple(
        tuple(address if address == NONE else address % period for address in side)
        for side, period in zip(sides, PERIODS)
    )


@pytest.mark.parametrize("active", ACTIVE)
@pytest.mark.parametrize("address", ADDRESSES)
def test_requests_by_class_are_those_of_all_blocks(address: str, active: str) -> None:
    """As many of each request as blocks make one by one; each stands for a block that makes it. Of an access,
    and of copies whose other side differs by anything.
    """
    random = np.random.default_rng(26)
    for _ in range(2):
        own = executed(random, address, active)
        check([own])
        for other in product(ADDRESSES, ACTIVE):
            check([own, executed(random, *other)])


def check(sides: Sides) -> None:
    blocks = np.arange(FIRST_BLOCK, FIRST_BLOCK + BLOCKS)
    found, weights = written_out(sides, PERIODS, blocks, WARPS, np.arange(BLOCKS) * WARPS)
    counted: Counter[Any] = Counter()
    made: list[tuple[int, int, list[tuple[int, ...]]]] = []
    for row, times in enumerate(weights.tolist()):
        active = found.active[row]
        request = [tuple(np.where(active, found.addresses[row], NONE).tolist())]
        if found.partner is not None:
            request.append(tuple(np.where(active, found.partner[row], NONE).tolist()))
        block = int(found.block[row]) - FIRST_BLOCK
        made.append((block, int(found.warp[row]) - block * WARPS, request))
        counted[alike(request)] += times
    every = list(one_by_one(sides))
    assert counted == Counter(alike(request) for _, _, request in every)
    assert all(request in every for request in made)


def test_warps_of_a_mask_are_counted_whether_it_is_remembered_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_MASKS", 1)
    counts, random = WarpCounts(), np.random.default_rng(6)
    assert (counts.of(True), counts.of(False)) == (0, 0)
    counts.start_chunk(BLOCKS, WARPS)
    assert (counts.of(True), counts.of(False)) == (BLOCKS * WARPS, 0)
    for shape in SHAPES.values():
        for mask in [some(random, *shape) for _ in range(3)]:
            each = np.broadcast_to(mask.array, (BLOCKS, WARPS * WARP)).reshape(BLOCKS, WARPS, WARP).any(2)
            for _ in range(2):
                assert counts.of(mask) == each.sum()
            assert len(counts.counts) <= 2


@pytest.mark.parametrize(("row", "same"), [([1, 0], True), ([0, 1], True), ([1, 1], False), ([0, 0], False)])
def test_blocks_have_equally_many_warps_or_not(row: list[int], same: bool) -> None:
    """The first block's first warp alone has lanes; the second block's do as `row` says."""
    counts = WarpCounts()
    counts.start_chunk(2, 2)
    mask = Part(np.repeat(np.array([[1, 0], row], bool), WARP, axis=1))
    assert [counts.is_same_in_all(mask) for _ in range(2)] == [same, same]
    assert counts.is_same_in_all(True) and counts.is_same_in_all(Part(mask.array[:1].copy()))
