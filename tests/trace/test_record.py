"""The recorder, told of one event at a time: a launch of three blocks of two warps, and what it keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim.access import AccessSide, Chunk, Site, SiteAccess, SiteRequests, Stretches
from memsim.arch import SM_90
from memsim.instruction import Instruction
from memsim.model.alike import SameCost
from memsim.state.parts import Part
from memsim.state.poison import Poison
from memsim.state.predicates import ScatteredLanes
from memsim.state.registers import Sum
from memsim.trace import record as module
from memsim.trace import site_records
from memsim.trace.footprint import Footprint
from memsim.trace.merge import merge, recorded_blocks
from memsim.trace.record import Recorder
from memsim.trace.trace_data import AccessSite

BLOCKS, THREADS = 3, 64
LOAD = Site(0, Instruction("LDG"), "load", "global", 4)
STORE = Site(1, Instruction("STS"), "store", "shared", 4)
#: Each thread its own word, and the first half of each block's threads.
WORDS = Sum(0, v=Part(np.arange(THREADS)[None] * 4))
FIRST_WARP = Part(np.arange(THREADS)[None] < 32)
LANES = np.arange(THREADS)[None]
ONE_BLOCK = Part(np.arange(BLOCKS)[:, None] == 1)


def chunk(first_block: int = 0) -> Chunk:
    return Chunk(np.arange(first_block, first_block + BLOCKS), THREADS, np.zeros((BLOCKS, 1), np.int64))


def recorder(alike: Any = None, **how: bool) -> Recorder:
    found = Recorder(alike, **how)
    found.start_chunk(chunk())
    return found


def only_site(of: Recorder) -> AccessSite:
    (found,) = of.columns()[0]
    return found


def requests(of: Recorder) -> list[tuple[int, int, int, int]]:
    """(count, block, warp, lowest address of an active lane) of each row."""
    columns = of.columns()[1]
    lowest = [int(row[on].min()) for row, on in zip(columns["addresses"], columns["active"], strict=True)]
    where = (columns[name].tolist() for name in ("count", "block", "warp"))
    return list(zip(*where, lowest, strict=True))


def test_warps_whose_lanes_are_all_off_execute_an_access_and_make_no_request() -> None:
    found = recorder()
    found.access(SiteAccess(LOAD, WORDS, True, FIRST_WARP, frozenset({"b", "a"})))
    assert requests(found) == [(3, 0, 0, 0)]
    site = only_site(found)
    assert (site.instructions, site.array, site.unresolved) == (6, "a|b", None)


def test_an_access_of_no_lane_is_executed_by_those_that_come_there() -> None:
    found = recorder()
    assert found.access(SiteAccess(LOAD, 0, FIRST_WARP, False, frozenset({"a"}))) is None
    assert requests(found) == [] and (only_site(found).instructions, only_site(found).array) == (3, "")
    assert found.marks.footprint == Footprint(0, 0)


@pytest.mark.parametrize(("apart", "everywhere"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("site", [LOAD, STORE])
def test_what_lies_periods_apart_is_one_row_unless_it_is_asked_for_apart(
    site: Site, apart: bool, everywhere: bool
) -> None:
    found = recorder(apart=apart, everywhere=everywhere)
    for at in (0, 128, 4):
        found.access(SiteAccess(site, at, True, FIRST_WARP))
    is_apart = everywhere if site is LOAD else apart
    assert [row[0] for row in requests(found)] == ([3, 3, 3] if is_apart else [6, 3])


def test_again_counts_the_same_once_more_until_events_are_forgotten() -> None:
    found = recorder()
    again = found.access(SiteAccess(LOAD, WORDS, True, True))
    assert again is not None and again() and again()
    found.forget()
    assert not again()
    assert [row[0] for row in requests(found)] == [18]
    assert only_site(found).instructions == 18


@pytest.mark.parametrize("site", [LOAD, STORE])
def test_what_is_computed_anew_is_recognised_by_its_content(site: Site) -> None:
    """It is counted again, and not expanded again; neither is what has the same parts."""
    found = recorder()
    for copy in (WORDS, WORDS, Sum(128, v=Part(WORDS.v.array.copy())), Sum(4, v=WORDS.v)):  # type: ignore[union-attr]
        found.access(SiteAccess(site, copy, True, FIRST_WARP))
    assert [(tally.hits, tally.requests) for tally in found.tallies] == [(3, BLOCKS), (1, BLOCKS)]
    assert [row[0] for row in requests(found)] == [3 * BLOCKS, BLOCKS]
    assert only_site(found).instructions == 4 * 2 * BLOCKS


@pytest.mark.parametrize(("site", "most"), [(STORE, 1 << 17), (LOAD, 1 << 46)])
def test_requests_that_are_asked_for_apart_are_as_many_as_their_addresses(site: Site, most: int) -> None:
    found, places = recorder(everywhere=True), np.random.default_rng(5).integers(0, most, 300) // 4 * 4
    for at in places.tolist():
        found.access(SiteAccess(site, at, True, FIRST_WARP))
    assert sorted(row[3] for row in requests(found)) == np.unique(places).tolist()


@pytest.mark.parametrize("other", [True, FIRST_WARP, False])
def test_only_what_a_copy_reads_is_marked(other: Any) -> None:
    found, copy = recorder(), Site(1, Instruction("LDGSTS"), "cp_async", "shared", 4)
    found.access(SiteAccess(copy, WORDS, True, True, other=AccessSide(WORDS, other)))
    assert found.marks.footprint.read == {True: 8, False: 0}.get(
        other if isinstance(other, bool) else None, 4
    )


def test_requests_of_which_none_has_a_lane_are_executed() -> None:
    found, nowhere = recorder(), np.zeros((2, 32), bool)
    one = np.zeros(2, np.int64)
    found.requests(LOAD, SiteRequests(np.zeros((2, 32), np.int64), nowhere, None, one, one))
    assert requests(found) == [] and only_site(found).instructions == 2


def test_another_chunk_has_blocks_and_keys_of_its_own() -> None:
    """A register's part may be the same object, and yet another number of blocks may have it."""
    found = recorder()
    found.access(SiteAccess(LOAD, WORDS, True, True))
    found.start_chunk(Chunk(np.array([7]), THREADS, np.array([[32]])))
    found.access(SiteAccess(LOAD, WORDS, True, True))
    found.access(SiteAccess(LOAD, 4096 + 4, True, FIRST_WARP))
    assert requests(found) == [(6 + 2, 0, 0, 0), (1, 7, 1, 4100)]
    assert only_site(found).instructions == 6 + 2 + 2


def test_unknown_addresses_are_executions_without_a_request() -> None:
    found = recorder()
    found.unknown(LOAD, Poison("first", None), True, FIRST_WARP)
    found.unknown(LOAD, Poison("second", None), FIRST_WARP, ONE_BLOCK)
    found.lost(LOAD, 4, "third")
    site = only_site(found)
    assert (site.instructions, site.unresolved_requests, site.unresolved) == (6 + 3 + 4, 3 + 2 + 4, "first")
    assert requests(found) == []


def test_single_lanes_are_requests_of_their_warps() -> None:
    """Lanes 3 and 102 of the chunk's 6 warps: lane 3 of block 0's first warp, lane 6 of block 1's second."""
    found = recorder()
    found.scattered(LOAD, np.array([512, 1028]), ScatteredLanes(np.array([3, 102])), 5, frozenset({"a"}))
    assert requests(found) == [(1, 0, 0, 512), (1, 1, 1, 1028)]
    columns = found.columns()[1]
    assert [np.flatnonzero(row).tolist() for row in columns["active"]] == [[3], [6]]
    assert only_site(found).instructions == 5 and found.marks.footprint == Footprint(2, 0)


def test_stretches_are_requests_of_512_bytes_and_their_rest() -> None:
    """Two of 528 bytes, at places of a line that are the same, and one of 32."""
    found = recorder()
    start, length = np.array([16, 1024 + 16, 64]), np.array([528, 528, 32])
    block, warp = np.array([1, 2, 2]), np.array([1, 0, 0])
    found.stretches(LOAD, frozenset({"a"}), Stretches(block, start, length, warp))
    found.issued(LOAD, 3)
    columns = found.columns()[1]
    # sorted by place and length; a request covers 32 pieces of 16 bytes from the start of a line on
    assert columns["active"].sum(1).tolist() == [31, 2, 2]
    assert columns["count"].tolist() == [2, 2, 1] and columns["block"].tolist() == [1, 1, 2]
    assert only_site(found).lanes == 3
    assert found.marks.footprint == Footprint(34, 0)


def test_both_sides_of_a_copy_are_marked_where_they_are_global() -> None:
    found = recorder()
    copy = Site(1, Instruction("LDGSTS"), "cp_async", "shared", 4)
    other = AccessSide(Sum(4096, v=Part(np.arange(THREADS)[None] * 4)), FIRST_WARP)
    found.access(SiteAccess(copy, WORDS, True, True, other=other))
    assert found.marks.footprint == Footprint(4, 0)
    partner = found.columns()[1]["partner"]
    assert [(row.min(), row.max()) for row in partner] == [(4096, 4096 + 31 * 4), (-1, -1)]


def test_expanded_requests_without_a_lane_are_executed_only() -> None:
    found = recorder()
    addresses = np.arange(32)[None].repeat(2, 0) * 4
    active = np.array([[True] * 32, [False] * 32])
    found.requests(LOAD, SiteRequests(addresses, active, None, np.array([2, 1]), np.array([1, 0])))
    assert requests(found) == [(1, 2, 1, 0)] and only_site(found).instructions == 2


def test_too_many_requests_are_folded_to_one_of_each_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rotated lanes: each is a request of its own, and costs what the others do; strided ones do not."""
    monkeypatch.setattr(module, "MOST_ROWS", 8)
    found = recorder(SameCost(SM_90))
    for step, rotations in ((4, 10), (32, 5)):
        for rotation in range(rotations):
            words = Part((LANES + rotation) % 32 * step)
            for _ in range(2):
                found.access(SiteAccess(LOAD, Sum(0, v=words), True, FIRST_WARP))
    assert [row[0] for row in requests(found)] == [2 * 10 * BLOCKS, 2 * 5 * BLOCKS]
    assert "all but one of the requests" in found.notes[-1]


@pytest.mark.parametrize("repeats", [False, True])
def test_an_access_that_hardly_repeats_is_folded_at_once(
    repeats: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its good twin makes each of its requests three times, and keeps them all."""
    monkeypatch.setattr(module, "MANY_ROWS", 4)
    monkeypatch.setattr(site_records, "MANY_OF_SITE", 4)
    found = Recorder(SameCost(SM_90))
    found.start_chunk(Chunk(np.array([0]), 32, np.zeros((1, 1), np.int64)))
    for rotation in range(12):
        words = Part((LANES[:, :32] + rotation) % 32 * 4)
        again = found.access(SiteAccess(LOAD, Sum(0, v=words), True, True))
        assert not repeats or (again is not None and again() and again())
    assert found.is_scattered != repeats and len(requests(found)) == (12 if repeats else 1)


@pytest.mark.parametrize("first", [FIRST_WARP, None])
@pytest.mark.parametrize("second", [FIRST_WARP, True, None])
def test_parts_are_alike_if_their_blocks_executed_the_same(first: Any, second: Any) -> None:
    """A part of which nothing was counted says nothing."""
    found, other = recorder(), recorder()
    for part, mask in ((found, first), (other, second)):
        if mask is not None:
            part.executed(0, 2, mask)
        part.forget()
    assert other.executions.blocks_alike
    found.executions.add_others(other.executions)
    assert found.executions.blocks_alike == (None in (first, second) or first is second)
    third = recorder()
    third.executed(0, 2, FIRST_WARP)
    assert third.executions.blocks_alike
    found.executions.add_others(third.executions)
    told = {one for one in (first, second, FIRST_WARP) if one is not None}
    assert found.executions.blocks_alike == (len(told) == 1)


def test_once_accesses_hardly_repeat_new_ones_are_folded_and_old_ones_stay() -> None:
    found = recorder(SameCost(SM_90))
    found.access(SiteAccess(STORE, WORDS, True, True))
    found.is_scattered = True
    for rotation in range(3):
        found.access(SiteAccess(STORE, Sum(0, v=Part((LANES + rotation) % 32 * 4)), True, True))
        found.access(SiteAccess(LOAD, Sum(0, v=Part((LANES + rotation) % 32 * 4)), True, True))
    assert not found.sites[STORE.index].rows.folded and len(found.sites[STORE.index].rows) == 3
    assert found.sites[LOAD.index].rows.folded


def test_requests_of_a_folded_access_wait_to_be_costed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each event has a request for each of three blocks; what waits is counted in the end all the same."""
    monkeypatch.setattr(module, "BATCH", 7)
    found, waiting = recorder(SameCost(SM_90)), []
    found.fold(found.record(LOAD))
    for rotation in range(5):
        words = Sum(0, u=Part(np.arange(BLOCKS)[:, None] * 4), v=Part((LANES + rotation) % 32 * 4))
        found.access(SiteAccess(LOAD, words, True, FIRST_WARP))
        waiting.append((found.sites[LOAD.index].wait, found.remembered))
    assert waiting == [(wait, 500 * wait) for wait in (3, 6, 0, 3, 6)]
    assert sum(row[0] for row in requests(found)) == 5 * BLOCKS


@pytest.mark.parametrize("folded", [True, False])
def test_parts_of_a_launch_are_put_together_folded_if_one_is(folded: bool) -> None:
    parts = []
    for first in (0, 1):
        part = recorder(SameCost(SM_90))
        if folded and first:
            part.fold(part.record(LOAD))
        for rotation in range(first, 4):
            part.access(SiteAccess(LOAD, Sum(0, v=Part((LANES + rotation) % 32 * 4)), True, FIRST_WARP))
        part.forget()
        parts.append(recorded_blocks(part))
    found = recorder(SameCost(SM_90))
    merge(found, parts)
    assert [row[0] for row in requests(found)] == ([21] if folded else [3, 6, 6, 6])
    site = only_site(found)
    assert site.instructions == 7 * 6


def test_room_is_not_made_at_every_access_where_nothing_can_be_folded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 4)
    found, made = recorder(), []
    make_room = found.make_room
    monkeypatch.setattr(found, "make_room", lambda: (made.append(1), make_room()))
    for rotation in range(32):
        found.access(SiteAccess(LOAD, Sum(0, v=Part((LANES + rotation) % 32 * 4)), True, True))
    assert len(made) == 3 and len(requests(found)) == 32


def test_notes_say_what_was_seen_and_where_nothing_was_counted() -> None:
    found = recorder()
    found.noted("reads outside of every array", FIRST_WARP)
    found.uncounted("texture request", ONE_BLOCK)
    found.passed_by("k.cu:9", 0, True)
    assert found.notes == [
        "reads outside of every array (3 requests)",
        "instructions for some values, behind branches that decide no access, at k.cu:9",
    ]
    assert found.uncounted_requests == {"texture request": 2}


@pytest.mark.parametrize(
    ("masks", "ran", "alike"),
    [
        ((True,), [6, 6, 0], True),
        ((FIRST_WARP,), [3, 3, 0], True),
        ((ONE_BLOCK,), [2, 2, 0], False),
        ((True, ONE_BLOCK), [8, 8, 0], False),
        ((False,), [0, 0, 0], True),
    ],
)
def test_executions_by_instruction_and_whether_blocks_are_alike(
    masks: tuple[Any, ...], ran: list[int], alike: bool
) -> None:
    found = recorder()
    for mask in masks:
        found.executed(0, 2, mask)
    assert found.executions.of(3).tolist() == ran and found.executions.blocks_alike == alike


@pytest.mark.parametrize(("second", "alike"), [(FIRST_WARP, True), (True, False), (None, False)])
def test_chunks_are_alike_if_each_of_their_blocks_executed_the_same(second: Any, alike: bool) -> None:
    """The second one has a block, the first one has three."""
    found = recorder()
    found.executed(0, 2, FIRST_WARP)
    found.start_chunk(Chunk(np.array([3]), THREADS, np.zeros((1, 1), np.int64)))
    found.executed(*((0, 2, second) if second is not None else (0, 1, FIRST_WARP)))
    assert found.executions.blocks_alike == alike


@pytest.mark.parametrize(
    ("words", "apart"),
    [
        (LANES, True),
        (LANES % 32 + 32 * (LANES // 32), True),
        (LANES % 32, False),  # both warps of a block
        (LANES // 2 % 32, True),
    ],
)
def test_a_loop_of_compare_and_swaps_says_whether_warps_meet(words: np.ndarray, apart: bool) -> None:
    """Of other accesses, which all threads make to one word, it says nothing."""
    found, swap = recorder(), Site(0, Instruction("ATOMS.CAST.SPIN"), "atomic_loop", "shared", 4)
    found.access(SiteAccess(swap, Sum(0, v=Part(words * 4)), True, True))
    found.access(SiteAccess(STORE, Sum(0, v=Part(LANES * 0)), True, True))
    sites = found.columns()[0]
    assert [(one.op, one.apart) for one in sites] == [("atomic_loop", apart), ("store", False)]


def test_an_access_has_the_address_of_its_instruction_if_it_has_one() -> None:
    found = recorder()
    found.access(SiteAccess(Site(0, Instruction("LDG", None, 0x40), "load", "global", 4), WORDS, True, True))
    found.access(SiteAccess(STORE, WORDS, True, True))
    assert [one.address for one in found.columns()[0]] == [0x40, -1]
