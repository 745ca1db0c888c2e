"""The cost of a warp's request to shared memory: wavefronts, bank conflicts and ways; and the rounds of an
atomic that is a loop of a load and a compare-and-swap (`ATOMS.CAST.SPIN`).

Arbitration between warps and time are not modelled. Every rule here was measured on an H100 with one warp at
a time; see docs/model.md.

A round of such a loop tries the first lane of each bank, in two wavefronts and without a bank conflict,
whatever the others want; those go round again. 8 bytes per lane are tried by half-warps, one after the other,
so that the second one fails at a word that the first one has changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memsim.arch import SM_90, Arch, get_arch
from memsim.arch.units import LINE, WARP
from memsim.model.checked_requests import Counts, Lanes, Mask, check_requests, fill_idle
from memsim.model.operations import OPERATIONS

Small = NDArray[np.uint8]  # a group costs at most 32


@dataclass(frozen=True, slots=True, eq=False)
class SharedCost:
    """Cost of each request; int64 arrays of the leading shape of the addresses.

    wavefronts: passes through the banks, as `l1tex__data_pipe_lsu_wavefronts_mem_shared_op_*` counts.
    conflicts: wavefronts beyond one for each group of lanes, as
    `l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_*` counts. ways: the cost of the most expensive group;
    1 is conflict-free, 0 a request without active lanes. ideal: the fewest wavefronts that any layout of the
    same words could reach with this instruction and these lanes (docs/model.md has the definition).
    """

    wavefronts: Counts
    conflicts: Counts
    ways: Counts
    ideal: Counts


@dataclass(frozen=True, slots=True)
class SharedRule:
    """How one instruction is served.

    lanes: per group. merges: two neighbouring groups merge if the pair rule holds. shares: lanes that access
    the same word share it; otherwise each active lane counts. unit: bytes that a lane accesses, at least one
    bank's; a group covers the banks once. passes: how often every wavefront is taken; repeated ones are not
    conflicts.
    """

    lanes: int
    unit: int
    merges: bool
    shares: bool
    passes: int = 1

    @property
    def widest(self) -> int:
        """Lanes of the largest group that can be served together."""
        return 2 * self.lanes if self.merges else self.lanes


def shared_rule(op: str, width: int, arch: Arch) -> SharedRule:
    """The rule for `op` at `width` bytes per lane (both measured on `arch`). Source: docs/model.md."""
    unit, operation = max(width, arch.bank_bytes), OPERATIONS["shared", op]
    return SharedRule(
        lanes=arch.banks * arch.bank_bytes // unit,
        unit=unit,
        merges=operation.merges and width >= 8,
        shares=operation.shares,
        passes=operation.passes,
    )


def shared_access(
    addresses: ArrayLike,
    width: int,
    op: str = "load",
    active: ArrayLike | None = None,
    arch: Arch | str = SM_90,
) -> SharedCost:
    """Cost of warp requests to shared memory.

    Args:
        addresses: integers (..., 32), byte addresses or offsets, one row per warp request.
        width: bytes per lane: 1, 2, 4, 8 or 16; 16 for ldmatrix and stmatrix.
        op: load, store, atomic, reduction, atomic_inc, atomic_cas, ldmatrix, stmatrix or cp_async.
            For ldmatrix and stmatrix the active lanes are those that address rows: lanes 0-7 for .x1.
            atomic_inc: adding the constant 1 without a result, which has an instruction of its own.
            atomic_cas: compare and swap. With 8 bytes, atomic is an exchange; the other 64-bit
            operations are loops, which have no cost of their own. cp_async: `.ca` whose lanes read
            contiguous global memory; for others use `copy_access`.
        active: booleans that broadcast to (..., 32); None means all lanes. Addresses of inactive
            lanes are ignored.
        arch: the chip whose measured rules to use, or its name.

    Returns:
        SharedCost of int64 arrays (...).

    Raises:
        MemsimError: bad shape or type, unknown op or arch, a width not measured for that op,
            or an active lane that is not aligned to the width.
    """
    chip = get_arch(arch)
    requests = check_requests(addresses, width, op, active, chip, "shared")
    rule = shared_rule(op, width, chip)

    wavefronts, conflicts, ways, ideal = np.zeros((4, len(requests.addresses)), np.int64)
    for rows, units, mask in requests.chunks(rule.unit):
        costs, groups = serve(units, mask, rule)
        turns = costs.sum(axis=1, dtype=np.int64)
        wavefronts[rows] = turns * rule.passes
        conflicts[rows] = turns - groups
        ways[rows] = costs.max(axis=1)
        ideal[rows] = _ideal(units, mask, rule) * rule.passes
    return SharedCost(*(column.reshape(requests.shape) for column in (wavefronts, conflicts, ways, ideal)))


def serve(units: Lanes, active: Mask | None, rule: SharedRule) -> tuple[Small, Counts]:
    """Cost of each group [m, 32 / lanes] and the number of groups served [m], for units [m, 32].

    If groups merge, the costs of merged groups come first and the rest of the row is 0.
    """
    costs = group_costs(units, active, rule, rule.lanes)
    groups = np.count_nonzero(costs, axis=1)
    if not rule.merges:
        return costs, groups
    merged = pair_rule(units, active)
    if merged.any():
        some = None if active is None else active[merged]
        together = group_costs(units[merged], some, rule, rule.widest)
        costs[merged] = 0
        costs[merged, : together.shape[1]] = together
        groups[merged] = np.count_nonzero(together, axis=1)
    return costs, groups


def pair_rule(units: Lanes, active: Mask | None) -> Mask:
    """Whether neighbouring groups merge [m]: one condition over the whole row of lanes.

    Every active lane i has lane i^1 inactive or at the same address, or every active lane i has lane i^2
    inactive or at the same address. Documented by NVIDIA for CC 7.x loads, measured on 9.0.
    """
    return partners_agree(units, active, 1) | partners_agree(units, active, 2)


def partners_agree(units: Lanes, active: Mask | None, distance: int) -> Mask:
    """Whether every active lane i has lane i^distance inactive or at the same address [m]."""
    shape = (len(units), -1, 2, distance)
    pairs = units.reshape(shape)
    fits = pairs[:, :, 0] == pairs[:, :, 1]
    if active is not None:
        on = active.reshape(shape)
        fits |= ~(on[:, :, 0] & on[:, :, 1])
    agree: Mask = fits.all(axis=(1, 2))
    return agree


def group_costs(units: Lanes, active: Mask | None, rule: SharedRule, lanes: int) -> Small:
    """Cost of each group of `lanes` lanes, uint8 [m, groups]; 0 if no lane is active.

    A unit is aligned and as wide as a lane's access, so the banks under it are always equally loaded:
    counting units in each of `128 / unit` slots counts words in each bank.
    """
    slots = rule.lanes
    rows = units.reshape(-1, lanes)
    if not rule.shares:
        # Give each lane its own word in its bank, so that counting words counts lanes.
        own = np.arange(lanes, dtype=units.dtype) * units.dtype.type(slots)
        rows = (rows & units.dtype.type(slots - 1)) + own
    if active is None:
        return _most_in_a_slot(rows, slots).reshape(len(units), -1)

    on = active.reshape(-1, lanes)
    costs = _most_in_a_slot(fill_idle(rows, on), slots)
    costs *= on.any(axis=1)
    return costs.reshape(len(units), -1)


def _most_in_a_slot(units: Lanes, slots: int) -> Small:
    """The most distinct units of a row in one slot (unit modulo slots), uint8 [rows]."""
    slot_bits = slots.bit_length() - 1
    word_bits = units.dtype.type(units.dtype.itemsize * 8 - slot_bits)
    keys = units << word_bits | units >> units.dtype.type(slot_bits)  # slot first, then the unit in it
    keys.sort(axis=1)
    lanes = np.ascontiguousarray(keys.T)
    change = lanes[1:] ^ lanes[:-1]
    new_unit, same_slot = change != 0, change >> word_bits == 0

    count: Small = np.ones(len(units), np.uint8)
    most: Small = count.copy()
    for lane in range(len(new_unit)):
        count *= same_slot[lane]
        count += new_unit[lane]
        np.maximum(most, count, out=most)
    return most


def _ideal(units: Lanes, active: Mask | None, rule: SharedRule) -> Counts:
    """max(ceil(distinct words / 32), groups with an active lane that the hardware never merges)."""
    groups = np.full(len(units), units.shape[1] // rule.widest)
    if active is not None:
        groups = np.count_nonzero(active.reshape(len(units), -1, rule.widest).any(axis=2), axis=1)
    if not rule.merges:
        return groups  # a group's words fit in one pass over the banks: the first term is never larger
    if active is not None:
        units = fill_idle(units, active)
    in_order = np.sort(units, axis=1)
    distinct = 1 + np.count_nonzero(in_order[:, 1:] != in_order[:, :-1], axis=1)
    passes: Counts = np.maximum(groups, -(-distinct // rule.lanes))
    return passes * (groups > 0)


#: Bytes per lane that were measured.
SWAP_WIDTHS = (4, 8)
#: Wavefronts of a round for each group of lanes that are tried together.
SWAP_PASSES = 2


class Rounds(NamedTuple):
    """Of each request [n], int64: rounds; wavefronts of the compare-and-swaps; wavefronts and conflicts
    of the loads; lanes that go round, summed over the rounds.
    """

    rounds: Counts
    swaps: Counts
    loads: Counts
    conflicts: Counts
    lanes: Counts


def rounds_of_one_warp(
    addresses: np.ndarray, width: int, active: np.ndarray, changes: bool, arch: Arch = SM_90
) -> Rounds:
    """Rounds of requests [n, 32] if no other warp updates these words at the same time.

    changes: an update changes the word; else (0 is added) both half-warps succeed at one word.
    """
    together = LINE // width if width > 4 else WARP
    left = active.copy()
    found = Rounds(*np.zeros((len(Rounds._fields), len(left)), np.int64))
    while left.any():
        rows = np.flatnonzero(left.any(axis=1))
        on, words = left[rows], addresses[rows] // width
        cost = shared_access(addresses[rows], width, "load", on, arch)
        found.rounds[rows] += 1
        found.swaps[rows] += SWAP_PASSES * on.reshape(len(rows), -1, together).any(axis=2).sum(axis=1)
        found.loads[rows] += cost.wavefronts
        found.conflicts[rows] += cost.conflicts
        found.lanes[rows] += np.count_nonzero(on, axis=1)
        bank = (words % together).reshape(len(rows), -1, together)
        held = on.reshape(bank.shape)
        meets = (bank[..., :, None] == bank[..., None, :]) & held[..., None, :]
        tried = (held & ~(meets & np.tri(together, k=-1, dtype=np.bool_)).any(axis=3)).reshape(on.shape)
        if changes and together < WARP:
            first, second = tried[:, :together], tried[:, together:]
            taken = (words[:, together:, None] == words[:, None, :together]) & first[:, None, :]
            tried = np.concatenate((first, second & ~taken.any(axis=2)), axis=1)
        left[rows] = on & ~tried
    return found


def costliest_round(
    addresses: np.ndarray, width: int, active: np.ndarray, arch: Arch = SM_90
) -> tuple[int, int, int, int]:
    """The most wavefronts of a compare-and-swap, wavefronts and conflicts of a load, and lanes, in any
    round.
    """
    cost = shared_access(addresses, width, "load", active, arch)
    groups = WARP * width // LINE
    return (
        SWAP_PASSES * groups * int(active.any()),
        int(cost.wavefronts.max(initial=0)),
        int(cost.conflicts.max(initial=0)),
        int(np.count_nonzero(active, axis=1).max(initial=0)),
    )
