"""How long L1's tag stage needs for a request: lines of the same quarter of its sets wait for each other.

Source: `kernel_v1`, whose requests ask for 32 lines that are 4,096 bytes apart, takes as many cycles; the
loop `ldg_lines` (traces/*/rates/) with lines side by side a quarter. That a line's quarter is its lowest two
bits is a guess that both fit ?
"""

from __future__ import annotations

import numpy as np

from memsim.arch.units import LINE
from memsim.trace.trace import Trace

#: Lines whose tags are looked up in a cycle, if no two are of a quarter.
QUARTERS = 4
#: No line.
_NONE = -1


def lookup_cycles(addresses: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Cycles for each request, int64 [m]. addresses: bytes, int64 [m, 32]; active: bool [m, 32]."""
    lines = np.sort(np.where(active, addresses // LINE, _NONE), axis=1)
    is_first = np.diff(lines, axis=1, prepend=_NONE - 1) != 0
    counted = is_first & (lines != _NONE)
    found: np.ndarray = np.max([(counted & (lines % QUARTERS == q)).sum(1) for q in range(QUARTERS)], axis=0)
    return found


def lookups_by_address(trace: Trace) -> dict[int, int]:
    """Cycles of the tag stage for the requests to global memory of each instruction, by its address."""
    found: dict[int, int] = {}
    for number, site in enumerate(trace.sites):
        if site.space == "global":
            rows = np.flatnonzero(trace.site == number)
            cycles = lookup_cycles(trace.addresses[rows], trace.active[rows])
            found[site.address] = found.get(site.address, 0) + int(cycles @ trace.count[rows])
    return found
