"""Local and constant memory: what a warp's request touches.

Local memory holds register spills and arrays of a thread. The chip interleaves the 4-byte words of the 32
lanes: word w of lane l is at 128 w + 4 l, so a sector of 32 bytes holds one word of eight lanes. Generic
addresses of local memory are not modelled. An indexed load from constant memory is one request for each
distinct address of a warp; loads at a fixed address are not accesses of a lane. Caches (hits and misses) are
not modelled for either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memsim.arch import SM_90, Arch, get_arch
from memsim.model.checked_requests import Counts, check_requests, distinct, fill_idle


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
