"""Bank conflicts of copies, which depend on more than their addresses: limits, and the reason."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from memsim.arch import Arch
from memsim.model.checked_requests import Counts
from memsim.model.cp_async import limits_of_conflicts
from memsim.model.operations import Operation
from memsim.model.shared import shared_access

BY_HITS = (
    "lanes of a cp.async that read from several lines have other bank conflicts if they miss the L1 cache"
)
BY_ZEROS = "lanes of a cp.async.cg that write zeros may conflict with other writes"


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
