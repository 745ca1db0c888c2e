"""Rows, totals and the verdict, from traces made by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsim.analysis import Analysis, SiteCounts, analyze_trace
from memsim.analysis.verdict import _percent
from memsim.arch import SM_90
from memsim.errors import MemsimError
from memsim.launch import Launch
from memsim.model import SharedCost, bypass_access, copy_access, global_access, shared_access
from memsim.model.operations import operation
from memsim.model.remote import remote_access
from memsim.model.texture_fetches import texture_access
from memsim.trace.trace import Trace
from memsim.trace.trace_data import AccessSite
from tests.traces import LANES, Request, make_trace, site, traces

CLEAN = Request(LANES * 4, count=10)
TWO_WAY = Request(LANES * 8, count=10)
EIGHT_WAY = Request(LANES * 32)
SCATTERED = Request(LANES * 128, count=10)

LOAD = site()
STORE = site(op="store", line=2)
READ = site(space="global", array="A", line=4)
LDS_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
LDS_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
STS_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
LDG_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"


def only_site(*accesses: tuple[AccessSite, list[Request]]) -> SiteCounts:
    (row,) = analyze_trace(make_trace(*accesses)).sites
    return row


def test_a_shared_row_has_wavefronts_and_no_sectors() -> None:
    row = only_site((site(instructions=12), [TWO_WAY, EIGHT_WAY]))
    assert row == SiteCounts(
        file="kernel.cu",
        line=3,
        column=5,
        source="x = tile[i];",
        op="load",
        space="shared",
        width=4,
        array="tile",
        instructions=12,
        requests=11,
        wavefronts=28,
        conflicts=17,
        ideal_wavefronts=11,
        max_ways=8,
    )


def test_a_global_row_has_sectors_and_no_wavefronts() -> None:
    row = only_site((READ, [CLEAN, SCATTERED]))
    assert (row.requests, row.sectors, row.ideal_sectors, row.lines) == (20, 360, 80, 330)
    assert (row.wavefronts, row.conflicts, row.ideal_wavefronts, row.max_ways) == (None,) * 4


def test_instructions_of_one_line_and_kind_share_a_row() -> None:
    row = only_site((site(instructions=10), [CLEAN]), (site(instructions=11, column=9), [EIGHT_WAY]))
    assert (row.instructions, row.requests, row.wavefronts, row.max_ways, row.column) == (21, 11, 18, 8, 5)


@pytest.mark.parametrize("other", ["file", "line", "op", "space", "width", "array"])
def test_each_part_of_the_kind_makes_a_row_of_its_own(other: str) -> None:
    value = {"line": 7, "op": "store", "space": "global", "width": 2}.get(other, "other")
    trace = make_trace((site(), [CLEAN]), (site(**{other: value}), [TWO_WAY]))
    assert len(analyze_trace(trace).sites) == 2


def test_rows_are_ordered_by_file_line_and_first_instruction() -> None:
    keys = [("b.cu", 1, "load"), ("a.cu", 9, "store"), ("a.cu", 9, "load"), ("a.cu", 2, "load")]
    trace = make_trace(*[(site(file=file, line=line, op=op), []) for file, line, op in keys])
    rows = [(row.file, row.line, row.op) for row in analyze_trace(trace).sites]
    assert rows == [keys[3], keys[1], keys[2], keys[0]]


def test_the_source_of_an_unknown_line_is_empty() -> None:
    assert only_site((site(line=99), [])).source == ""
    assert only_site((site(line=0), [])).source == ""
    assert only_site((site(file="other.cu"), [])).source == ""
    assert only_site((site(line=4), [])).source == "out[i] = x;"


def test_a_request_without_an_active_lane_is_no_request() -> None:
    row = only_site((site(instructions=2), [Request(LANES * 4, active=False), CLEAN]))
    assert (row.instructions, row.requests, row.wavefronts) == (2, 10, 10)


def test_sums_are_exact_beyond_what_a_float_holds() -> None:
    row = only_site((LOAD, [Request(LANES * 8, count=2**55 + 1), Request(LANES * 4)]))
    assert (row.wavefronts, row.conflicts) == (2**56 + 3, 2**55 + 1)


def copy_of(
    addresses: np.ndarray, width: int, op: str, active: np.ndarray, origins: np.ndarray
) -> SharedCost:
    return copy_access(addresses, origins, width, active, origins >= 0)


COUNTS_OF = {
    "shared": ("wavefronts", "conflicts", "max_ways"),
    "global": ("sectors", "lines"),
    "local": ("sectors",),
    "constant": (),
    "texture": ("sectors", "lines"),
}
COUNTS = ("requests", "wavefronts", "conflicts", "max_ways", "sectors", "lines")


def counted(one: AccessSite) -> bool:
    return not operation(one.space, one.op).why


def requests_of(one: AccessSite, addresses: np.ndarray, active: np.ndarray) -> int:
    """Of constants one for each address, to local memory one for each word of a lane."""
    if one.space == "constant":
        return len(set(addresses[active].tolist()))
    if one.space == "texture":
        return int(texture_access(addresses, one.width, one.op, active).requests) if counted(one) else 0
    return bool(active.any()) * (max(1, one.width // 4) if one.space == "local" else 1)


def local_sectors(addresses: np.ndarray, width: int, active: np.ndarray) -> int:
    """Eight lanes beside each other have the same word of theirs in one sector."""
    words = {(lane // 8, int(addresses[lane]) // max(4, width)) for lane in LANES[active]}
    return len(words) * max(1, width // 4)


def key_of(one: AccessSite | SiteCounts) -> tuple[object, ...]:
    """What the accesses of one row have in common."""
    return one.file, one.line, one.op, one.space, one.width, one.array


@given(trace=traces())
def test_every_row_is_the_sum_of_its_requests_one_by_one(trace: Trace) -> None:
    analysis = analyze_trace(trace)
    seen = 0
    for row in analysis.sites:
        key = key_of(row)
        sums: dict[str, int] = dict.fromkeys(COUNTS, 0)
        for i in range(len(trace.site)):
            one = trace.sites[trace.site[i]]
            if key != key_of(one):
                continue
            seen += 1
            sums["requests"] += int(trace.count[i]) * requests_of(one, trace.addresses[i], trace.active[i])
            request = (trace.addresses[i], one.width, one.op, trace.active[i])
            partner = trace.partner[i]
            if operation(one.space, one.op).remote:
                if operation(one.space, one.op).shares:
                    cost = global_access(request[0], one.width, one.op.removeprefix("cluster_"), request[3])
                else:
                    cost = remote_access(*request)
                sums["sectors"] += int(trace.count[i]) * int(cost.sectors)
                sums["lines"] += int(trace.count[i]) * int(cost.lines)
            elif not operation(one.space, one.op).is_counted:
                continue
            elif operation(one.space, one.op).grouped:
                made = int(trace.count[i]) * bool(trace.active[i].any())
                sums["wavefronts"] += made * one.width // 4
                sums["max_ways"] = max(sums["max_ways"], int(made > 0))
            elif one.space == "shared":
                copies = one.op == "cp_async"
                shared = copy_of(*request, partner) if copies else shared_access(*request)
                sums["wavefronts"] += int(trace.count[i]) * int(shared.wavefronts)
                sums["conflicts"] += int(trace.count[i]) * int(shared.conflicts)
                sums["max_ways"] = max(sums["max_ways"], int(shared.ways))
            elif one.space == "local":
                sums["sectors"] += int(trace.count[i]) * local_sectors(*request[:2], request[3])
            elif one.space == "texture":
                if counted(one):
                    fetched = texture_access(*request)
                    sums["sectors"] += int(trace.count[i]) * int(fetched.sectors)
                    sums["lines"] += int(trace.count[i]) * int(fetched.tags)
            elif one.space == "global":
                past = one.op == "cp_async_cg"
                cost = (
                    bypass_access(partner, trace.addresses[i], trace.active[i])
                    if past
                    else global_access(*request)
                )
                sums["sectors"] += int(trace.count[i]) * int(cost.sectors)
                sums["lines"] += int(trace.count[i]) * int(cost.lines)
        if row.space == "texture":  # what warps fetched with no lane on is a request each time
            made = sum(
                int(trace.count[i])
                for i in range(len(trace.site))
                if key == key_of(trace.sites[trace.site[i]]) and trace.active[i].any()
            )
            executed = sum(one.instructions for one in trace.sites if key == key_of(one))
            sums["requests"] += max(0, executed - made)
        space = "global" if row.operation.remote else row.space
        for name in COUNTS:
            known = row.unresolved is None and name in ("requests", *COUNTS_OF[space])
            assert getattr(row, name) == (sums[name] if known else None), name
    assert seen == len(trace.site)


def test_an_unresolved_access_keeps_its_row_and_refuses_the_totals_it_belongs_to() -> None:
    unknown = site(line=2, instructions=64, unresolved="the address depends on a call")
    analysis = analyze_trace(make_trace((unknown, []), (LOAD, [CLEAN]), (STORE, [CLEAN]), (READ, [CLEAN])))
    row = analysis.sites[0]
    assert (row.instructions, row.requests, row.wavefronts, row.max_ways) == (64, None, None, None)
    assert row.unresolved == "the address depends on a call"
    assert analysis.totals[LDS_WAVEFRONTS] is None
    assert analysis.totals[LDS_CONFLICTS] is None
    assert analysis.totals[STS_WAVEFRONTS] == 10
    assert analysis.totals[LDG_SECTORS] == 40


def test_one_unresolved_instruction_makes_the_row_unresolved() -> None:
    row = only_site((site(instructions=1), [CLEAN]), (site(instructions=2, unresolved="unknown"), [CLEAN]))
    assert (row.instructions, row.wavefronts, row.unresolved) == (3, None, "unknown")


def test_a_width_that_was_not_measured_is_unresolved() -> None:
    row = only_site((site(op="atomic", width=2), [TWO_WAY]))
    assert row.wavefronts is None
    assert row.unresolved == "shared atomic of 2 bytes per lane has no rule on sm_90"
    assert only_site((site(op="atomic", width=4), [TWO_WAY])).unresolved is None


@pytest.mark.parametrize(
    ("op", "why"),
    [("atomic_loop", "a compare-and-swap loop"), ("atomic_generic", "not measured")],
)
def test_an_atomic_without_a_rule_takes_the_totals_that_it_counts_in(op: str, why: str) -> None:
    analysis = analyze_trace(make_trace((site(op=op), [TWO_WAY]), (LOAD, [CLEAN])))
    row = next(row for row in analysis.sites if row.op == op)
    assert why in (row.unresolved or "") and row.wavefronts is None
    assert analysis.totals["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"] is None
    assert (analysis.totals[LDS_WAVEFRONTS] is None) == (op == "atomic_loop")


def test_a_compare_and_swap_takes_every_wavefront_twice() -> None:
    analysis = analyze_trace(make_trace((site(op="atomic_cas"), [TWO_WAY])))
    row = analysis.sites[0]
    assert (row.wavefronts, row.conflicts, row.ideal_wavefronts, row.max_ways) == (40, 10, 20, 2)
    assert (row.wavefronts_of_conflicts, analysis.excess_wavefronts) == (20, 0)
    assert analysis.totals["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"] == 40


ROWS_OF_8 = LANES % 8 * 4 + LANES // 8 * 4096  # from the same banks of four lines
COPY_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum"


def test_copies_meet_where_they_read_and_then_hits_decide_the_total() -> None:
    copy = site(op="cp_async")
    read = site(op="cp_async", space="global")
    side_by_side = analyze_trace(make_trace((copy, [Request(LANES * 4, partner=LANES * 4 + 128, count=10)])))
    assert (side_by_side.sites[0].max_ways, side_by_side.totals[COPY_CONFLICTS]) == (1, 0)
    accesses = (
        (copy, [Request(LANES * 4, partner=ROWS_OF_8, count=10)]),
        (read, [Request(ROWS_OF_8, count=10)]),
    )
    rows = analyze_trace(make_trace(*accesses))
    shared, wide = rows.sites
    assert (shared.wavefronts, shared.conflicts, shared.max_ways) == (40, 30, 4)
    assert (wide.requests, wide.sectors, wide.lines, wide.wavefronts) == (10, 40, 40, None)
    assert rows.totals[COPY_CONFLICTS] is None
    assert rows.totals[LDG_SECTORS] == 40


def test_copies_past_the_cache_count_in_global_memory_alone() -> None:
    copy = site(op="cp_async_cg", width=16)
    read = site(op="cp_async_cg", width=16, space="global")

    def both(to: np.ndarray, source: np.ndarray, read_lanes: np.ndarray) -> Analysis:
        partner = np.where(read_lanes, source, -1)
        return analyze_trace(
            make_trace(
                (copy, [Request(to, partner=partner)]),
                (read, [Request(source, active=read_lanes, partner=np.where(read_lanes, to, -1))]),
            )
        )

    every = LANES >= 0
    analysis = both(LANES * 16, LANES * 16, every)
    shared, wide = analysis.sites
    assert (shared.requests, shared.wavefronts, shared.max_ways, shared.unresolved) == (1, 0, 0, None)
    assert (wide.sectors, wide.ideal_sectors, wide.lines) == (16, 16, 4)
    assert both(LANES * 32, LANES * 16, every).sites[1].sectors == 32
    assert analysis.totals[LDG_SECTORS] == 16 and analysis.totals[COPY_CONFLICTS] == 0
    twice = both(LANES // 2 * 16, LANES * 16, every)
    assert "write to the same address" in (twice.sites[1].unresolved or "")
    assert twice.totals[LDG_SECTORS] is None


def test_lanes_of_a_copy_that_write_zeros_fetch_nothing() -> None:
    zeros = site(op="cp_async_cg", width=16)
    read = site(op="cp_async_cg", width=16, space="global")
    half = np.where(LANES < 16, LANES * 16, -1)
    analysis = analyze_trace(
        make_trace(
            (zeros, [Request(LANES * 16, partner=half), Request(LANES * 16, partner=np.full(32, -1))]),
            (read, [Request(LANES * 16, active=LANES < 16, partner=half)]),
        )
    )
    assert analysis.totals[LDG_SECTORS] == 8
    assert analysis.totals[COPY_CONFLICTS] is None
    assert "write zeros" in analysis.undecided[COPY_CONFLICTS].why


def test_totals_have_the_sums_of_the_rows() -> None:
    analysis = analyze_trace(make_trace((LOAD, [CLEAN]), (site(line=9), [TWO_WAY]), (READ, [SCATTERED])))
    assert analysis.totals[LDS_WAVEFRONTS] == 30
    assert analysis.totals[LDS_CONFLICTS] == 10
    assert analysis.totals[LDG_SECTORS] == 320


def test_an_unknown_chip_is_an_error() -> None:
    trace = make_trace((LOAD, [CLEAN]))
    with pytest.raises(MemsimError, match="sm_50"):
        analyze_trace(trace, "sm_50")
    assert analyze_trace(trace, "sm_90").arch is SM_90


def test_excess_is_what_is_neither_ideal_nor_conflict() -> None:
    half_used = Request(LANES // 2 * 32, count=3)
    analysis = analyze_trace(make_trace((site(width=16), [half_used]), (STORE, [TWO_WAY])))
    rows = analysis.sites
    assert analysis.excess_wavefronts == sum(
        (row.wavefronts or 0) - (row.conflicts or 0) - (row.ideal_wavefronts or 0) for row in rows
    )
    assert analyze_trace(make_trace((STORE, [TWO_WAY]))).excess_wavefronts == 0


def verdict(*accesses: tuple[AccessSite, list[Request]], **fields: object) -> str:
    analysis: Analysis = analyze_trace(make_trace(*accesses, **fields))
    assert "\n" not in analysis.verdict
    return analysis.verdict


LOAD_CLEAN, STORE_TWO_WAY, READ_CLEAN = (LOAD, [CLEAN]), (STORE, [TWO_WAY]), (READ, [CLEAN])
UNKNOWN = site(line=4, array="?", unresolved="it depends on a call")
FOUR_BLOCKS = {"launch": Launch((2000, 2, 1), (32, 1, 1)), "blocks_replayed": 4}


@pytest.mark.parametrize(
    ("accesses", "fields", "answer"),
    [
        ([LOAD_CLEAN], {}, "conflict-free: 10 shared wavefronts, none wasted by bank conflicts"),
        (
            [LOAD_CLEAN, STORE_TWO_WAY],
            {},
            "worst is the store at kernel.cu:2: 2-way bank conflict; "
            "conflicts are 10 of 30 shared wavefronts (33.3 %)",
        ),
        (
            [(LOAD, [EIGHT_WAY]), STORE_TWO_WAY],
            {},
            "worst is the store at kernel.cu:2: 2-way bank conflict; "
            "conflicts are 17 of 28 shared wavefronts (60.7 %)",
        ),
        ([READ_CLEAN], {}, "coalesced: 40 global sectors, all needed"),
        (
            [READ_CLEAN, (site(space="global", op="store", line=7), [SCATTERED])],
            {},
            "worst is the store at kernel.cu:7: 32.0 sectors per request instead of 4.0; "
            "280 of 360 global sectors are not needed (77.8 %)",
        ),
        (
            [LOAD_CLEAN, (READ, [SCATTERED])],
            {},
            "conflict-free: 10 shared wavefronts, none wasted by bank conflicts; global accesses are not "
            "coalesced: worst is the load at kernel.cu:4: 32.0 sectors per request instead of 4.0; "
            "280 of 320 global sectors are not needed (87.5 %)",
        ),
        (
            [LOAD_CLEAN, (READ, [Request(LANES * 4 + 16, count=10)])],
            {},
            "conflict-free: 10 shared wavefronts, none wasted by bank conflicts",
        ),
        (
            [LOAD_CLEAN, (UNKNOWN, [])],
            {},
            "no bank conflict in the 10 shared wavefronts that could be counted; "
            "1 access could not be analyzed",
        ),
        (
            [STORE_TWO_WAY, (UNKNOWN, []), (site(line=9, unresolved="?"), [])],
            {},
            "worst is the store at kernel.cu:2: 2-way bank conflict; conflicts are 10 of 20 shared "
            "wavefronts (50.0 %); 2 accesses could not be analyzed",
        ),
        ([(UNKNOWN, [])], {}, "no shared or global access was analyzed; 1 access could not be analyzed"),
        ([], {}, "no shared or global access was made"),
        (
            [READ_CLEAN],
            {"uncounted": {"texture request": 128}},
            "128 texture requests are not counted; the rest is coalesced: 40 global sectors, all needed",
        ),
        (
            [LOAD_CLEAN, STORE_TWO_WAY],
            {"uncounted": {"texture request": 1}},
            "1 texture request is not counted; worst is the store at kernel.cu:2: 2-way bank conflict; "
            "conflicts are 10 of 30 shared wavefronts (33.3 %)",
        ),
        (
            [LOAD_CLEAN],
            {"uncounted": {"texture request": 1, "local memory request": 2000}},
            "1 texture request and 2,000 local memory requests are not counted; "
            "the rest is conflict-free: 10 shared wavefronts, none wasted by bank conflicts",
        ),
        (
            [],
            {"uncounted": {"texture request": 3}},
            "3 texture requests are not counted; no shared or global access was made",
        ),
        (
            [READ_CLEAN, (UNKNOWN, [])],
            {},
            "no needless sector in the 40 global sectors that could be counted; "
            "1 access could not be analyzed",
        ),
        (
            [LOAD_CLEAN],
            FOUR_BLOCKS,
            "conflict-free: 10 shared wavefronts, none wasted by bank conflicts; 4 of 4,000 blocks replayed",
        ),
        (
            [(LOAD, [Request(LANES * 4, count=10**7)]), STORE_TWO_WAY],
            {},
            "worst is the store at kernel.cu:2: 2-way bank conflict; "
            "conflicts are 10 of 10,000,020 shared wavefronts (under 0.1 %)",
        ),
        (
            [(site(op="cp_async"), [Request(LANES * 0, count=2**20, partner=LANES * 4)])],
            {},
            "worst is the cp.async at kernel.cu:3: 32-way bank conflict; "
            "conflicts are 32,505,856 of 33,554,432 shared wavefronts (96.9 %)",
        ),
    ],
)
def test_the_verdict_is_the_answer(
    accesses: list[tuple[AccessSite, list[Request]]], fields: dict[str, object], answer: str
) -> None:
    assert verdict(*accesses, **fields) == f"kernel: {answer}"


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [
        (0, 3, "0.0 %"),
        (1, 10**7, "under 0.1 %"),
        (499, 10**6, "under 0.1 %"),
        (501, 10**6, "0.1 %"),
        (999_499, 10**6, "99.9 %"),
        (999_501, 10**6, "over 99.9 %"),
        (10**7 - 1, 10**7, "over 99.9 %"),
        (10**7, 10**7, "100.0 %"),
    ],
)
def test_a_share_is_neither_none_nor_all_for_what_is_only_near(part: int, whole: int, said: str) -> None:
    assert _percent(part, whole) == said


@given(st.integers(1, 10**9), st.data())
def test_a_share_is_its_own_or_its_limits(whole: int, data: st.DataObject) -> None:
    part = data.draw(st.integers(0, whole))
    said = _percent(part, whole)
    assert (said == "0.0 %") == (part == 0) and (said == "100.0 %") == (part == whole)
    share = Fraction(100 * part, whole)
    match said.split():
        case ["under", limit, "%"]:
            assert 0 < share < Fraction(limit)
        case ["over", limit, "%"]:
            assert Fraction(limit) < share < 100
        case [shown, "%"]:
            assert abs(Fraction(shown) - share) <= Fraction(1, 20)
