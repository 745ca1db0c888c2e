"""Requests in plain words: each says what happened, and no clean request is called a conflict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from memsim.analysis import analyze_trace
from memsim.pictures.worst_request import GlobalRequest, SharedRequest, take_apart
from memsim.trace.trace import Trace
from memsim.views.explain.sentences import collision_line, sentences
from tests.traces import LANES, Request, make_trace, site, traces
from tests.views.cases import COLLIDE, kernel


def said(addresses: np.ndarray, active: Any = True, partner: Any = -1, **fields: Any) -> str:
    asked = Request(addresses, active=active, partner=partner)
    analysis = analyze_trace(make_trace((site(**fields), [asked])))
    return " ".join(sentences(take_apart(analysis, 0)))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            said(COLLIDE),
            [
                "2-way bank conflict: 2 wavefronts for this request instead of 1.",
                "32 lanes load 4 bytes each from tile, 32 different words of 4 bytes.",
                "for the whole warp as one group",
                "2 words fall into each of the banks 0-15, so 1 of them waits while 16 banks stay idle",
                "lane 0 and lane 1: word 0 and word 512 are 512 words apart, a multiple of 32",
            ],
        ),
        (
            said(COLLIDE ^ (LANES % 2 * 64)),
            ["No bank conflict: 1 wavefront", "32 words lie in 32 different banks"],
        ),
        (said(LANES * 0), ["All lanes access one word in one bank", "share it (here up to 32)"]),
        (
            said(LANES * 128, op="store"),
            ["32 words fall into bank 0, so 31 of them wait while 31 banks stay idle"],
        ),
        (
            said(LANES * 16, width=16),
            [
                "No bank conflict: 4 wavefronts for this request, one for each group of lanes.",
                "in groups of 8 lanes, because 8 x 16 bytes are the 128 that 32 banks deliver",
                "Why 4 wavefronts are not a conflict in themselves: the lanes access 512 different bytes",
                "would wrongly call this a 4-way conflict",
            ],
        ),
        (
            said(LANES // 2 * 16, width=16),
            ["lane i^1 idle or at the same address (the pair rule)", "16 lanes"],
        ),
        (
            said(LANES % 16 * 16, width=16),
            ["would need only 2 wavefronts", "a different mapping of threads"],
        ),
        (
            said(LANES * 0, op="atomic"),
            ["32-way", "Lanes with equal addresses do not share", "32 lanes fall into bank 0"],
        ),
        (
            said(LANES * 0, op="atomic_cas"),
            ["32-way bank conflict: 64 wavefronts for this request instead of 2.", "every wavefront twice"],
        ),
        (said(LANES * 4, op="atomic_cas"), ["No bank conflict: 2 wavefronts for this request."]),
        (said(LANES * 0, op="atomic_inc"), ["No bank conflict: 1 wavefront", "share it (here up to 32)"]),
        (
            said(LANES * 4, op="cp_async", partner=LANES % 8 * 4 + LANES // 8 * 4096),
            [
                "4-way bank conflict: 4 wavefronts for this request instead of 1.",
                "32 lanes copy 4 bytes each to tile",
                "24 all read from bank 0 of the cache.",
            ],
        ),
        (
            said(LANES * 16, op="cp_async_cg", width=16, space="global", partner=LANES * 32),
            ["32 sectors of 32 bytes", "bypasses the L1 cache", "one sector for each pair of"],
        ),
        (said(LANES * 16, width=16, op="ldmatrix"), ["groups of 8 lanes, one for each matrix"]),
        (said(LANES * 4, active=LANES == 3), ["1 lane loads 4 bytes from tile, 1 different word"]),
        (
            said(LANES * 4096, space="global"),
            [
                "Not coalesced: 32 sectors of 32 bytes instead of 4",
                "128 of the 1,024 bytes moved are used.",
                "Consecutive lanes are 4,096 bytes apart.",
                "4 bytes apart and aligned to 32 bytes, 4 sectors would be enough.",
            ],
        ),
        (said(LANES * 4, space="global"), ["Coalesced: 4 sectors", "consecutive addresses"]),
        (said(LANES * 0, space="global"), ["Coalesced: 1 sector", "the same address"]),
        (said(LANES * 4 + 12, space="global"), ["Not coalesced: 5 sectors", "12 bytes into a sector"]),
        (said(LANES * LANES * 32, space="global"), ["If the same bytes were contiguous"]),
    ],
)
def test_what_is_said(text: str, parts: list[str]) -> None:
    for part in parts:
        assert part in text


@given(traces())
def test_a_conflict_is_said_where_there_is_one_and_nowhere_else(trace: Trace) -> None:
    analysis = analyze_trace(trace)
    for number, row in enumerate(analysis.sites):
        if not ((row.wavefronts or row.sectors) and row.operation.is_of_lanes):
            continue
        request = take_apart(analysis, number)
        answer = sentences(request)[0]
        if isinstance(request, SharedRequest):
            assert answer.startswith(
                f"{row.max_ways}-way bank conflict" if request.conflicts else "No bank conflict"
            )
            assert f"{request.wavefronts} wavefront" in answer
        else:
            assert isinstance(request, GlobalRequest)
            assert answer.startswith("Coalesced") == (request.sectors == request.ideal_sectors)


@pytest.mark.parametrize(("elements", "asked"), [(8, 64), (16, 128), (17, 136), (32, 256)])
def test_bytes_are_a_reason_for_groups_only_where_a_wavefront_cannot_move_them(
    elements: int, asked: int
) -> None:
    """Two groups of lanes that ask for 128 bytes have one wavefront each, though one could move them all."""
    text = said(LANES % elements * 8, width=8)
    assert "the lanes are served in 2 groups, and each group needs a wavefront of its own" in text
    reason = f"the lanes access {asked} different bytes, and a wavefront moves at most 128; "
    assert (reason in text) == (asked > 128) and ("moves at most" in text) == (asked > 128)


def test_elements_have_the_names_of_the_source() -> None:
    request = take_apart(kernel("kernel_v4_colmajor"), 2)
    assert isinstance(request, SharedRequest)
    assert "s_a[0][0] and s_a[4][0] are 512 words apart" in " ".join(sentences(request))
    assert (
        collision_line(request.origin, request.collisions()[1])
        == "bank 1: s_a[0][1] (lane 2) | s_a[4][1] (lane 3)"
    )


def test_a_long_collision_is_cut_and_says_so() -> None:
    request = take_apart(kernel("transpose_naive"), 2)
    assert isinstance(request, SharedRequest)
    line = collision_line(request.origin, request.collisions()[0])
    assert line.count("lane") == 8 and line.endswith("| 24 more")
    assert collision_line(request.origin, request.collisions()[0], most=32).count("lane") == 32
