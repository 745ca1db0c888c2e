"""Use of the banks: the averages are those of single requests, and no conflict is averaged away."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from memsim.analysis import analyze_trace
from memsim.pictures.bank_use import bank_use
from memsim.pictures.worst_request import worst_shared_request
from memsim.trace.trace import Trace
from tests.model.oracle import COUNTS_LANES, groups, pairs_hold, words_of
from tests.traces import LANES, Request, make_trace, site, traces

GROUP = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}


def banks_of(addresses: list[int], active: list[bool], width: int, op: str) -> list[list[int]]:
    """What each bank serves in each group of one request."""
    size = GROUP[width]
    if op == "load" and width >= 8 and pairs_hold(addresses, active):
        size *= 2
    served = []
    for lanes in groups(active, size):
        wanted = {
            (word, lane if op in COUNTS_LANES else None)
            for lane in lanes
            for word in words_of(addresses[lane], width)
        }
        served.append([sum(word % 32 == bank for word, _ in wanted) for bank in range(32)])
    return served


@settings(max_examples=40)
@given(traces())
def test_the_rows_equal_single_requests(trace: Trace) -> None:
    analysis = analyze_trace(trace)
    use = bank_use(analysis)
    for number, (row, requests) in enumerate(zip(analysis.sites, analysis.requests_of_sites, strict=True)):
        if not row.wavefronts or not row.operation.is_of_lanes:  # the tensor cores' and the copy engine's
            assert number not in use
            continue
        total, users, ways = np.zeros(32), np.zeros(32), np.zeros(32, int)
        for request in requests:
            served = banks_of(
                trace.addresses[request].tolist(), trace.active[request].tolist(), row.width, row.op
            )
            words = np.sum(served, axis=0) if served else np.zeros(32)
            total += trace.count[request] * words
            users += trace.count[request] * (words > 0)
            ways = np.maximum(ways, np.max(served, axis=0) if served else 0)
        assert np.allclose(use[number].words * use[number].busy * row.requests, total)
        assert np.allclose(use[number].busy * row.requests, users)
        assert use[number].ways.tolist() == ways.tolist()
        worst = worst_shared_request(analysis, number)
        served = banks_of(trace.addresses[worst].tolist(), trace.active[worst].tolist(), row.width, row.op)
        assert use[number].worst.tolist() == (np.max(served, axis=0) if served else np.zeros(32)).tolist()
        if row.op == "cp_async":  # whose lanes can meet where they read as well
            assert ways.max() <= (row.max_ways or 0)
        else:
            assert ways.max() == row.max_ways


def test_a_conflict_in_other_banks_each_time_stays_visible() -> None:
    columns = [Request(LANES * 128 + 4 * column) for column in range(32)]
    rows = [Request(LANES * 4 + 128 * row) for row in range(32)]
    bad, good = bank_use(analyze_trace(make_trace((site(), columns), (site(op="store"), rows)))).values()
    assert bad.words.tolist() == [32.0] * 32
    assert good.words.tolist() == [1.0] * 32
    assert (bad.words * bad.busy).tolist() == (good.words * good.busy).tolist() == [1.0] * 32
    assert (set(bad.ways.tolist()), set(good.ways.tolist())) == ({32}, {1})


def test_a_conflict_in_one_bank_looks_like_one_bank() -> None:
    columns = [Request(LANES * 128 + 4 * column) for column in (5, 7)]
    rows = [Request(LANES * 4 + 128 * row) for row in (5, 7)]
    bad, good = bank_use(analyze_trace(make_trace((site(), columns), (site(op="store"), rows)))).values()
    assert bad.worst.tolist() == [32 * (bank == 5) for bank in range(32)]
    assert np.flatnonzero(bad.ways).tolist() == [5, 7]
    assert good.worst.tolist() == [1] * 32


def test_unused_banks_and_unanalyzed_rows() -> None:
    known = (site(), [Request(LANES * 0)])
    unknown = (site(line=4, unresolved="depends on a call"), [])
    use = bank_use(analyze_trace(make_trace(known, unknown, (site(space="global"), [Request(LANES * 4)]))))
    (only,) = use.values()
    assert only.words.tolist() == only.busy.tolist() == [1.0] + [0.0] * 31
