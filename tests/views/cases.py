"""Analyses for the tests of pictures: each kind of thing that a picture has to show, small and named."""

from __future__ import annotations

from functools import cache
from io import StringIO

import numpy as np

from memsim.analysis import Analysis, analyze_trace
from memsim.kernels import catalog
from memsim.shown import ShownAnalysis
from tests.traces import LANES, Request, make_trace, site

COLLIDE = LANES // 2 * 4 + LANES % 2 * 2048
SOURCE = "__shared__ float tile[8][128];\n  tile[i] = 1;\nx = tile[i]; // <b>\nout[i] = x;\n"
SMALL = {3: (128, 128, 16), 2: (64, 64)}


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@cache
def kernel(name: str) -> ShownAnalysis:
    """A catalogue kernel at a small size."""
    spec = catalog()[name]
    return spec.analyze(size=SMALL[len(spec.family.sizes)])


def mixed() -> ShownAnalysis:
    """A conflict, a clean wide load, a scattered and a coalesced global access, an atomic, an unknown row."""
    record = analyze_trace(
        make_trace(
            (site(op="store", line=2), [Request(COLLIDE, count=3), Request(COLLIDE + 64, count=2)]),
            (site(width=16, line=3), [Request(LANES * 16, count=5)]),
            (site(op="atomic", line=3), [Request(LANES * 0, count=1, active=LANES < 4)]),
            (site(space="global", array="A", line=4), [Request(LANES * 128 + 4)]),
            (site(space="global", array="B", line=4, op="store"), [Request(LANES * 4, count=7)]),
            (site(line=5, unresolved="it depends on <call>"), []),
            arrays=(("tile", "shared", 0, 4096), ("A", "global", 0, 8192), ("B", "global", 0, 128)),
            sources={"kernel.cu": SOURCE},
            writers=np.arange(1000, dtype=np.int32) % 64,
        )
    )
    return ShownAnalysis.of(record)


def many(sites: int) -> Analysis:
    """A launch with very many sites that conflict in every way, a long source and large arrays."""
    accesses = [
        (site(line=1 + 40 * i, op="store", array=f"s{i % 9}"), [Request(LANES * 128 + 4 * i, count=i + 1)])
        for i in range(sites)
    ]
    source = "\n".join(f"int line_{i} = {i}; // {'x' * 100}" for i in range(40 * sites))
    arrays = tuple((f"s{i}", "shared", i * 200_000, 200_000) for i in range(9))
    return analyze_trace(make_trace(*accesses, sources={"kernel.cu": source}, arrays=arrays))
