"""What the profiler's Source page prints for a request, where that is not what the hardware does.

In: a request, as in `memsim.model.shared` and `.globalmem`. Out: the numbers of ncu's SourceCounters
section. They are themselves a model that the profiler computes from addresses; here so that a
recording of them can be compared exactly. Left out on purpose: `cp.async`, which was not measured.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from memsim.arch import get_arch
from memsim.model.globalmem import global_access
from memsim.model.requests import Lanes, Mask, check_requests, fill_idle
from memsim.model.shared import Counts, Rule, group_costs, pair_rule, shared_rule

UNKNOWN = -1


@dataclass(frozen=True, slots=True, eq=False)
class SharedSource:
    """int64 arrays (...); `UNKNOWN` where the profiler's rule is not known.

    wavefronts: `memory_l1_wavefronts_shared`. ideal: `memory_l1_wavefronts_shared_ideal`.
    """

    wavefronts: Counts
    ideal: Counts


@dataclass(frozen=True, slots=True, eq=False)
class GlobalSource:
    """int64 arrays (...).

    sectors: `memory_l2_theoretical_sectors_global`. ideal: the same metric with `_ideal`.
    tag_requests: `memory_l1_tag_requests_global`.
    """

    sectors: Counts
    ideal: Counts
    tag_requests: Counts


def shared_source_page(
    addresses: ArrayLike, width: int, op: str = "load", active: ArrayLike | None = None, arch: str = "sm_90"
) -> SharedSource:
    """The Source page's shared-memory numbers; arguments and errors as in `shared_access`.

    Unknown: `cp_async`, and 16-byte loads of a warp with idle lanes, from several addresses, where a
    half-warp could be served in one wavefront instead of two. Everything else is exact on every
    recorded pattern.
    """
    chip = get_arch(arch)
    requests = check_requests(addresses, width, op, active, chip, "shared")
    rule = shared_rule(op, width, chip)

    wavefronts = np.zeros(len(requests.addresses), np.int64)
    for rows, units, mask in requests.chunks(rule.unit):
        wavefronts[rows] = UNKNOWN if op == "cp_async" else _wavefronts(units, mask, rule)
    ideal = np.minimum(
        wavefronts, _ceil_div(_bytes(requests.active, len(wavefronts), width), chip.line_bytes)
    )
    return SharedSource(wavefronts.reshape(requests.shape), ideal.reshape(requests.shape))


def _wavefronts(units: Lanes, active: Mask | None, rule: Rule) -> Counts:
    """As the hardware, but a merge happens only where the merged group has no conflict.

    For 16-byte loads the profiler looks at the pair rule in each half-warp by itself. If all active lanes
    ask for one address it takes sixteen of them at a time, wherever they are.
    """
    apart = group_costs(units, active, rule, rule.lanes).astype(np.int64)
    if not rule.merges:
        alone: Counts = apart.sum(axis=1)
        return alone
    together = group_costs(units, active, rule, rule.widest).astype(np.int64)
    apart = apart.reshape(*together.shape, 2).sum(axis=2)
    on = None if active is None else active.reshape(-1, rule.widest)
    paired = pair_rule(units.reshape(-1, rule.widest), on).reshape(together.shape)

    wavefronts: Counts = np.where(paired & (together == 1), together, apart).sum(axis=1)
    if active is not None and rule.widest < units.shape[1]:
        in_doubt = ((together == 1) & (apart == 2)).any(axis=1) & ~active.all(axis=1)
        wavefronts[in_doubt] = UNKNOWN
        filled = fill_idle(units, active)
        one_address = (filled == filled[:, :1]).all(axis=1)
        lanes = np.count_nonzero(active, axis=1)
        wavefronts = np.where(one_address, _ceil_div(lanes, rule.widest), wavefronts)
    return wavefronts


def global_source_page(
    addresses: ArrayLike, width: int, op: str = "load", active: ArrayLike | None = None, arch: str = "sm_90"
) -> GlobalSource:
    """The Source page's global-memory numbers; arguments and errors as in `global_access`."""
    chip = get_arch(arch)
    cost = global_access(addresses, width, op, active, arch)
    requests = check_requests(addresses, width, op, active, chip, "global")
    asked = _ceil_div(_bytes(requests.active, len(requests.addresses), width), chip.sector_bytes)
    return GlobalSource(cost.sectors, np.minimum(cost.sectors, asked.reshape(cost.sectors.shape)), cost.lines)


def _bytes(active: Mask | None, requests: int, width: int) -> Counts:
    """Bytes that the active lanes ask for, shared ones counted for each lane."""
    lanes = np.full(requests, 32) if active is None else np.count_nonzero(active, axis=1)
    asked: Counts = lanes * width
    return asked


def _ceil_div(values: Counts, unit: int) -> Counts:
    up: Counts = -(-values // unit)
    return up
