"""Indexed loads from constant memory: one request for each distinct address of a warp.

Caches are not modelled. Loads at a fixed address are not accesses of a lane.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memsim.arch import SM_90, Arch, get_arch
from memsim.model.checked_requests import check_requests, fill_idle


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
