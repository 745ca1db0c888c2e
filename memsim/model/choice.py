"""The cost of a request by the rule for its operation, and the reason if it has none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from memsim.arch import Arch
from memsim.arch.units import LINE, WARP
from memsim.model.coalescing import GlobalCost, global_access
from memsim.model.cp_async import bypass_access, copy_access, overlaps
from memsim.model.operations import REMOTE, Operation, operation
from memsim.model.remote import remote_access
from memsim.model.shared import SharedCost, shared_access


def shared_cost(
    addresses: ArrayLike, width: int, op: str, active: ArrayLike, partner: ArrayLike, arch: Arch
) -> SharedCost:
    """Cost of requests to shared memory; `partner`: for a copy the address that each lane reads,
    -1 for none.
    """
    if operation("shared", op).is_copy:
        return copy_access(addresses, partner, width, active, np.asarray(partner) >= 0, arch)
    return shared_access(addresses, width, op, active, arch)


def global_cost(
    addresses: ArrayLike, width: int, op: str, active: ArrayLike, partner: ArrayLike, arch: Arch
) -> GlobalCost:
    """Cost of requests to global memory, or counted like these; `partner`: for a copy the address that each
    lane writes.
    """
    asked = operation("shared" if op in REMOTE else "global", op)
    if asked.bypass:
        return bypass_access(partner, addresses, active, arch)
    if asked.remote and not asked.shares:
        return remote_access(addresses, width, op, active, arch)
    cost = global_access(addresses, width, op.removeprefix("cluster_"), active, arch)
    if not asked.least:
        return cost
    least = fewest_sectors(asked, np.count_nonzero(active, axis=-1))
    return replace(cost, sectors=np.where(cost.sectors > 0, np.maximum(cost.sectors, least), 0))


def fewest_sectors(asked: Operation, lanes: np.ndarray) -> np.ndarray | int:
    """The fewest sectors that the chip counts for requests of so many lanes [n], which have any."""
    return np.minimum(asked.least, lanes) if asked.remote else asked.least


def why_no_cost(
    width: int, op: str, space: str, active: ArrayLike, partner: ArrayLike, arch: Arch
) -> str | None:
    """Why these requests have no measured cost; None if they have one or need none."""
    asked = operation(space, op)
    if not asked.is_counted:
        return None
    if asked.why:
        return asked.why
    if width not in arch.widths(space, op):
        return f"{space} {op} of {width} bytes per lane has no rule on {arch.name}"
    if asked.bypass and overlaps(partner, active).any():
        return "lanes of a cp.async.cg write to the same address, for which its sectors were not measured"
    return None


def group_wavefronts(width: int) -> int:
    """Wavefronts of four warps that read operands of a matrix product together, `width` bytes for each of 32
    lanes.

    One for every 128 bytes, wherever they lie: no layout causes a conflict. Source: docs/model.md.
    """
    return WARP * width // LINE
