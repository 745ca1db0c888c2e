"""Global, local and constant memory: the sectors, 128-byte lines and requests that a warp's request touches.

Caches (hits and misses) and DRAM are not modelled; `cp.async.cg` is in `memsim.model.cp_async.bypass_access`.
The chip interleaves the 4-byte words of the 32 lanes' local memory: word w of lane l is at 128 w + 4 l, so a
sector of 32 bytes holds one word of eight lanes. Generic addresses of local memory are not modelled. An
indexed load from constant memory is one request for each distinct address of a warp; loads at a fixed address
are not accesses of a lane.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memsim.arch import SM_90, Arch, get_arch
from memsim.model.checked_requests import (
    LOW_BITS,
    Counts,
    Lanes,
    Mask,
    check_requests,
    distinct,
    fill_idle,
    lane_words,
)


@dataclass(frozen=True, slots=True, eq=False)
class GlobalCost:
    """Cost of each request; int64 arrays of the leading shape of the addresses.

    sectors: distinct 32-byte sectors, as `l1tex__t_sectors_pipe_lsu_mem_global_op_*` counts. lines: distinct
    128-byte lines, as `l1tex__t_set_accesses_pipe_lsu_mem_global_op_ld` counts. ideal_sectors: the sectors
    that as many distinct bytes would fill if contiguous.
    """

    sectors: Counts
    lines: Counts
    ideal_sectors: Counts


def global_access(
    addresses: ArrayLike,
    width: int,
    op: str = "load",
    active: ArrayLike | None = None,
    arch: Arch | str = SM_90,
) -> GlobalCost:
    """Sectors and lines of warp requests to global memory.

    Args:
        addresses: integers (..., 32), byte addresses, one row per warp request.
        width: bytes per lane: 1, 2, 4, 8 or 16.
        op: load, store, atomic, reduction or cp_async (`.ca`); all are counted alike. cp_async_cg:
            as if it were a load, which is what the Source page shows as tag requests.
        active: booleans that broadcast to (..., 32); None means all lanes. Addresses of inactive
            lanes are ignored.
        arch: the chip whose measured rules to use, or its name.

    Returns:
        GlobalCost of int64 arrays (...); all zero if no lane is active.

    Raises:
        MemsimError: bad shape or type, unknown op or arch, a width not measured for that op,
            or an active lane that is not aligned to the width.
    """
    chip = get_arch(arch)
    requests = check_requests(addresses, width, op, active, chip, "global")

    sectors, lines, ideal = np.zeros((3, len(requests.addresses)), np.int64)
    for rows, units, mask in requests.chunks(requests.width):
        # An aligned access is within one sector, and sorted units are also sorted by sector and line.
        change, places = sorted_changes(units, mask)
        sectors[rows] = _distinct(change, places, chip.sector_bytes // requests.width)
        lines[rows] = _distinct(change, places, chip.line_bytes // requests.width)
        touched = _distinct(change, places, 1).astype(np.int64) * requests.width
        ideal[rows] = -(-touched // chip.sector_bytes)
    return GlobalCost(*(column.reshape(requests.shape) for column in (sectors, lines, ideal)))


def cost_of_lanes(
    addresses: NDArray[np.int64], counts: NDArray[np.int64], width: int, chip: Arch
) -> GlobalCost:
    """As `global_access`, of requests that are given by their active lanes alone: cheaper if these are few.

    Args:
        addresses: bytes, of all lanes, request by request [n]; aligned, and less than 2**40 apart.
        counts: lanes of each request, at least one [m], m < 2**20.
    """
    units = addresses >> width.bit_length() - 1
    units -= units.min() & ~LOW_BITS
    ends = np.cumsum(counts)
    keys: NDArray[np.int64] = np.zeros_like(units)
    keys[ends - counts] = 1 << (int(units.max()) | LOW_BITS).bit_length()
    np.cumsum(keys, out=keys)  # the number of the request, from 1 on
    keys |= units
    keys.sort()
    change = np.empty_like(keys)
    change[0] = keys[0]  # as for all requests, the first one is new
    np.bitwise_xor(keys[1:], keys[:-1], out=change[1:])
    # Three counts of up to 32 are added up at once.
    edges = (change > 0).astype(np.int32)
    edges += (change >= chip.sector_bytes // width) * np.int32(1 << 6)
    edges += (change >= chip.line_bytes // width) * np.int32(1 << 12)
    edges = np.diff(np.cumsum(edges, dtype=np.int64)[ends - 1], prepend=0)
    touched = (edges & 63) * width
    return GlobalCost(edges >> 6 & 63, edges >> 12, -(-touched // chip.sector_bytes))


def sorted_changes(units: Lanes, active: Mask | None) -> tuple[Lanes, Lanes]:
    """The bits in which each unit differs from the previous one of its row, in order [m, 32]; and the places
    of active lanes in this order, as words [m]: idle lanes come last.
    """
    if active is None:
        in_order, places = np.sort(units, axis=1), np.full(len(units), 2**32 - 1, np.uint32)
    else:
        in_order = active.astype(units.dtype)
        in_order -= in_order.dtype.type(1)
        in_order |= units  # idle lanes: all bits
        in_order.sort(axis=1)
        counts = np.bitwise_count(lane_words(active))
        places = ((np.uint64(1) << counts.astype(np.uint64)) - np.uint64(1)).astype(np.uint32)
    flat = in_order.reshape(-1)
    change = np.empty_like(flat)
    change[0] = 0
    np.bitwise_xor(flat[1:], flat[:-1], out=change[1:])
    return change.reshape(units.shape), places


def _distinct(change: Lanes, places: Lanes, per_block: int) -> NDArray[np.uint8]:
    """The number of blocks of `per_block` units (a power of two) that each row touches [m]; `change` and
    `places` of `sorted_changes`.
    """
    edges = lane_words(change >= change.dtype.type(per_block)) | np.uint32(1)  # the first one is new
    distinct: NDArray[np.uint8] = np.bitwise_count(edges & places)
    return distinct


# --- local and constant memory ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class LocalCost:
    """Cost of each request; int64 arrays of the leading shape of the addresses.

    requests: as `l1tex__t_requests_pipe_lsu_mem_local_op_*` counts: one for each 4 bytes of a lane.
    sectors: distinct 32-byte sectors, as `l1tex__t_sectors_pipe_lsu_mem_local_op_*` counts.
    ideal_sectors: those of the same lanes if all had the same address.
    """

    requests: Counts
    sectors: Counts
    ideal_sectors: Counts


def words_of(width: int, arch: Arch) -> int:
    """The number of 4-byte words that a lane accesses."""
    return max(1, width // arch.bank_bytes)


def local_access(
    addresses: ArrayLike,
    width: int,
    op: str = "load",
    active: ArrayLike | None = None,
    arch: Arch | str = SM_90,
) -> LocalCost:
    """Requests and sectors of warp accesses to local memory.

    addresses: from the start of each lane's own local memory. width: 1, 2, 4, 8 or 16 bytes per lane; of
    atomics 4. Rest of the arguments and errors: as `global_access`.
    """
    chip = get_arch(arch)
    asked = check_requests(addresses, width, op, active, chip, "local")
    words, lanes = words_of(width, chip), chip.sector_bytes // chip.bank_bytes

    requests, sectors, ideal = np.zeros((3, len(asked.addresses)), np.int64)
    for rows, units, mask in asked.chunks(max(asked.width, chip.bank_bytes)):
        on = np.ones(units.shape, np.bool_) if mask is None else mask
        groups = on.reshape(-1, lanes)
        touched = distinct((units.reshape(-1, lanes),), groups).reshape(len(units), -1)
        requests[rows] = on.any(axis=1) * words
        sectors[rows] = touched.sum(axis=1) * words
        ideal[rows] = groups.any(axis=1).reshape(len(units), -1).sum(axis=1) * words
    return LocalCost(*(column.reshape(asked.shape) for column in (requests, sectors, ideal)))


def constant_access(
    addresses: ArrayLike,
    width: int,
    op: str = "load",
    active: ArrayLike | None = None,
    arch: Arch | str = SM_90,
) -> NDArray[np.int64]:
    """Requests of warp loads from constant memory: the distinct addresses, as `idc__requests` counts them.

    addresses: in the bank. width: 1, 2, 4 or 8 bytes per lane. Rest of the arguments and errors: as
    `global_access`.
    """
    asked = check_requests(addresses, width, op, active, get_arch(arch), "constant")
    requests = np.zeros(len(asked.addresses), np.int64)
    for rows, units, mask in asked.chunks(asked.width):
        filled = units if mask is None else fill_idle(units, mask)
        ordered = np.sort(filled, axis=1)
        served = True if mask is None else mask.any(axis=1)
        requests[rows] = (1 + np.count_nonzero(ordered[:, 1:] != ordered[:, :-1], axis=1)) * served
    return requests.reshape(asked.shape)
