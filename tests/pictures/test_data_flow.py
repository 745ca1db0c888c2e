"""The flow of memory: an edge for each row, with its bytes, requests and efficiency."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from memsim.analysis import analyze_trace
from memsim.pictures.data_flow import REGISTERS, FlowNode, flow
from memsim.trace.trace import Trace
from tests.traces import LANES, Request, make_trace, site, traces


@settings(max_examples=30)
@given(traces())
def test_every_row_is_an_edge(trace: Trace) -> None:
    analysis = analyze_trace(trace)
    graph = flow(analysis)
    edges = {key: (source, target, data) for source, target, key, data in graph.edges(keys=True, data=True)}
    assert sorted(edges) == list(range(len(analysis.sites)))
    for number, (row, requests) in enumerate(zip(analysis.sites, analysis.requests_of_sites, strict=True)):
        source, target, data = edges[number]
        assert FlowNode(row.space, row.array) in (source, target)
        assert (data["requests"], data["conflicts"]) == (row.requests, row.conflicts)
        asked = sum(int(trace.count[i]) * int(trace.active[i].sum()) * row.width for i in requests)
        assert data["bytes"] == (None if row.unresolved else asked)
        if data["efficiency"] is not None:
            assert 0 < data["efficiency"] <= 1


def test_directions_and_efficiency() -> None:
    load = (site(space="global", array="A", line=1), [Request(LANES * 128)])
    store = (site(op="store", array="s", line=2), [Request(LANES * 8)])
    add = (site(op="atomic", array="s", line=3), [Request(LANES * 4, active=LANES < 16)])
    graph = flow(analyze_trace(make_trace(load, store, add)))
    edges = [(a, b, d["bytes"], d["efficiency"]) for a, b, d in sorted(graph.edges(data=True), key=str)]
    assert (FlowNode("global", "A"), REGISTERS, 128, 0.125) in edges
    assert (REGISTERS, FlowNode("shared", "s"), 128, 0.5) in edges
    assert (REGISTERS, FlowNode("shared", "s"), 64, 1.0) in edges


def test_an_asynchronous_copy_goes_past_the_registers() -> None:
    into = (site(op="cp_async", array="s", width=16), [Request(LANES * 16)])
    out_of = (site(op="cp_async", array="A", space="global", width=16, unresolved="not measured"), [])
    ends = [(a, b) for a, b in flow(analyze_trace(make_trace(into, out_of))).edges()]
    assert ends == [(FlowNode("global", "A"), FlowNode("shared", "s"))] * 2
    alone = list(flow(analyze_trace(make_trace(into))).edges())
    assert alone == [(REGISTERS, FlowNode("shared", "s"))]


def test_what_nobody_knows_has_no_bytes() -> None:
    graph = flow(analyze_trace(make_trace((site(unresolved="a call"), []))))
    ((_, _, data),) = graph.edges(data=True)
    assert np.all([data[name] is None for name in ("bytes", "requests", "efficiency", "conflicts")])
