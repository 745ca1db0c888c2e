"""The worst request of an access, lane by lane.

Which access that is, by line or by cost, `memsim.views.explain.choose` decides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memsim.analysis import Analysis, SiteCounts
from memsim.arch.units import LINE, WARP, WORD
from memsim.errors import MemsimError
from memsim.model.choice import global_cost, shared_cost
from memsim.model.local import local_access
from memsim.model.service import serve_copies, serve_lanes
from memsim.model.shared import shared_rule
from memsim.trace.trace import Trace
from memsim.views.explain.lane_by_lane import AccessedArray, GlobalRequest, RequestOrigin, SharedRequest
from memsim.views.shape import declared_shape


def take_apart(analysis: Analysis, site: int | SiteCounts) -> SharedRequest | GlobalRequest:
    """The worst request of a row: of all that cost most, the one that comes most often and first.

    Args:
        site: one of `analysis.sites`, or its index there.

    Raises:
        MemsimError: there is no such row, it could not be analyzed, or no lane was ever active.
    """
    if isinstance(site, SiteCounts):
        if site not in analysis.sites:
            raise MemsimError(
                f"the site on line {site.line} does not belong to this analysis of {analysis.trace.kernel}"
            )
        site = analysis.sites.index(site)
    if not isinstance(site, (int, np.integer)) or not 0 <= site < len(analysis.sites):
        raise MemsimError(
            f"there is no access site {site!r} in {analysis.trace.kernel}",
            hint=f"sites are numbered 0 to {len(analysis.sites) - 1}" if analysis.sites else None,
        )
    row = analysis.sites[site]
    if row.unresolved is not None:
        raise MemsimError(f"site {site} could not be analyzed: {row.unresolved}")
    if not row.requests:
        raise MemsimError(f"site {site} makes no requests: no lane is ever active")
    if not row.operation.is_of_lanes:
        if row.op == "cp_async_cg":
            raise MemsimError(f"site {site} is a cp.async.cg, for which the chip counts no shared wavefronts")
        raise MemsimError(f"site {site} is a {row.op}: what it costs is not decided lane by lane")
    if row.space == "constant":
        raise MemsimError(
            f"site {site} loads constants: one request for each different address; nothing else is modelled"
        )
    if row.space == "shared":
        return shared_request(analysis, site, worst_shared_request(analysis, site))
    return _sector_request(analysis, site, analysis.requests_of_sites[site])


def worst_shared_request(analysis: Analysis, site: int) -> int:
    """The row of the trace with the worst request of a row of shared accesses."""
    trace, row, rows = analysis.trace, analysis.sites[site], analysis.requests_of_sites[site]
    asked = trace.addresses[rows], row.width, row.op, trace.active[rows], trace.partner[rows], analysis.arch
    cost = shared_cost(*asked)
    seen = -trace.block[rows], -trace.warp[rows]
    worst = _last(cost.ways, cost.wavefronts - cost.ideal, cost.wavefronts, trace.count[rows], *seen)
    return int(rows[worst])


def shared_request(analysis: Analysis, site: int, chosen: int) -> SharedRequest:
    """A request of a row of shared accesses, taken apart. chosen: its row of the trace."""
    trace, row = analysis.trace, analysis.sites[site]
    addresses, active, origins = trace.addresses[chosen], trace.active[chosen], trace.partner[chosen]
    cost = shared_cost(addresses, row.width, row.op, active, origins, analysis.arch)
    if row.operation.is_copy:
        service = serve_copies(addresses, origins, row.width, active, origins >= 0, analysis.arch)
    else:
        service = serve_lanes(addresses, row.width, row.op, active, analysis.arch)
    rule = shared_rule(row.op, row.width, analysis.arch)
    return SharedRequest(
        origin=_origin(analysis, site, analysis.requests_of_sites[site], chosen),
        addresses=addresses,
        active=active,
        group=service.group,
        wavefront=service.wavefront,
        lanes=int(service.lanes),
        merged=int(service.pairs),
        shares=rule.shares,
        wavefronts=int(cost.wavefronts),
        conflicts=int(cost.conflicts),
        ways=int(cost.ways),
        ideal=int(cost.ideal),
        passes=rule.passes,
        origins=origins,
    )


def _sector_request(analysis: Analysis, site: int, rows: NDArray[np.int64]) -> GlobalRequest:
    """The worst request of these rows of the trace: most unneeded sectors, then most sectors."""
    trace, row = analysis.trace, analysis.sites[site]
    asked = trace.addresses[rows], row.width, row.op, trace.active[rows]
    is_local = row.space == "local"
    cost = (
        local_access(*asked, analysis.arch)
        if is_local
        else global_cost(*asked, trace.partner[rows], analysis.arch)
    )
    seen = trace.count[rows], -trace.block[rows], -trace.warp[rows]
    worst = _last(cost.sectors - cost.ideal_sectors, cost.sectors, *seen)
    addresses, active = trace.addresses[rows[worst]], trace.active[rows[worst]]
    steps = np.unique(np.diff(addresses[active]))
    touched = addresses[active][:, None] + np.arange(row.width)
    if is_local:  # the words of the 32 lanes lie side by side
        lane = WORD * np.arange(WARP)
        touched = touched // WORD * LINE + lane[active][:, None] + touched % WORD
        addresses = addresses // WORD * LINE + lane
    lines, used = _bytes_of_lines(touched)
    return GlobalRequest(
        origin=_origin(analysis, site, rows, rows[worst]),
        addresses=addresses,
        active=active,
        lines=lines,
        used=used,
        sectors=int(cost.sectors[worst]),
        ideal_sectors=int(cost.ideal_sectors[worst]),
        stride=int(steps[0]) if len(steps) == 1 and not is_local else None,
    )


def _bytes_of_lines(touched: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The lines of touched bytes, by address, and which bytes of each are touched."""
    touched = np.unique(touched)
    lines = np.unique(touched // LINE) * LINE
    used = np.zeros((len(lines), LINE), np.bool_)
    used[np.searchsorted(lines, touched // LINE * LINE), touched % LINE] = True
    return lines, used


def _last(*keys: NDArray[np.int64]) -> int:
    """The index with the largest first key, of those the one with the largest second key, and so on."""
    first = -np.arange(len(keys[0]))
    return int(np.lexsort((first, *keys[::-1]))[-1])


def _origin(analysis: Analysis, site: int, rows: NDArray[np.int64], chosen: int) -> RequestOrigin:
    trace, row = analysis.trace, analysis.sites[site]
    launch, warp = trace.launch, int(trace.warp[chosen])
    found = [entry for entry in trace.arrays if entry[:2] == (row.array, row.space)]
    return RequestOrigin(
        site=site,
        row=row,
        block=coordinates(int(trace.block[chosen]), launch.grid),
        warp=warp,
        threads=tuple(coordinates(warp * WARP + lane, launch.block) for lane in range(WARP)),
        times=int(trace.count[chosen]),
        distinct=len(rows),
        array=_array(trace, *found[0]) if len(found) == 1 else None,
    )


def _array(trace: Trace, name: str, space: str, first: int, size: int) -> AccessedArray:
    shape = declared_shape(trace, name, size) if space == "shared" else None
    return AccessedArray(name, first, shape, trace.layouts.get(name))


def coordinates(number: int, shape: tuple[int, int, int]) -> tuple[int, int, int]:
    """(x, y, z) of a block in the grid, or of a thread; threads past the end of the block go on counting."""
    return number % shape[0], number // shape[0] % shape[1], number // (shape[0] * shape[1])
