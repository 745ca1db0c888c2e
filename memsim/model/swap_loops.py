"""Rounds of an atomic on shared memory that is a loop of a load and a compare-and-swap (`ATOMS.CAST.SPIN`).

A round tries the first lane of each bank, in two wavefronts and without a bank conflict, whatever the others
want; those go round again. 8 bytes per lane are tried by half-warps, one after the other, so that the second
one fails at a word that the first one has changed. Source: docs/model.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from memsim.arch import SM_90, Arch
from memsim.arch.units import LINE, WARP
from memsim.model.checked_requests import Counts
from memsim.model.shared import shared_access

#: Bytes per lane that were measured.
WIDTHS = (4, 8)
#: Wavefronts of a round for each group of lanes that are tried together.
PASSES = 2


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
        found.swaps[rows] += PASSES * on.reshape(len(rows), -1, together).any(axis=2).sum(axis=1)
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
        PASSES * groups * int(active.any()),
        int(cost.wavefronts.max(initial=0)),
        int(cost.conflicts.max(initial=0)),
        int(np.count_nonzero(active, axis=1).max(initial=0)),
    )
