"""Plain addresses: the cost of warp requests given as arrays, with the pictures and explanations of a
kernel's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from memsim import model
from memsim.access import AccessSide, Chunk, Site, SiteAccess
from memsim.analysis import analyze_trace
from memsim.arch import SM_90, Arch
from memsim.arch.units import WARP
from memsim.instruction import Instruction, Place
from memsim.launch import Launch
from memsim.model import GlobalCost, SharedCost
from memsim.shown import Shown, ShownAnalysis
from memsim.sketch.place import caller, line_of, shown_path, text_of
from memsim.state.predicates import from_bools
from memsim.state.registers import from_array
from memsim.trace.record import Recorder
from memsim.trace.trace import Trace
from memsim.trace.trace_data import Origin


@dataclass(frozen=True, eq=False)
class Pictures:
    """A cost that is also an analysis. analysis: has one row, for the line that passed the addresses."""

    analysis: ShownAnalysis

    def heatmap(self) -> Shown:
        """As `Analysis.heatmap`; displays itself."""
        return self.analysis.heatmap()

    def explain(self) -> Shown:
        """As `Analysis.explain`: the worst request lane by lane. Displays itself."""
        return self.analysis.explain()


@dataclass(frozen=True, eq=False)
class SharedAccess(SharedCost, Pictures):
    """Costs of requests to shared memory, with ways to look at them."""


@dataclass(frozen=True, eq=False)
class GlobalAccess(GlobalCost, Pictures):
    """Costs of requests to global memory, with ways to look at them."""


def shared_access(
    addresses: ArrayLike,
    width: int,
    op: str = "load",
    active: ArrayLike | None = None,
    arch: Arch | str = SM_90,
) -> SharedAccess:
    """Cost of warp requests to shared memory: `memsim.model.shared_access`, with pictures.

    Args:
        addresses: integers (..., 32), byte addresses or offsets, one row per warp request.
        width: bytes per lane.
        op: load, store, atomic, reduction, atomic_inc, atomic_cas, ldmatrix, stmatrix or cp_async.
        active: booleans that broadcast to (..., 32); None means all lanes.
        arch: a chip or its name.

    Returns:
        int64 arrays (...): wavefronts, conflicts, ways, ideal; and `analysis`, `heatmap()`, `explain()`.

    Raises:
        MemsimError: bad shape or type, unknown op or arch, a width not measured for that op,
            or an active lane that is not aligned to the width.
    """
    cost = model.shared_access(addresses, width, op, active, arch)
    return SharedAccess(
        analysis=_analyzed("shared", addresses, width, op, active, arch),
        wavefronts=cost.wavefronts,
        conflicts=cost.conflicts,
        ways=cost.ways,
        ideal=cost.ideal,
    )


def global_access(
    addresses: ArrayLike,
    width: int,
    op: str = "load",
    active: ArrayLike | None = None,
    arch: Arch | str = SM_90,
) -> GlobalAccess:
    """Sectors and lines of warp requests to global memory.

    Args:
        addresses, active, arch: as `shared_access`.
        width: bytes per lane: 1, 2, 4, 8 or 16.
        op: load, store, atomic, reduction, cp_async or cp_async_cg.

    Returns:
        int64 arrays (...): sectors, lines, ideal_sectors; and `analysis`, `explain()`.

    Raises:
        MemsimError: as `shared_access`.
    """
    cost = model.global_access(addresses, width, op, active, arch)
    as_load = "load" if op == "cp_async_cg" else op  # counted as a load, because its destination is unknown
    return GlobalAccess(
        analysis=_analyzed("global", addresses, width, as_load, active, arch),
        sectors=cost.sectors,
        lines=cost.lines,
        ideal_sectors=cost.ideal_sectors,
    )


def _analyzed(
    space: str, addresses: ArrayLike, width: int, op: str, active: ArrayLike | None, arch: Arch | str
) -> ShownAnalysis:
    """The analysis of checked requests; each is made by the only warp of a block of its own."""
    given = np.asarray(addresses)
    lanes = np.ascontiguousarray(given.reshape(-1, WARP)).astype(np.int64, copy=False)
    on = np.broadcast_to(True if active is None else np.asarray(active), given.shape).reshape(-1, WARP)
    place = caller()
    file = shown_path(place.path)
    text = line_of(place.path, place.line)
    site = Site(0, Instruction(text, Place(file, place.line, 0)), op, space, width)
    recorder = Recorder()
    recorder.start_chunk(Chunk(np.arange(len(lanes)), WARP, np.zeros((len(lanes), 1), np.int64)))
    if len(lanes):
        mask = from_bools(np.ascontiguousarray(on))
        other = None
        if op == "cp_async":  # the model assumes that lanes read contiguously
            other = AccessSide(from_array(np.arange(WARP)[None, :] * width), mask)
        recorder.access(SiteAccess(site, from_array(lanes), True, mask, other=other))
    sites, columns = recorder.columns()
    trace = Trace(
        kernel=f"{space}_access",
        launch=Launch((max(1, len(lanes)), 1, 1), (WARP, 1, 1)),
        blocks_replayed=len(lanes),
        sites=tuple(sites),
        sources={file: source} if (source := text_of(place.path)) else {},
        origin=Origin("addresses as given, a block for each request", "", "", ""),
        **columns,
    )
    return ShownAnalysis.of(analyze_trace(trace, arch))
