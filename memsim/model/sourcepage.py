"""What the profiler's Source page shows for a request, where it differs from the hardware's counts.

The numbers of ncu's SourceCounters section are themselves a model that the profiler computes from addresses;
they are modelled here so that recordings of them can be compared exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from memsim.arch import SM_90, Arch
from memsim.model.checked_requests import (
    EARLIER,
    Counts,
    Lanes,
    Mask,
    check_requests,
    equal,
    fill_idle,
    first,
    together,
)
from memsim.model.coalescing import global_access
from memsim.model.cp_async import check_copies
from memsim.model.shared import SharedRule, group_costs, pair_rule, shared_rule

UNKNOWN = -1
BYPASS_BYTES = 16  # per lane of `cp.async.cg`


@dataclass(frozen=True, slots=True, eq=False)
class SharedSource:
    """int64 arrays (...); `UNKNOWN` where the profiler's rule is unknown.

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
    addresses: ArrayLike, width: int, op: str = "load", active: ArrayLike | None = None, arch: Arch = SM_90
) -> SharedSource:
    """The Source page's shared-memory numbers; arguments and errors as in `shared_access`.

    Unknown: 16-byte loads of a warp with inactive lanes and an active lane 31, in whose lower half every
    active lane has its partner of the pair rule, but not all lanes are active. Everything else is exact on
    every recorded pattern.
    """
    requests = check_requests(addresses, width, op, active, arch, "shared")
    rule = shared_rule(
        "load" if op == "load_generic" else op, width, arch
    )  # the profiler knows no difference

    wavefronts = np.zeros(len(requests.addresses), np.int64)
    for rows, units, mask in requests.chunks(rule.unit):
        wavefronts[rows] = _wavefronts(units, mask, rule)
    fewest = _ceil_div(_bytes(requests.active, len(wavefronts), width, arch), arch.line_bytes) * rule.passes
    ideal = np.minimum(wavefronts, fewest)
    return SharedSource(wavefronts.reshape(requests.shape), ideal.reshape(requests.shape))


def copy_source_page(
    addresses: ArrayLike,
    origins: ArrayLike,
    width: int,
    active: ArrayLike | None = None,
    read: ArrayLike | None = None,
    arch: Arch = SM_90,
) -> SharedSource:
    """The Source page's shared-memory numbers of `cp.async.ca`; arguments and errors as in `copy_access`.

    Each group takes as many wavefronts as its worst lane has conflicts, plus one. Two lanes conflict if they
    read from the same banks of the cache or write to the same banks.
    """
    writes, reads = check_copies(addresses, origins, width, active, read, arch)
    slots = arch.line_bytes // width
    wavefronts = np.zeros(len(writes.addresses), np.int64)
    for (rows, to, on), (_, source, reading) in zip(writes.chunks(width), reads.chunks(width), strict=True):
        meet = _same_slot(to, on, slots) | _same_slot(source, on if reading is None else reading, slots)
        wavefronts[rows] = np.count_nonzero(meet, axis=3).max(axis=2).sum(axis=1)
    fewest = _ceil_div(_bytes(writes.active, len(wavefronts), width, arch), arch.line_bytes)
    ideal = np.minimum(wavefronts, fewest)
    return SharedSource(wavefronts.reshape(writes.shape), ideal.reshape(writes.shape))


def bypass_source_page(
    addresses: ArrayLike,
    origins: ArrayLike,
    active: ArrayLike | None = None,
    read: ArrayLike | None = None,
    arch: Arch = SM_90,
) -> tuple[SharedSource, GlobalSource]:
    """The Source page's numbers of `cp.async.cg`; arguments and errors as in `copy_access`.

    Lanes that a guard switches off count, too, with the addresses that they hold: give them as active. Of
    lanes that write to the same 16 bytes only the first counts. A move takes 32 bytes, or half of them, to 32
    bytes of shared memory; sectors are moves. Moves of one kind (`_in_turn`) take as many wavefronts as there
    are of them from the same 32 bytes.

    Unknown: wavefronts if a lane writes zeros, because the profiler uses the address that is not read, or if
    two lanes copy from one place to the same 128 bytes. Everything else is exact on every recorded pattern.
    """
    writes, reads = check_copies(addresses, origins, BYPASS_BYTES, active, read, arch)
    wavefronts, sectors, lanes = np.zeros((3, len(writes.addresses)), np.int64)
    for (rows, to, on), (_, source, reading) in zip(
        writes.chunks(BYPASS_BYTES), reads.chunks(BYPASS_BYTES), strict=True
    ):
        executing = np.ones(to.shape, np.bool_) if on is None else on
        live = first(equal(to), executing if reading is None else reading)
        moves, half = _moves(source, to, live)
        lanes[rows], sectors[rows] = np.count_nonzero(live, axis=1), np.count_nonzero(moves, axis=1)
        wavefronts[rows] = np.where(_read_once(source, to, live), _in_turn(source, to, moves, half), UNKNOWN)
        if reading is not None:
            zeros = (executing & ~reading).any(axis=1)
            wavefronts[rows] = np.where(zeros, UNKNOWN, wavefronts[rows])
    fewest, asked = (_ceil_div(lanes * BYPASS_BYTES, size) for size in (arch.line_bytes, arch.sector_bytes))
    lines = global_access(origins, BYPASS_BYTES, "cp_async_cg", reads.active, arch).lines
    shape = writes.shape
    return (
        SharedSource(wavefronts.reshape(shape), np.minimum(wavefronts, fewest).reshape(shape)),
        GlobalSource(sectors.reshape(shape), np.minimum(sectors, asked).reshape(shape), lines),
    )


def _moves(source: Lanes, to: Lanes, live: Mask) -> tuple[Mask, Lanes]:
    """(the first lane of each move, which half of the 32 bytes it moves: 0, 1, or 2 for both) [m, lane]."""
    one_sector = together(live) & equal(_over(source, 2)) & equal(_over(to, 2))
    other_half: Mask = one_sector & ~equal(source)
    leads: Mask = live & ~(other_half & EARLIER).any(axis=2)
    half: Lanes = np.where(other_half.any(axis=2), source.dtype.type(2), source % source.dtype.type(2))
    return leads, half


def _in_turn(source: Lanes, to: Lanes, moves: Mask, half: Lanes) -> Counts:
    """Wavefronts of moves [m].

    Those of one kind share them: from one line, to the same 128 bytes, of the same half, and between 16-byte
    places whose numbers differ in the same ones of their two low bits.
    """
    differs: Lanes = (source ^ to.astype(source.dtype)) % source.dtype.type(4)
    alike = together(moves) & equal(_over(source, 8)) & equal(_over(to, 8))
    alike = alike & equal(half) & equal(differs)
    turns = np.count_nonzero(alike & equal(_over(source, 2)), axis=2)
    most = np.where(alike, turns[:, None, :], 0).max(axis=2)
    found: Counts = np.where(first(alike, moves), most, 0).sum(axis=1)
    return found


def _read_once(source: Lanes, to: Lanes, live: Mask) -> Mask:
    """Whether no two lanes copy from one place to the same 128 bytes [m]."""
    again = together(live) & equal(source) & equal(_over(to, 8)) & EARLIER
    once: Mask = np.count_nonzero(again, axis=(1, 2)) == 0
    return once


def _over(units: Lanes, count: int) -> Lanes:
    """The number of the group of `count` units that each is in."""
    number: Lanes = units // units.dtype.type(count)
    return number


def _same_slot(units: Lanes, active: Mask | None, slots: int) -> Mask:
    """Which lanes of a group use the same banks: bool [m, groups, lane, lane]."""
    shape = (len(units), -1, slots)
    keys = (units & units.dtype.type(slots - 1)).reshape(shape)
    return equal(keys) if active is None else equal(keys) & together(active.reshape(shape))


def _wavefronts(units: Lanes, active: Mask | None, rule: SharedRule) -> Counts:
    """As the hardware, but groups merge only if the merged group has no conflict."""
    apart = group_costs(units, active, rule, rule.lanes).astype(np.int64)
    if not rule.merges:
        alone: Counts = apart.sum(axis=1) * rule.passes
        return alone
    together = group_costs(units, active, rule, rule.widest).astype(np.int64)
    apart = apart.reshape(*together.shape, 2).sum(axis=2)
    on = None if active is None else active.reshape(-1, rule.widest)
    paired = pair_rule(units.reshape(-1, rule.widest), on).reshape(together.shape)
    if active is None or together.shape[1] == 1:
        wavefronts: Counts = np.where(paired & (together == 1), together, apart).sum(axis=1)
        return wavefronts
    return _with_idle_lanes(units, active, rule, paired, apart, together)


def _with_idle_lanes(
    units: Lanes, active: Mask, rule: SharedRule, paired: Mask, apart: Counts, together: Counts
) -> Counts:
    """16-byte loads, for which the profiler applies the pair rule to each half-warp separately [m].

    If lane 31 is inactive, it assumes the rule in the lower half. If it is active, an inactive partner breaks
    the rule there. If all active lanes access one address, it takes sixteen of them at a time, wherever they
    are. There is no known reason for any of this; it matches every recorded pattern.
    """
    lower, whole = units[:, : rule.widest], active[:, : rule.widest]
    last = active[:, -1]
    full = whole.all(axis=1)
    paired[:, 0] &= full
    paired[:, 0] |= ~last
    wavefronts: Counts = np.where(paired & (together == 1), together, apart).sum(axis=1)

    in_pairs = np.logical_or.reduce([_all_paired(lower, whole, distance) for distance in (1, 2)])
    wavefronts[in_pairs & ~full & last & (together[:, 0] == 1) & (apart[:, 0] == 2)] = UNKNOWN

    filled = fill_idle(units, active)
    one_address = (filled == filled[:, :1]).all(axis=1)
    lanes = np.count_nonzero(active, axis=1)
    return np.where(one_address, _ceil_div(lanes, rule.widest), wavefronts)


def _all_paired(units: Lanes, active: Mask, distance: int) -> Mask:
    """Whether every active lane i has lane i^distance active and at the same address [m]."""
    partner = np.arange(units.shape[1]) ^ distance
    paired: Mask = (~active | (active[:, partner] & (units == units[:, partner]))).all(axis=1)
    return paired


def global_source_page(
    addresses: ArrayLike, width: int, op: str = "load", active: ArrayLike | None = None, arch: Arch = SM_90
) -> GlobalSource:
    """The Source page's global-memory numbers; arguments and errors as in `global_access`."""
    cost = global_access(addresses, width, op, active, arch)
    requests = check_requests(addresses, width, op, active, arch, "global")
    asked = _ceil_div(_bytes(requests.active, len(requests.addresses), width, arch), arch.sector_bytes)
    return GlobalSource(cost.sectors, np.minimum(cost.sectors, asked.reshape(cost.sectors.shape)), cost.lines)


def _bytes(active: Mask | None, requests: int, width: int, arch: Arch) -> Counts:
    """Bytes that the active lanes access, counting shared ones for each lane."""
    lanes = np.full(requests, arch.warp) if active is None else np.count_nonzero(active, axis=1)
    return lanes * width


def _ceil_div(values: Counts, unit: int) -> Counts:
    return -(-values // unit)
