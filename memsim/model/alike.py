"""Which requests of one access cost the same, whoever asks: what may stand for what where there are too many.

In: requests of one kind of access. Out: numbers for each; requests with equal numbers are equal in every
count that an analysis, or a comparison with a recording, makes of them. Left out on purpose: which banks and
addresses they use.
"""

from __future__ import annotations

import numpy as np

from memsim.arch import get_arch
from memsim.model.choice import NO_RULE, global_cost, shared_cost
from memsim.model.copies import is_certain, overlaps
from memsim.model.shared import Counts
from memsim.model.sourcepage import (
    bypass_source_page,
    copy_source_page,
    shared_source_page,
)

COPY, BYPASS = "cp_async", "cp_async_cg"


def alike(
    space: str,
    op: str,
    width: int,
    addresses: np.ndarray,
    active: np.ndarray,
    partner: np.ndarray,
    arch: str = "sm_90",
) -> Counts:
    """A row of numbers for each request: int64 [n, k].

    Args:
        space, op, width: the kind of access.
        addresses, active, partner: as the columns of a trace, [n, 32].

    Raises:
        MemsimError: an active lane that is not aligned to the width.
    """
    chip = get_arch(arch)
    read = active & (partner >= 0)
    columns: list[np.ndarray] = [np.count_nonzero(active, axis=1), np.count_nonzero(read, axis=1)]
    if op in NO_RULE or (op != BYPASS and width not in chip.widths(space, op)):
        return _stacked(columns)
    asked = addresses, width, op, active, partner, arch
    if op == BYPASS:
        to, source = (addresses, partner) if space == "shared" else (partner, addresses)
        shared, outside = bypass_source_page(to, source, active, read, arch)
        columns += [overlaps(to, active), shared.wavefronts, shared.ideal]
        columns += [outside.sectors, outside.ideal, outside.tag_requests]
    if space == "global":
        cost = global_cost(*asked)
        columns += [cost.sectors, cost.lines, cost.ideal_sectors]
    elif op == COPY:
        page = copy_source_page(addresses, partner, width, active, read, arch)
        columns += [is_certain(partner, width, active, read, arch), page.wavefronts, page.ideal]
    elif op != BYPASS:
        page = shared_source_page(addresses, width, op, active, arch)
        columns += [page.wavefronts, page.ideal]
    if space == "shared" and op != BYPASS:
        own = shared_cost(*asked)
        columns += [own.wavefronts, own.conflicts, own.ways, own.ideal]
    return _stacked(columns)


def _stacked(columns: list[np.ndarray]) -> Counts:
    return np.stack([np.asarray(column, np.int64) for column in columns], axis=1)
