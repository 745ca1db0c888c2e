"""What calls of printf ask of L1 and L2, as a profiler counts it: the driver has their code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from memsim.arch.units import WARP

#: What the calls are called where they are heard.
CALL = "printf call"
#: Lanes whose bytes of local memory lie in one sector.
GROUP = 8
#: Sectors: that each lane stores to, that a warp loads of its text, and of local memory that each eight lanes
#: store to and load. Measured, means: eight texts of 1 to 64 bytes without and with arguments, by 1 to 32
#: lanes of one and of four warps (lab/time/prints.cu, docs/validation/prints.json).
OF_LANE, OF_WARP, STORED_OF_GROUP, LOADED_OF_GROUP = 209, 65, 78, 437
#: Of these not found in L1: of each lane, of each warp, and of each eight lanes when they call for the first
#: time and again.
MISSED_OF_LANE, MISSED_OF_WARP, MISSED_FIRST, MISSED_AGAIN = 5, 3, 63, 2


class Calls(NamedTuple):
    """Warps call. warps: their numbers [n]. lanes: bits of those that call [n]."""

    warps: np.ndarray
    lanes: np.ndarray


class Printed(NamedTuple):
    """Sectors that calls ask L1 for, that it has, and that go to L2, to be written and read."""

    sectors: int = 0
    found: int = 0
    written: int = 0
    read: int = 0


def traffic_of_prints(calls: Iterable[Calls], warps_of_wave: int) -> Printed:
    """All together. warps_of_wave: those that are resident at once; later ones have their local memory."""
    total = np.zeros(len(Printed._fields), np.int64)
    known: set[tuple[int, int]] = set()
    for warps, words in calls:
        for warp, word in zip(warps.tolist(), words.tolist()):
            groups = {lane // GROUP for lane in range(WARP) if word >> lane & 1}
            if not groups:
                continue
            new = {(warp % max(warps_of_wave, 1), group) for group in groups} - known
            known |= new
            lanes = word.bit_count()
            sectors = OF_LANE * lanes + OF_WARP + (STORED_OF_GROUP + LOADED_OF_GROUP) * len(groups)
            missed = MISSED_OF_LANE * lanes + MISSED_OF_WARP
            missed += MISSED_FIRST * len(new) + MISSED_AGAIN * (len(groups) - len(new))
            written = OF_LANE * lanes + STORED_OF_GROUP * len(groups)
            total += sectors, sectors - missed, written, MISSED_OF_WARP
    return Printed(*total.tolist())
