"""Equivalence of requests: which requests of an access cost the same and can represent each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from memsim.access import LaneRequests, Requests, Site
from memsim.arch import Arch
from memsim.arch.units import LINE, SECTOR
from memsim.model.checked_requests import Counts, lane_words
from memsim.model.choice import global_cost, shared_cost
from memsim.model.coalescing import constant_access, cost_of_lanes, local_access
from memsim.model.cp_async import is_certain, limits_of_copies, overlaps
from memsim.model.operations import Operation, operation
from memsim.model.remote import limits_of_blocks
from memsim.model.shared import SWAP_WIDTHS, rounds_of_one_warp, shared_access, shared_rule
from memsim.model.sourcepage import bypass_source_page, copy_source_page, shared_source_page
from memsim.model.texture_fetches import texture_access, texture_limits

#: Bits of a count of one request: 32 lanes of 16 bytes take at most 128 wavefronts, sectors or lines.
BITS = 15
LOWEST = np.int64((1 << BITS) - 1)
IN_A_WORD = 4
#: A loop of a load and a compare-and-swap: space and access.
SWAP_LOOP = ("shared", "atomic_loop")
#: Bytes between requests that are costed together, lane by lane.
SPAN = 1 << 40


def alike(
    space: str,
    op: str,
    width: int,
    addresses: np.ndarray,
    active: np.ndarray,
    partner: np.ndarray,
    arch: Arch,
) -> Counts:
    """A row of numbers for each request, int64 [n, k]: requests with equal rows are equal in every count that
    an analysis, or a comparison with a recording, makes of them.

    Args:
        space, op, width: the kind of access.
        addresses, active, partner: as the columns of a trace, [n, 32].
        arch: the chip whose rules to use.

    Raises:
        MemsimError: an active lane that is not aligned to the width.
    """
    asked = operation(space, op)
    # In the order of the analysis: what is not costed there needs no number here, and is not looked at.
    columns: list[np.ndarray] = [active_lanes(active)]
    if asked.is_copy:
        read = active & (partner >= 0)
        columns.append(active_lanes(read))
    if asked.pairs:
        limits = texture_limits(addresses, width, op, active)
        columns += [limits.requests, limits.fewest_sectors, limits.most_sectors]
        return _packed([*columns, limits.fewest_tags, limits.most_tags, limits.ideal_sectors])
    if (space, op) == SWAP_LOOP and width in SWAP_WIDTHS:  # which has no counts, but limits
        return _packed([*columns, *_rounds(addresses, width, active, arch)])
    if asked.why or (asked.is_counted and width not in arch.widths(space, op)):
        return _packed(columns)
    request = addresses, width, op, active, partner, arch
    if asked.bypass:  # the profiler's Source page makes of it a number for each of its sides
        to, source = (addresses, partner) if space == "shared" else (partner, addresses)
        shared, outside = bypass_source_page(to, source, active, read, arch)
        columns += [overlaps(to, active), shared.wavefronts, shared.ideal]
        columns += [outside.sectors, outside.ideal, outside.tag_requests]
    if space == "local":
        local = local_access(addresses, width, op, active, arch)
        return _packed([*columns, local.requests, local.sectors, local.ideal_sectors])
    if space == "constant":
        return _packed([*columns, constant_access(addresses, width, op, active, arch)])
    if space == "texture":
        fetched = texture_access(addresses, width, op, active, arch)
        return _packed([*columns, fetched.requests, fetched.sectors, fetched.tags, fetched.ideal_sectors])
    if asked.grouped:
        return _packed(columns)  # the lanes only decide whether the request is made
    if space == "global" or asked.remote:
        cost = global_cost(*request)
        columns += [cost.sectors, cost.lines, cost.ideal_sectors]
        if space == "global" and asked.verb == "update" and not asked.engine:
            columns += _atomics(addresses, width, active)
    elif asked.is_counted:
        own = shared_cost(*request)
        columns += [own.wavefronts, own.conflicts, own.ways, own.ideal]
        if asked.is_copy:
            page = copy_source_page(addresses, partner, width, active, read, arch)
            columns += [page.wavefronts, page.ideal]  # by another formula than the chip's counter
        elif shared_rule(op, width, arch).merges:  # else the profiler shows the chip's counts
            page = shared_source_page(addresses, width, op, active, arch)
            columns += [page.wavefronts, page.ideal]
    if space == "shared" and asked.is_copy:
        columns += _limits_of_copies(asked, width, addresses, active, partner, arch)
    return _packed(columns)


def _atomics(addresses: np.ndarray, width: int, active: np.ndarray) -> Iterator[np.ndarray]:
    """What totals of global atomics depend on: the limits of each, which are one number if it is certain.

    Of lines of 64 bytes, too: a compare-and-swap is served by these, and its name here is that of an atomic.
    """
    for limits in limits_of_blocks(addresses, width, active, (SECTOR, LINE, LINE // 2)):
        yield from limits


def _rounds(addresses: np.ndarray, width: int, active: np.ndarray, arch: Arch) -> Iterator[np.ndarray]:
    """What limits of a loop of compare-and-swaps depend on: rounds of a warp alone, and its costliest load,
    the first one.
    """
    for changes in (False, True):
        yield from rounds_of_one_warp(addresses, width, active, changes, arch)
    load = shared_access(addresses, width, "load", active, arch)
    yield from (load.wavefronts, load.conflicts)


def _limits_of_copies(
    copy: Operation, width: int, addresses: np.ndarray, active: np.ndarray, partner: np.ndarray, arch: Arch
) -> Iterator[np.ndarray]:
    """Limits of the conflicts of requests to shared memory: an analysis takes one's for all others'.

    They are looked for where something is open: that takes many times as long as all else.
    """
    read = active & (partner >= 0)
    sure = (read == active).all(axis=1) if copy.bypass else is_certain(partner, width, active, read, arch)
    yield sure
    to, on, other = (column[~sure] for column in (addresses, active, partner))
    fewest, most, _ = limits_of_copies(copy, width, to, on, other, arch)
    for limit in (fewest, fewest if most is None else most):
        column = np.zeros(len(sure), np.int64)
        column[~sure] = limit
        yield column


@dataclass(frozen=True)
class SameCost:
    """Which requests of a site cost the same on a chip; if there are too many, a trace keeps one of each."""

    arch: Arch

    def __call__(self, site: Site, requests: Requests) -> Counts:
        """A row of numbers for each request, as `alike`.

        Loads and stores of global memory that are given lane by lane are not written out, unless they are too
        far apart to be numbered together.
        """
        if isinstance(requests, LaneRequests) and site.space == "global" and requests.span < SPAN:
            return self.of_lanes(site, requests)
        made = requests.expanded()
        columns = made.addresses, made.active, made.partners
        return alike(site.space, site.access, site.width, *columns, self.arch)

    def of_lanes(self, site: Site, requests: LaneRequests) -> Counts:
        """The same for loads and stores of global memory that are less than `SPAN` apart."""
        if site.width not in self.arch.widths("global", site.access):
            return _packed([requests.counts])
        cost = cost_of_lanes(requests.addresses, requests.counts, site.width, self.arch)
        return _packed([requests.counts, cost.sectors, cost.lines, cost.ideal_sectors])


def active_lanes(active: np.ndarray) -> np.ndarray:
    """How many lanes of each request [n, 32] are active [n]; many times as fast as numpy's count."""
    return np.bitwise_count(lane_words(active))


def _packed(columns: list[np.ndarray]) -> Counts:
    """Numbers of requests, each of up to 15 bits, as few of 64 bits as hold them [n, k].

    Rows are found by hash and compared in full: a quarter of the width is a quarter of the time.
    """
    words = []
    for start in range(0, len(columns), IN_A_WORD):
        word = np.zeros(len(columns[0]), np.int64)
        for column in columns[start : start + IN_A_WORD]:
            word <<= BITS
            word |= column & LOWEST  # `UNKNOWN` is -1
        words.append(word)
    return np.stack(words, axis=1)
