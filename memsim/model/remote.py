"""Requests to distributed shared memory: the chip counts them in sectors and lines, like global memory.

Lanes of loads and stores share what they have in common. Those of atomics and of asynchronous stores do not:
the chip serves such a request one line at a time. Each time

- every place in a line, of the width of a lane, goes to one lane for each of four banks of lines: the first
  that has not been served;
- of the lanes that have their place, those in the line of the first lane are served.

So a lane waits for an earlier one at its own address, and for an earlier one at the same place of another
line in its bank of lines, unless that is served before. Each time counts as a line, and its own sectors.

Source: patterns of an H200 (`traces/nvidia-h200`), of lanes anywhere in one block or in sixteen.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from memsim.arch import SM_90, Arch
from memsim.arch.units import LINE, SECTOR, WARP
from memsim.model.checked_requests import CheckedRequests, check_requests, fill_idle
from memsim.model.coalescing import GlobalCost
from memsim.model.operations import operation

#: Bits of an address in the cluster's window whose parity is a bit of the number of its bank of lines.
BANK_OF_LINES = (0xF015A80, 0xA02ED00)
#: Where a block's own memory begins in its part of the window.
OWN_START = 1024
#: Requests that are counted at once.
CHUNK = 1 << 14


def remote_access(
    addresses: ArrayLike, width: int, op: str, active: ArrayLike | None = None, arch: Arch = SM_90
) -> GlobalCost:
    """Cost of requests whose lanes do not share. Arguments and errors: as `global_access`.

    addresses: in the block's own shared memory, with its rank from bit 24 on.
    """
    requests = check_requests(addresses, width, op, active, arch, "shared")
    return _cost(requests, OWN_START, operation("shared", op).passes)


def global_atomic_access(
    addresses: ArrayLike, width: int, passes: int, active: ArrayLike | None = None, arch: Arch = SM_90
) -> GlobalCost:
    """Cost of atomics and reductions on global memory, which are served in the same way. passes: 2 of a
    compare-and-swap, which has two operands, otherwise 1. Errors: as `global_access`.

    Measured in an array that starts at a multiple of 256 KiB; how banks depend on higher bits is unknown. It
    makes no difference to requests that `is_same_anywhere`.
    """
    return _cost(check_requests(addresses, width, "atomic", active, arch, "global"), 0, passes)


def _cost(requests: CheckedRequests, start: int, passes: int) -> GlobalCost:
    """start: where address 0 is. A compare-and-swap has lines of half the size."""
    places = requests.addresses + start
    on = np.ones(places.shape, np.bool_) if requests.active is None else requests.active
    counts = [
        _served(places[at : at + CHUNK], on[at : at + CHUNK], requests.width, LINE // passes)
        for at in range(0, len(on), CHUNK)
    ]
    sectors, lines = np.concatenate(counts, axis=1) if counts else np.zeros((2, 0), np.int64)
    ideal = -(-np.count_nonzero(on, axis=1) * requests.width // SECTOR)
    return GlobalCost(*(column.reshape(requests.shape) for column in (sectors, lines, ideal)))


def is_same_anywhere(addresses: np.ndarray, width: int, active: np.ndarray) -> np.ndarray:
    """Whether banks make no difference to requests [n, 32], bool [n]: no place occurs in two lines."""
    asked = fill_idle(addresses, active) // width
    found: np.ndarray = _different(asked) == _different(asked % (LINE // width))
    return found


def _in_turns(addresses: np.ndarray, active: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    """How many blocks of each size requests [n, 32] are served in, int64 [n], if no lane waits for another
    block's: lanes at one address take turns, those of one block whose turn it is are served together.
    """
    turns = np.bitwise_count(_earlier(addresses, active)).astype(np.int64)
    keys = (fill_idle(addresses // size * WARP + turns, active) for size in sizes)
    return [np.where(active.any(axis=1), _different(key) + 1, 0) for key in keys]


def limits_anywhere(
    addresses: np.ndarray, width: int, passes: int, active: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """((fewest, most) sectors, (fewest, most) lines) of requests [n, 32], wherever the array lies [n]."""
    sectors, lines = limits_of_blocks(addresses, width, active, (SECTOR, LINE // passes))
    return sectors, lines


def limits_of_blocks(
    addresses: np.ndarray, width: int, active: np.ndarray, sizes: Sequence[int]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """(fewest, most) blocks of each size that requests [n, 32] are served in, wherever the array lies [n].

    Fewest: no lane waits for one in another line. Most: lanes whose place no earlier lane has are served
    when their line is for the first time, and each other lane alone.
    """
    free = active & (_earlier(addresses % LINE // width, active) == 0)
    alone = np.count_nonzero(active & ~free, axis=1)
    same = is_same_anywhere(addresses, width, active)
    limits = []
    for size, few in zip(sizes, _in_turns(addresses, active, sizes), strict=True):
        keys = fill_idle(addresses // size, free)
        most = np.where(free.any(axis=1), _different(keys) + 1, 0) + alone
        limits.append((few, np.where(same, few, most)))
    return limits


def _different(values: np.ndarray) -> np.ndarray:
    """How many different values each row has, less one."""
    in_order = np.sort(values, axis=1)
    found: np.ndarray = np.count_nonzero(in_order[:, 1:] != in_order[:, :-1], axis=1)
    return found


def _served(addresses: np.ndarray, on: np.ndarray, width: int, line: int) -> np.ndarray:
    """(sectors, lines) of requests [n, 32], int64 [2, n]."""
    place = addresses % LINE // width | _bank(addresses) << 7
    before, fellows = _earlier(place, on), _same(addresses // line, on)
    in_sector = _earlier(addresses // SECTOR, on)
    bits = np.uint32(1) << np.arange(WARP, dtype=np.uint32)
    left = np.where(on, bits, np.uint32(0)).sum(axis=1, dtype=np.uint32)
    counts = np.zeros((2, len(on)), np.int64)
    while left.any():
        first = np.bitwise_count((left & -left) - np.uint32(1)) % WARP
        free = (left[:, None] & bits != 0) & (before & left[:, None] == 0)
        served = np.where(free, bits, np.uint32(0)).sum(axis=1, dtype=np.uint32)
        served &= fellows[np.arange(len(on)), first]
        opens = (served[:, None] & bits != 0) & (in_sector & served[:, None] == 0)
        counts += np.count_nonzero(opens, axis=1), left != 0
        left &= ~served
    return counts


def _bank(addresses: np.ndarray) -> np.ndarray:
    """The bank of lines of each address: 0 to 3."""
    low, high = (np.bitwise_count(addresses & mask).astype(np.int64) & 1 for mask in BANK_OF_LINES)
    found: np.ndarray = low | high << 1
    return found


def _same(values: np.ndarray, on: np.ndarray) -> np.ndarray:
    """The active lanes of its request that have a lane's value, as a mask, uint32 [n, 32]."""
    found = np.zeros(values.shape, np.uint32)
    for lane in range(WARP):
        same = (values == values[:, lane, None]) & on[:, lane, None]
        found |= same.astype(np.uint32) << np.uint32(lane)
    return found


def _earlier(values: np.ndarray, on: np.ndarray) -> np.ndarray:
    """As `_same`, of earlier lanes only."""
    before = (np.uint32(1) << np.arange(WARP, dtype=np.uint32)) - np.uint32(1)
    found: np.ndarray = _same(values, on) & before
    return found
