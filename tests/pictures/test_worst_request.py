"""One request taken apart adds up to what the models count, and the conflict graph says the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from memsim.analysis import analyze_trace
from memsim.arch import SM_90
from memsim.errors import MemsimError
from memsim.launch import Launch
from memsim.model import global_access
from memsim.model.choice import shared_cost
from memsim.model.coalescing import local_access
from memsim.pictures.worst_request import GlobalRequest, SharedRequest, conflict_graph, take_apart
from memsim.trace.trace import Trace
from tests.traces import LANES, Request, make_trace, site, traces

COLLIDE = LANES // 2 * 4 + LANES % 2 * 2048


def shared(*requests: Request, **fields: object) -> SharedRequest:
    found = take_apart(analyze_trace(make_trace((site(**fields), requests))), 0)
    assert isinstance(found, SharedRequest)
    return found


def global_(*requests: Request, **fields: object) -> GlobalRequest:
    found = take_apart(analyze_trace(make_trace((site(space="global", **fields), requests))), 0)
    assert isinstance(found, GlobalRequest)
    return found


@given(traces())
def test_every_row_of_every_trace_adds_up(trace: Trace) -> None:
    analysis = analyze_trace(trace)
    for number, row in enumerate(analysis.sites):
        if not (row.wavefronts or row.sectors):
            continue
        if not row.operation.is_of_lanes:
            with pytest.raises(MemsimError, match="not decided lane by lane"):
                take_apart(analysis, number)
            continue
        request = take_apart(analysis, number)
        assert request.origin.row == row
        if isinstance(request, SharedRequest):
            adds_up(request)
            assert request.ways == row.max_ways
        elif request.is_local:
            adds_up_locally(request)
        else:
            if row.op == "cp_async_cg":
                continue  # its counts depend on the other side as well, see below
            cost = global_access(request.addresses, row.width, row.op, request.active)
            assert (request.sectors, request.ideal_sectors) == (int(cost.sectors), int(cost.ideal_sectors))
            assert (request.touched.sum(), len(request.lines)) == (cost.sectors, cost.lines)
            assert request.ideal_sectors == -(-request.bytes_used // 32)
            lanes = [request.lanes_of_sector(*place) for place in np.argwhere(request.touched).tolist()]
            assert sorted(lane for of_sector in lanes for lane in of_sector) == LANES[request.active].tolist()


def adds_up_locally(request: GlobalRequest) -> None:
    """The words of the lanes lie side by side: the word of a lane's own follows after 128 bytes."""
    row = request.origin.row
    own = (request.addresses - 4 * LANES) // 32
    cost = local_access(own, row.width, row.op, request.active)
    assert (request.sectors, request.ideal_sectors) == (int(cost.sectors), int(cost.ideal_sectors))
    assert request.touched.sum() == request.sectors
    words = LANES[request.active].tolist() * max(1, row.width // 4)
    lanes = [request.lanes_of_sector(*place) for place in np.argwhere(request.touched).tolist()]
    assert sorted(lane for of_sector in lanes for lane in of_sector) == sorted(words)


def adds_up(request: SharedRequest) -> None:
    row = request.origin.row
    cost = shared_cost(request.addresses, row.width, row.op, request.active, request.origins, SM_90)
    for name in ("wavefronts", "conflicts", "ways", "ideal"):
        assert getattr(request, name) == int(getattr(cost, name))
    turns = request.wavefronts // request.passes
    assert turns - request.groups == request.conflicts
    met = [lane for meeting in request.meetings() for seat in meeting.seats for lane in seat.lanes]
    assert sorted(met) == LANES[request.active].tolist()

    graph = conflict_graph(request)
    assert sorted(graph) == LANES[request.active].tolist()
    for lane, other in graph.edges:
        assert graph.nodes[lane]["group"] == graph.nodes[other]["group"]
        assert graph.nodes[lane]["wavefront"] != graph.nodes[other]["wavefront"]
    if row.op == "cp_async":
        one_after_another(graph)
        return
    assert max(len(meeting.seats) for meeting in request.meetings()) == request.ways
    cliques = [max(map(len, nx.find_cliques(graph.subgraph(part)))) for part in groups_of(graph)]
    assert sum(cliques) == turns
    assert max(cliques) == request.ways


def one_after_another(graph: nx.Graph) -> None:
    """A lane's wavefront is one after the last of the lanes before it that it meets."""
    first = 1
    for part in groups_of(graph):
        for lane in sorted(part):
            before = [graph.nodes[other]["wavefront"] for other in graph[lane] if other < lane]
            assert graph.nodes[lane]["wavefront"] == max(before, default=first - 1) + 1
        first = max(graph.nodes[lane]["wavefront"] for lane in part) + 1


def groups_of(graph: nx.Graph) -> list[list[int]]:
    groups: dict[int, list[int]] = {}
    for lane, group in graph.nodes(data="group"):
        groups.setdefault(group, []).append(lane)
    return list(groups.values())


def test_the_worst_request_is_taken_the_most_frequent_and_first_of_them() -> None:
    clean, worse = Request(LANES * 4, count=1000), Request(LANES * 8, count=2)
    worst = [Request(COLLIDE + 4, count=5), Request(COLLIDE, count=7), Request(COLLIDE + 8, count=7)]
    assert shared(clean, worse).ways == 2
    found = shared(clean, *worst)
    assert (found.origin.times, found.origin.distinct) == (7, 4)
    assert found.addresses.tolist() == COLLIDE.tolist()


def test_collisions_name_banks_words_lanes_and_wavefronts() -> None:
    collisions = shared(Request(COLLIDE)).collisions()
    assert len(collisions) == 16
    first = collisions[0]
    assert (first.group, first.banks) == (1, range(1))
    assert [(seat.words.start, seat.lanes, seat.wavefront) for seat in first.seats] == [
        (0, (0,), 1),
        (512, (1,), 2),
    ]
    assert shared(Request(COLLIDE ^ (LANES % 2 * 64))).collisions() == ()


def test_lanes_that_share_a_word_do_not_collide_unless_each_counts() -> None:
    assert shared(Request(LANES * 0)).collisions() == ()
    (meeting,) = shared(Request(LANES * 0), op="atomic").collisions()
    assert [seat.lanes for seat in meeting.seats] == [(lane,) for lane in LANES]
    assert len(conflict_graph(shared(Request(LANES * 0), op="atomic")).edges) == 496


def test_copies_meet_where_they_read() -> None:
    origins = LANES % 8 * 4 + LANES // 8 * 4096
    found = shared(Request(LANES * 4, partner=origins), op="cp_async")
    assert (found.ways, found.conflicts, found.collisions()) == (4, 3, ())
    assert found.read_together() == tuple((lane, lane + 8, lane + 16, lane + 24) for lane in range(8))
    assert found.wavefront.tolist() == (LANES // 8 + 1).tolist()
    assert conflict_graph(found).edges[0, 8]["banks"] == range(1)
    side_by_side = shared(Request(LANES * 4, partner=LANES * 4), op="cp_async")
    assert (side_by_side.ways, side_by_side.read_together()) == (1, ())
    assert shared(Request(LANES * 4, partner=np.where(LANES < 8, origins, -1)), op="cp_async").ways == 1


def test_a_copy_past_the_cache_has_a_global_side_only() -> None:
    every = {"op": "cp_async_cg", "width": 16}
    found = global_(Request(LANES * 16, partner=LANES * 32), **every)
    assert (found.sectors, found.touched.sum()) == (32, 16)
    with pytest.raises(MemsimError, match="counts no shared wavefront"):
        shared(Request(LANES * 16, partner=LANES * 16), **every)


def test_lanes_have_their_threads() -> None:
    trace = make_trace(
        (site(), [Request(LANES * 4)]),
        launch=Launch((3, 2, 1), (16, 4, 1)),
        block=np.array([4]),
        warp=np.array([1], np.int32),
    )
    origin = take_apart(analyze_trace(trace), 0).origin
    assert (origin.block, origin.warp) == ((1, 1, 0), 1)
    assert origin.threads[0] == (0, 2, 0)
    assert origin.threads[31] == (15, 3, 0)


def test_elements_are_named_where_the_source_declares_them() -> None:
    source = "__shared__ float tile[8][128];"
    fields = {"arrays": (("tile", "shared", 1024, 4096),)}
    named = take_apart(
        analyze_trace(
            make_trace((site(), [Request(1024 + COLLIDE)]), sources={"kernel.cu": source}, **fields)
        ),
        0,
    )
    plain = take_apart(analyze_trace(make_trace((site(), [Request(1024 + COLLIDE)]), **fields)), 0)
    assert named.origin.array is not None and plain.origin.array is not None
    assert named.origin.array.element(1024 + 2048) == "tile[4][0]"
    assert named.origin.array.element(1024 + 4 * 129) == "tile[1][1]"
    assert plain.origin.array.element(1024 + 2048) == "tile + 2048 B"
    assert shared(Request(COLLIDE)).origin.array is None


def test_a_global_request_has_its_bytes_and_stride() -> None:
    scattered = global_(Request(LANES * 4096 + 8))
    assert (scattered.sectors, scattered.ideal_sectors, scattered.stride) == (32, 4, 4096)
    assert scattered.used[0].nonzero()[0].tolist() == [8, 9, 10, 11]
    assert scattered.lanes_of_sector(3, 0) == [3]
    near = global_(Request(LANES * 4))
    assert (near.sectors, near.stride, near.used.all(), near.touched.all()) == (4, 4, True, True)
    assert global_(Request(LANES * LANES * 4)).stride is None


def test_what_cannot_be_taken_apart_is_refused() -> None:
    rows = [(site(), [Request(LANES * 4)]), (site(line=4, unresolved="a call"), []), (site(line=5), [])]
    analysis = analyze_trace(make_trace(*rows))
    assert take_apart(analysis, 0).origin.site == 0
    assert take_apart(analysis, analysis.sites[0]).origin.site == 0
    wrong: list[tuple[Any, str]] = [
        (1, "could not be analyzed: a call"),
        (2, "makes no requests"),
        (3, "no access site 3"),
        ("x", "no access site 'x'"),
        (1.0, "no access site 1.0"),
        (replace(analysis.sites[0], line=77), "the site on line 77 does not belong to this analysis"),
    ]
    for number, message in wrong:
        with pytest.raises(MemsimError, match=message):
            take_apart(analysis, number)
