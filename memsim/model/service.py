"""How a warp's request to shared memory is served: group and wavefront of each lane, load of each bank.

Uses the same rules as `shared_access`; tests check that the results add up to its counts.

The order of a group's wavefronts is ours: words in the same bank are served in the order of the first lanes
that access them. The number of wavefronts was measured, their order was not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
from memsim.model.cp_async import copy_turns
from memsim.model.shared import SharedRule, partners_agree, shared_rule


@dataclass(frozen=True, slots=True, eq=False)
class Service:
    """How requests are served; int64 arrays.

    group [..., 32]: the lane's group, from 1; 0 for an inactive lane.

    wavefront [..., 32]: the wavefront that serves the lane, from 1 over the whole request; 0: inactive. A
    compare-and-swap takes each of them twice.

    lanes [...]: lanes per group.

    pairs [...]: the distance at which the pair rule holds and groups merge, 1 or 2; 0 if they do not merge.
    """

    group: Counts
    wavefront: Counts
    lanes: Counts
    pairs: Counts


@dataclass(frozen=True, slots=True, eq=False)
class BankLoad:
    """The load of the banks; int64 arrays (..., 32 banks).

    words: words that the bank serves, over all groups of the request. ways: the most of them in one group.
    Where lanes do not share (atomics, `cp.async`), each lane counts as a word of its own.
    """

    words: Counts
    ways: Counts


def serve_lanes(
    addresses: ArrayLike, width: int, op: str = "load", active: ArrayLike | None = None, arch: Arch = SM_90
) -> Service:
    """The group and the wavefront that serve each lane. Arguments and errors: as `shared_access`."""
    requests = check_requests(addresses, width, op, active, arch, "shared")
    rule = shared_rule(op, width, arch)
    group, wavefront = np.zeros((2, *requests.addresses.shape), np.int64)
    lanes, pairs = np.zeros((2, len(requests.addresses)), np.int64)
    for rows, units, mask in requests.chunks(rule.unit):
        pairs[rows] = _pair_distance(units, mask, rule)
        lanes[rows] = np.where(pairs[rows] > 0, rule.widest, rule.lanes)
        on = np.ones(units.shape, np.bool_) if mask is None else mask
        group[rows] = (np.arange(arch.warp) // lanes[rows, None] + 1) * on
        wavefront[rows] = _wavefronts(units, group[rows], rule)
    by_lane = (*requests.shape, arch.warp)
    return Service(
        group.reshape(by_lane),
        wavefront.reshape(by_lane),
        lanes.reshape(requests.shape),
        pairs.reshape(requests.shape),
    )


def serve_copies(
    addresses: ArrayLike,
    origins: ArrayLike,
    width: int,
    active: ArrayLike | None = None,
    read: ArrayLike | None = None,
    arch: Arch = SM_90,
) -> Service:
    """As `serve_lanes`, for `cp.async.ca`. Arguments and errors: as `copy_access`."""
    turns, lanes, shape = copy_turns(addresses, origins, width, active, read, arch)
    warp = turns.shape[1]
    by_group = turns.reshape(len(turns), warp // lanes, lanes)
    cost = by_group.max(axis=2)
    before = np.cumsum(cost, axis=1) - cost
    wavefront = np.where(by_group > 0, by_group + before[:, :, None], 0).reshape(*shape, warp)
    return Service(
        np.where(wavefront > 0, np.arange(warp) // lanes + 1, 0),
        wavefront,
        np.full(shape, lanes),
        np.zeros(shape, np.int64),
    )


def bank_load(
    addresses: ArrayLike, width: int, op: str = "load", active: ArrayLike | None = None, arch: Arch = SM_90
) -> BankLoad:
    """The number of words that each bank serves. Arguments and errors: as `shared_access`."""
    requests = check_requests(addresses, width, op, active, arch, "shared")
    rule = shared_rule(op, width, arch)
    words, ways = np.zeros((2, len(requests.addresses), arch.banks), np.int64)
    for rows, units, mask in requests.chunks(rule.unit):
        merged = _pair_distance(units, mask, rule) > 0
        for which, lanes in ((~merged, rule.lanes), (merged, rule.widest)):
            chosen = np.arange(len(requests.addresses))[rows][which]
            some = None if mask is None else mask[which]
            of_slots = _units_in_slots(units[which], some, rule, lanes)
            # The banks under a slot fill alike: an access is aligned, and as wide as the slot.
            of_banks = np.repeat(of_slots, arch.banks // rule.lanes, axis=2)
            words[chosen] = of_banks.sum(axis=1)
            ways[chosen] = of_banks.max(axis=1)
    by_bank = (*requests.shape, arch.banks)
    return BankLoad(words.reshape(by_bank), ways.reshape(by_bank))


def _pair_distance(units: Lanes, active: Mask | None, rule: SharedRule) -> Counts:
    """The distance at which the pair rule holds and groups merge; else 0."""
    if not rule.merges:
        return np.zeros(len(units), np.int64)
    near, far = (partners_agree(units, active, distance) for distance in (1, 2))
    return np.where(near, 1, np.where(far, 2, 0))


def _units_in_slots(units: Lanes, active: Mask | None, rule: SharedRule, lanes: int) -> NDArray[np.int64]:
    """The number of units that each slot serves in each group of `lanes` lanes [m, groups, slots]."""
    slots = rule.lanes
    rows = units.reshape(-1, lanes)
    on = np.ones(rows.shape, np.bool_) if active is None else active.reshape(-1, lanes)
    counted = on
    if rule.shares:
        rows = np.sort(fill_idle(rows, on), axis=1)
        counted = np.ones(rows.shape, np.bool_)
        counted[:, 1:] = rows[:, 1:] != rows[:, :-1]
        counted &= on.any(axis=1, keepdims=True)
    slot = (rows & rows.dtype.type(slots - 1)).astype(np.int64)
    place = np.arange(len(rows))[:, None] * slots + slot
    counts = np.bincount(place[counted], minlength=len(rows) * slots)
    return counts.reshape(len(units), units.shape[1] // lanes, slots)


def _wavefronts(units: Lanes, group: Counts, rule: SharedRule) -> Counts:
    """The wavefront of each lane [m, 32]; `group` is 0 for an inactive lane."""
    warp = units.shape[1]
    on = group > 0
    slot = units & units.dtype.type(rule.lanes - 1)
    meets = equal(group) & equal(slot) & together(on)  # lane i meets lane j: same group, same banks
    same = meets & (equal(units) if rule.shares else np.eye(warp, dtype=np.bool_))
    leader = same.argmax(axis=2)  # the first lane that asks for the same
    leads = first(same, on)
    turn = np.count_nonzero(meets & EARLIER & leads[:, None, :], axis=2)  # right for those that lead
    turn = np.take_along_axis(turn, leader, axis=1) + 1

    wavefront = np.zeros(units.shape, np.int64)
    before = np.zeros((len(units), 1), np.int64)
    for number in range(1, warp // rule.lanes + 1):
        inside = group == number
        wavefront += np.where(inside, before + turn, 0)
        before += np.where(inside, turn, 0).max(axis=1, keepdims=True)
    return wavefront
