"""Traces made by hand and by hypothesis, for the tests of what reads traces."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from memsim.arch import SM_90
from memsim.launch import Launch
from memsim.trace.trace import Trace
from memsim.trace.trace_data import AccessSite

LANES = np.arange(32)
SOURCE = "// line 1\n  tile[i] = 1;\nx = tile[i];\nout[i] = x;\n"
SITE = AccessSite(
    instruction="ld.shared.f32",
    file="kernel.cu",
    line=3,
    column=5,
    op="load",
    space="shared",
    width=4,
    array="tile",
    instructions=1,
)


@dataclasses.dataclass(frozen=True)
class Request:
    """A distinct request: one address for each lane, how often, and which lanes take part."""

    addresses: Any
    count: int = 1
    active: Any = True
    partner: Any = -1


def site(**fields: Any) -> AccessSite:
    """`SITE` with other fields."""
    return dataclasses.replace(SITE, **fields)


def make_trace(*accesses: tuple[AccessSite, Sequence[Request]], **fields: Any) -> Trace:
    """A trace of these sites with their requests; `fields` replace any other field of `Trace`."""
    requests = [(i, request) for i, (_, of_site) in enumerate(accesses) for request in of_site]
    n = len(requests)
    defaults: dict[str, Any] = {
        "kernel": "kernel",
        "launch": Launch((2, 1, 1), (32, 1, 1)),
        "blocks_replayed": 2,
        "sites": tuple(one for one, _ in accesses),
        "site": np.array([i for i, _ in requests], np.int32),
        "count": np.array([request.count for _, request in requests], np.int64),
        "addresses": np.array([request.addresses for _, request in requests], np.int64).reshape(n, 32),
        "active": np.array([np.broadcast_to(r.active, 32) for _, r in requests], bool).reshape(n, 32),
        "partner": np.array([np.broadcast_to(r.partner, 32) for _, r in requests], np.int64).reshape(n, 32),
        "block": np.zeros(n, np.int64),
        "warp": np.zeros(n, np.int32),
        "sources": {"kernel.cu": SOURCE},
    }
    return Trace(**(defaults | fields))


@st.composite
def sites(draw: st.DrawFn) -> AccessSite:
    measured = draw(st.sampled_from(SM_90.rules))
    return AccessSite(
        instruction=draw(st.text(max_size=8)),
        file=draw(st.sampled_from(["kernel.cu", "a/kernel.cu", "ü.cuh", ""])),
        line=draw(st.integers(0, 5)),
        column=draw(st.integers(0, 80)),
        op=measured.op,
        space=measured.space,
        width=draw(st.sampled_from(measured.widths)),
        array=draw(st.sampled_from(["A", "B|C", ""])),
        instructions=draw(st.integers(0, 2**40)),
        unresolved=draw(st.sampled_from([None, None, None, "depends on a call"])),
        unresolved_requests=draw(st.integers(0, 100)),
    )


@st.composite
def requests(draw: st.DrawFn, of: AccessSite) -> Request:
    lanes = draw(st.lists(st.integers(0, 500), min_size=32, max_size=32))
    active = draw(st.lists(st.booleans(), min_size=32, max_size=32))
    partner: Any = -1
    if of.op.startswith("cp_async"):
        other = draw(st.lists(st.integers(0, 500), min_size=32, max_size=32, unique=of.op == "cp_async_cg"))
        partner = np.where(active, np.array(other) * of.width, -1)
    return Request(np.array(lanes) * of.width, draw(st.integers(1, 2**40)), active, partner)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    of_sites = draw(st.lists(sites(), max_size=4))
    accesses = [(one, draw(st.lists(requests(one), max_size=3))) for one in of_sites]
    return make_trace(
        *accesses,
        kernel=draw(st.text("kernel_4<>,: Ä", min_size=1, max_size=10)),
        launch=Launch((draw(st.integers(1, 9)), 2, 1), (64, 2, 1), draw(st.integers(0, 4096))),
        blocks_replayed=2,
        arrays=(("A", "global", 256, 1024), ("tile", "shared", 0, 512)),
        uncounted=draw(
            st.dictionaries(st.text("texur .4", min_size=1, max_size=10), st.integers(1, 2**40), max_size=2)
        ),
        notes=tuple(draw(st.lists(st.text(max_size=10), max_size=2))),
    )
