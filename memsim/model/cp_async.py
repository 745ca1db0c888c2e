"""The cost of `cp.async`: a copy from global to shared memory, with conflicts possible on both sides.

Misses are not modelled: a request for several lines that are not in the L1 cache may be served in other
portions, which depend on true addresses and on time; `is_certain` tells where.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from memsim.arch import SM_90, Arch
from memsim.errors import MemsimError
from memsim.model.checked_requests import (
    CheckedRequests,
    Counts,
    Lanes,
    Mask,
    check_requests,
    distinct,
    equal,
    together,
)
from memsim.model.coalescing import GlobalCost, global_access
from memsim.model.operations import Operation
from memsim.model.shared import SharedCost, shared_access

BY_HITS = (
    "lanes of a cp.async that read from several lines have other bank conflicts if they miss the L1 cache"
)
BY_ZEROS = "lanes of a cp.async.cg that write zeros may conflict with other writes"


def copy_access(
    addresses: ArrayLike,
    origins: ArrayLike,
    width: int,
    active: ArrayLike | None = None,
    read: ArrayLike | None = None,
    arch: Arch = SM_90,
) -> SharedCost:
    """Cost of `cp.async.ca` requests to shared memory for data in the L1 cache.

    Lanes are served in groups, as in a store of that width. A lane is served one wavefront after the last
    lane before it in its group that reads from one of its banks of the cache or writes to one of its banks of
    shared memory. Equal addresses do not share. Source: docs/model.md.

    Args:
        addresses: integers (..., 32), byte addresses in shared memory, one row per warp request.
        origins: the same shape, byte addresses in global memory.
        width: bytes per lane: 4, 8 or 16.
        active: booleans that broadcast to (..., 32); None means all lanes.
        read: which of the active lanes read; the others write zeros. None means all of them.
        arch: the chip whose measured rules to use.

    Returns:
        SharedCost of int64 arrays (...). `ideal` is a wavefront for each group with an active lane.

    Raises:
        MemsimError: bad shapes or types, a width not measured, or a lane that is not aligned to it.
    """
    turns, slots, shape = copy_turns(addresses, origins, width, active, read, arch)
    costs = turns.reshape(len(turns), turns.shape[1] // slots, slots).max(axis=2)
    wavefronts, groups = costs.sum(axis=1), np.count_nonzero(costs, axis=1)
    columns = wavefronts, wavefronts - groups, costs.max(axis=1, initial=0), groups
    return SharedCost(*(np.asarray(column, np.int64).reshape(shape) for column in columns))


def copy_turns(
    addresses: ArrayLike,
    origins: ArrayLike,
    width: int,
    active: ArrayLike | None,
    read: ArrayLike | None,
    arch: Arch,
) -> tuple[Counts, int, tuple[int, ...]]:
    """Each lane's wavefront in its group, from 1, 0 if inactive [m, 32]; lanes per group; the
    leading shape.
    """
    writes, reads = check_copies(addresses, origins, width, active, read, arch)
    slots = arch.line_bytes // width
    turns = np.zeros(writes.addresses.shape, np.int64)
    for (rows, to, on), (_, source, reading) in zip(writes.chunks(width), reads.chunks(width), strict=True):
        turns[rows] = _turns(_slot(to, slots), _slot(source, slots), on, reading, slots)
    return turns, slots, writes.shape


def is_certain(
    origins: ArrayLike, width: int, active: ArrayLike, read: ArrayLike, arch: Arch = SM_90
) -> Mask:
    """Whether a `cp.async.ca` takes the same wavefronts on a hit and a miss: bool (...).

    Measured for requests of which every active lane reads, and each group of lanes reads one 128-byte line
    contiguously.
    """
    lanes = (
        np.asarray(origins) - np.arange(arch.warp) * width % arch.line_bytes
    )  # the start of the group's line
    on = np.broadcast_to(active, lanes.shape)
    slots = arch.line_bytes // width
    groups = lanes.reshape(*lanes.shape[:-1], arch.warp // slots, slots)
    of_group = on.reshape(groups.shape)
    low = np.where(of_group, groups, np.iinfo(np.int64).max).min(axis=-1, keepdims=True)
    side_by_side = (~of_group | ((groups == low) & (low % arch.line_bytes == 0))).all(axis=(-1, -2))
    certain: Mask = side_by_side & (np.asarray(read) | ~on).all(axis=-1)
    return certain


def limits_of_conflicts(
    addresses: ArrayLike,
    origins: ArrayLike,
    width: int,
    active: ArrayLike,
    read: ArrayLike,
    arch: Arch = SM_90,
) -> tuple[Counts, Counts]:
    """(fewest, most) bank conflicts of `cp.async.ca` requests [n, 32], whatever the L1 cache has: int64 [n].

    On a miss the chip serves a group of lanes in portions, and never divides those that read one line: a
    group has at least the conflicts of its worst line. It has at most one for each lane but the first.
    Source: docs/model.md.
    """
    sources, targets = np.asarray(origins), np.asarray(addresses)
    on = np.broadcast_to(active, sources.shape)
    reads = on & np.asarray(read)
    slots = arch.line_bytes // width
    group = np.arange(arch.warp) // slots
    line = sources // arch.line_bytes * arch.warp + group
    worst = np.zeros((len(sources), arch.warp // slots), np.int64)
    for lane in range(arch.warp):
        fellows = reads & (line == line[:, lane, None])
        rows = np.flatnonzero(fellows[:, lane] & ~fellows[:, :lane].any(axis=1))  # the first of its line
        chosen = fellows[rows]
        alone = copy_access(targets[rows], sources[rows], width, chosen, chosen, arch).conflicts
        worst[rows, group[lane]] = np.maximum(worst[rows, group[lane]], alone)
    lanes = np.count_nonzero(on.reshape(*worst.shape, slots), axis=2)
    hit = copy_access(addresses, origins, width, on, reads, arch).conflicts
    certain = is_certain(origins, width, on, np.asarray(read), arch)
    fewest, most = worst.sum(axis=1), np.maximum(lanes - 1, 0).sum(axis=1)
    return np.where(certain, hit, fewest), np.where(certain, hit, most)


def bypass_access(
    addresses: ArrayLike, origins: ArrayLike, active: ArrayLike | None = None, arch: Arch = SM_90
) -> GlobalCost:
    """Counts in global memory of `cp.async.cg` requests of 16 bytes per lane. Arguments: as `copy_access`.

    They bypass the L1 cache, and the counts depend on the destination, too: a sector for each pair of a
    128-byte line and a 32-byte sector of shared memory, a tag look-up for each pair of a line and 128 bytes
    of shared memory. In shared memory the chip counts nothing for them. If two lanes write to the same
    address (`overlaps`), the rule for sectors does not hold: overwritten data may not be fetched.
    """
    width = 16
    writes, reads = check_copies(addresses, origins, width, active, None, arch)
    lines, sectors = np.zeros((2, len(writes.addresses)), np.int64)
    for (rows, to, on), (_, source, _) in zip(writes.chunks(width), reads.chunks(width), strict=True):
        line = source // source.dtype.type(arch.line_bytes // width)
        for column, size in ((lines, arch.line_bytes), (sectors, arch.sector_bytes)):
            column[rows] = distinct((line, to // to.dtype.type(size // width)), on)
    ideal = global_access(origins, width, "cp_async_cg", active, arch).ideal_sectors
    return GlobalCost(sectors.reshape(reads.shape), lines.reshape(reads.shape), ideal)


def overlaps(addresses: ArrayLike, active: ArrayLike) -> Mask:
    """Whether two active lanes write to the same address: bool (...)."""
    lanes, on = np.asarray(addresses), np.asarray(active)
    found: Mask = np.count_nonzero(equal(lanes) & together(on), axis=(-1, -2)) > np.count_nonzero(on, axis=-1)
    return found


def check_copies(
    addresses: ArrayLike,
    origins: ArrayLike,
    width: int,
    active: ArrayLike | None,
    read: ArrayLike | None,
    arch: Arch,
) -> tuple[CheckedRequests, CheckedRequests]:
    """The destinations and sources of requests, checked to have the same shape.

    Raises:
        MemsimError: as `check_requests`, or the shapes differ.
    """
    writes = check_requests(addresses, width, "cp_async", active, arch, "shared")
    reading = active if read is None else np.logical_and(True if active is None else active, read)
    reads = check_requests(origins, width, "cp_async", reading, arch, "global")
    if writes.shape != reads.shape:
        raise MemsimError(
            f"origins have shape {np.shape(origins)}, addresses {np.shape(addresses)}",
            hint="one address in global memory for each one in shared memory",
        )
    return writes, reads


def _slot(units: Lanes, slots: int) -> Counts:
    """The slot, a group of banks as wide as a lane's access, that a unit is in."""
    slot: Counts = (units & units.dtype.type(slots - 1)).astype(np.int64)
    return slot


def _turns(to: Counts, source: Counts, on: Mask | None, reading: Mask | None, slots: int) -> Counts:
    """The wavefront that serves each lane, from 1 in its group [m, 32]; 0 for an inactive lane."""
    rows = np.arange(len(to))
    turns = np.zeros(to.shape, np.int64)
    for lane in range(to.shape[1]):
        if lane % slots == 0:  # a new group
            written, fetched = np.zeros((2, len(to), slots), np.int64)
        here, there = to[:, lane], source[:, lane]
        writes = True if on is None else on[:, lane]
        reads = writes if reading is None else reading[:, lane]
        busy = np.maximum(written[rows, here], np.where(reads, fetched[rows, there], 0))
        turns[:, lane] = np.where(writes, busy + 1, 0)
        written[rows, here] = np.where(writes, turns[:, lane], written[rows, here])
        fetched[rows, there] = np.where(reads, turns[:, lane], fetched[rows, there])
    return turns


def limits_of_copies(
    copy: Operation, width: int, addresses: ArrayLike, active: ArrayLike, partner: ArrayLike, arch: Arch
) -> tuple[Counts, Counts | None, str]:
    """(fewest, most conflicts of requests to shared memory [n], why they may differ).

    most: None if nothing limits them. partner: each lane's address in global memory, -1 if it writes zeros.
    """
    to, on, other = np.asarray(addresses), np.asarray(active), np.asarray(partner)
    if not copy.bypass:
        return *limits_of_conflicts(to, other, width, on, other >= 0, arch), BY_HITS
    zeros = on & (other < 0)
    alone = shared_access(to, width, "store", zeros, arch).conflicts
    return alone, None if zeros.any() else alone, BY_ZEROS
