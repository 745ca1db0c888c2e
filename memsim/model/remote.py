"""Requests to distributed shared memory: the chip counts them in sectors and lines, like global memory.

Lanes of loads and stores share what they have in common. Those of atomics and of asynchronous stores do
not: of lanes at one address the second comes after all first ones, the third after all second ones, and so
on, and each turn counts as a request of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from memsim.arch import SM_90, Arch
from memsim.arch.units import LINE, SECTOR
from memsim.model.checked_requests import check_requests
from memsim.model.coalescing import GlobalCost
from memsim.model.operations import operation
from memsim.model.shared import Counts

#: In so many lines the counts of one request are exact; in more of them an H200 counts up to two more.
SURE_LINES = 4


def remote_access(
    addresses: ArrayLike, width: int, op: str, active: ArrayLike | None = None, arch: Arch = SM_90
) -> GlobalCost:
    """Cost of requests whose lanes do not share. Arguments and errors: as `global_access`."""
    requests = check_requests(addresses, width, op, active, arch, "shared")
    shape = requests.addresses.shape
    on = np.ones(shape, np.bool_) if requests.active is None else requests.active
    turn = _turns(requests.addresses, on)
    line = LINE // operation("shared", op).passes  # a compare-and-swap has two operands
    sectors, lines, ideal = (
        _distinct(turn, requests.addresses // size, on) for size in (SECTOR, line, requests.width)
    )
    columns = sectors, lines, -(-ideal * requests.width // SECTOR)
    return GlobalCost(*(column.reshape(requests.shape) for column in columns))


def is_sure(addresses: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Whether the counts of requests [n, 32] are exact, bool [n]."""
    lines = np.where(active, addresses // LINE, -1)
    found: np.ndarray = _distinct(np.zeros_like(lines), lines, active) <= SURE_LINES
    return found


def _turns(addresses: np.ndarray, on: np.ndarray) -> np.ndarray:
    """How many earlier active lanes of its request have a lane's address [n, 32]."""
    same = (addresses[:, :, None] == addresses[:, None, :]) & on[:, None, :]
    turns: np.ndarray = np.count_nonzero(same & np.tri(addresses.shape[1], k=-1, dtype=np.bool_), axis=2)
    return turns


def _distinct(turn: np.ndarray, units: np.ndarray, on: np.ndarray) -> Counts:
    """The number of different pairs of a turn and a unit among the active lanes of each request [n]."""
    order = np.lexsort((units, turn, ~on))
    rows = np.arange(len(units))[:, None]
    turn, units, on = turn[rows, order], units[rows, order], on[rows, order]
    new = on.copy()
    new[:, 1:] &= (turn[:, 1:] != turn[:, :-1]) | (units[:, 1:] != units[:, :-1])
    found: Counts = np.count_nonzero(new, axis=1)
    return found
