"""Counters that depend on more than the addresses of a kernel's copies, with the reason.

Totals under such names are unknown. For every other kind of access, addresses decide all counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from memsim.arch import Arch
from memsim.model.cp_async import is_certain
from memsim.model.operations import Operation

COPY_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum"

BY_HITS = (
    "wavefronts of cp.async are for data in the L1 cache; lanes that read from several lines may take more "
    "or fewer if they miss"
)
BY_ZEROS = "lanes of a cp.async.cg that write zeros may conflict with other writes"


def undecided(
    copy: Operation, width: int, active: ArrayLike, partner: ArrayLike, arch: Arch
) -> dict[str, str]:
    """Metric -> why it is unknown, for the requests to shared memory of one copy.

    partner: each lane's address in global memory, -1 if it writes zeros.
    """
    on, other = np.asarray(active), np.asarray(partner)
    if not copy.bypass and not is_certain(other, width, on, other >= 0, arch).all():
        return {COPY_CONFLICTS: BY_HITS}
    if copy.bypass and (on & (other < 0)).any():
        return {COPY_CONFLICTS: BY_ZEROS}
    return {}
