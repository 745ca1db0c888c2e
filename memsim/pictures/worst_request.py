"""The worst request of an access, lane by lane: its addresses, groups and wavefronts, and what collides.

Which access that is, by line or by cost, `memsim.views.analyze.costs` decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memsim.analysis import Analysis, SiteCounts
from memsim.arch.units import LINE, SECTOR, WARP, WORD
from memsim.errors import MemsimError
from memsim.launch import coordinates_of
from memsim.model.choice import global_cost, shared_cost
from memsim.model.coalescing import local_access
from memsim.model.service import serve_copies, serve_lanes
from memsim.model.shared import shared_rule
from memsim.pictures.array_layouts import declared_shape
from memsim.source.values import ArrayShape
from memsim.trace.trace import Trace
from memsim.trace.trace_data import ArrayLayout

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, slots=True)
class AccessedArray:
    """A variable in memory: the address of its first byte, and what is known of where its elements lie.

    shape: as the source declares it. layout: as it was said.
    """

    name: str
    first: int
    shape: ArrayShape | None
    layout: ArrayLayout | None = None

    def element(self, address: int) -> str:
        """The element at an address: `s_a[4][0]`, or `A + 2048 B` where none is known."""
        offset = address - self.first
        indices = self._indices(offset)
        if indices is None:
            return f"{self.name} + {offset} B"
        return self.name + "".join(f"[{index}]" for index in indices)

    def _indices(self, offset: int) -> tuple[int, ...] | None:
        if self.layout is not None:
            return self.layout.layout.coordinate(offset // self.layout.element)
        if self.shape is None:
            return None
        place, indices = offset // self.shape.element, []
        for extent in reversed(self.shape.extents):
            place, index = divmod(place, extent)
            indices.append(index)
        return tuple(reversed(indices))


@dataclass(frozen=True, slots=True, eq=False)
class RequestOrigin:
    """Where a request comes from. site: index in `analysis.sites`; row: what stands there.

    block and warp made it first; threads: (x, y, z) of each lane. times: how often the launch makes a request
    like it; distinct: how many different requests the site makes. array: what it touches, None if there are
    several or it is not known. uncertain: why the launch may make other requests.
    """

    site: int
    row: SiteCounts
    block: tuple[int, int, int]
    warp: int
    threads: tuple[tuple[int, int, int], ...]
    times: int
    distinct: int
    array: AccessedArray | None
    uncertain: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Seat:
    """Words side by side that lanes of one group want from the same banks, and which lanes."""

    words: range
    lanes: tuple[int, ...]
    wavefront: int


@dataclass(frozen=True, slots=True)
class BankMeeting:
    """Banks that a group of lanes uses, and what meets there; more than one seat is a collision."""

    group: int
    banks: range
    seats: tuple[Seat, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SharedRequest:
    """A request to shared memory. Arrays over the 32 lanes; group and wavefront from 1, 0 for an idle lane.

    addresses: bytes. lanes: lanes of a group. merged: the distance of the lanes whose equal addresses let
    groups merge (1 or 2), or 0. shares: whether lanes that want the same word share it.
    wavefronts, conflicts, ways, ideal: as `shared_access` counts, for a copy `copy_access`.
    passes: how often every wavefront is taken. origins: of a copy, the address in global memory that each
    lane reads, -1 where it reads none.
    """

    origin: RequestOrigin
    addresses: NDArray[np.int64]
    active: NDArray[np.bool_]
    group: NDArray[np.int64]
    wavefront: NDArray[np.int64]
    lanes: int
    merged: int
    shares: bool
    wavefronts: int
    conflicts: int
    ways: int
    ideal: int
    passes: int
    origins: NDArray[np.int64]

    def words(self, lane: int) -> range:
        """The 4-byte words that a lane touches."""
        first = int(self.addresses[lane]) // WORD
        return range(first, first + max(1, self.origin.row.width // WORD))

    @property
    def groups(self) -> int:
        """Groups that have an active lane."""
        return len(set(self.group[self.active].tolist()))

    def meetings(self) -> tuple[BankMeeting, ...]:
        """All that meets in the banks, by group and bank."""
        found: dict[tuple[int, int], dict[tuple[int, int], list[int]]] = {}
        for lane in np.flatnonzero(self.active).tolist():
            words = self.words(lane)
            banks = found.setdefault((int(self.group[lane]), words.start % WARP), {})
            banks.setdefault((words.start, int(self.wavefront[lane])), []).append(lane)
        size = max(1, self.origin.row.width // WORD)
        return tuple(
            BankMeeting(
                group,
                range(bank, bank + size),
                tuple(
                    Seat(range(word, word + size), tuple(lanes), wavefront)
                    for (word, wavefront), lanes in sorted(seats.items(), key=lambda item: item[0][1])
                ),
            )
            for (group, bank), seats in sorted(found.items())
        )

    def banks_read(self, lane: int) -> range:
        """Of a copy, the banks of the L1 cache that a lane reads from."""
        first = int(self.origins[lane]) % LINE // WORD
        return range(first, first + self.origin.row.width // WORD)

    def collisions(self) -> tuple[BankMeeting, ...]:
        """The meetings that cost more than one wavefront."""
        return tuple(meeting for meeting in self.meetings() if len(meeting.seats) > 1)

    def read_together(self) -> tuple[tuple[int, ...], ...]:
        """Lanes of a copy that want the same banks of the L1 cache, two or more of a group."""
        found: dict[tuple[int, int], list[int]] = {}
        for lane in np.flatnonzero(self.active & (self.origins >= 0)).tolist():
            found.setdefault((int(self.group[lane]), int(self.origins[lane]) % LINE), []).append(lane)
        return tuple(tuple(lanes) for lanes in found.values() if len(lanes) > 1)


@dataclass(frozen=True, slots=True, eq=False)
class GlobalRequest:
    """A request to global memory, or to local memory. addresses, active: over the 32 lanes, in bytes.

    Local memory is shown as the chip keeps it, the words of the 32 lanes side by side; addresses are those of
    a lane's first word there.

    lines: the addresses of the 128-byte lines touched, ascending. used: bool [lines, 128], which bytes.
    sectors, ideal_sectors: as `global_access` counts. stride: bytes from each active lane to the next, if
    it is the same between all of them, else None.
    """

    origin: RequestOrigin
    addresses: NDArray[np.int64]
    active: NDArray[np.bool_]
    lines: NDArray[np.int64]
    used: NDArray[np.bool_]
    sectors: int
    ideal_sectors: int
    stride: int | None

    @property
    def touched(self) -> NDArray[np.bool_]:
        """Which sectors of each line are moved, bool [lines, 4]."""
        sectors = self.used.reshape(len(self.lines), -1, SECTOR)
        return np.asarray(sectors.any(axis=2), np.bool_)

    @property
    def bytes_used(self) -> int:
        """Distinct bytes that the lanes ask for."""
        return int(self.used.sum())

    def lanes_of_sector(self, line: int, sector: int) -> list[int]:
        """The active lanes that touch a sector of `lines[line]`."""
        start = int(self.lines[line]) + sector * SECTOR
        words = max(1, self.origin.row.width // WORD) if self.is_local else 1
        reached = self.addresses[:, None] + LINE * np.arange(words)
        inside = ((reached >= start) & (reached < start + SECTOR)).any(axis=1) & self.active
        return [int(lane) for lane in np.flatnonzero(inside)]

    @property
    def is_local(self) -> bool:
        """Whether it is one to local memory."""
        return self.origin.row.space == "local"


def conflict_graph(request: SharedRequest) -> nx.Graph[int]:
    """The lanes that cannot be served together: an edge between two lanes of a group that want different
    words of the same bank (where lanes do not share: between any two that want the same bank; in a copy
    also between two that read from the same banks of the cache).

    Nodes are the active lanes, with `group` and `wavefront`; edges have `banks`, a range.
    The wavefronts of a group are the fewest colours that its lanes can be painted with; of a copy, a
    lane's wavefront is one after the last of its neighbours before it.
    """
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    for lane in np.flatnonzero(request.active).tolist():
        graph.add_node(lane, group=int(request.group[lane]), wavefront=int(request.wavefront[lane]))
    for meeting in request.collisions():
        for i, seat in enumerate(meeting.seats):
            for other in meeting.seats[i + 1 :]:
                graph.add_edges_from(((a, b) for a in seat.lanes for b in other.lanes), banks=meeting.banks)
    for lanes in request.read_together():
        graph.add_edges_from(combinations(lanes, 2), banks=request.banks_read(lanes[0]))
    return graph


def take_apart(analysis: Analysis, site: int | SiteCounts) -> SharedRequest | GlobalRequest:
    """The worst request of a row: of all that cost most, the one that comes most often and first.

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
    touched = np.unique(touched)
    lines = np.unique(touched // LINE) * LINE
    used = np.zeros((len(lines), LINE), np.bool_)
    used[np.searchsorted(lines, touched // LINE * LINE), touched % LINE] = True
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
        block=coordinates_of(int(trace.block[chosen]), launch.grid),
        warp=warp,
        threads=tuple(coordinates_of(warp * WARP + lane, launch.block) for lane in range(WARP)),
        times=int(trace.count[chosen]),
        distinct=len(rows),
        array=_array(trace, *found[0]) if len(found) == 1 else None,
        uncertain=trace.uncertain,
    )


def _array(trace: Trace, name: str, space: str, first: int, size: int) -> AccessedArray:
    shape = declared_shape(trace, name, size) if space == "shared" else None
    return AccessedArray(name, first, shape, trace.layouts.get(name))
