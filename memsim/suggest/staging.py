"""Staging badly coalesced global accesses in shared memory: the block moves each sector once and reorders in
a tile.

A `Staging` is a row of global loads or stores that moves fewer sectors that way, counted on one block's
requests. It makes no edit. Data must fit into the remaining shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memsim.analysis import BADLY_COALESCED, Analysis, SiteCounts
from memsim.suggest.first_block import is_badly_coalesced
from memsim.suggest.room import fits, shared_end


@dataclass(frozen=True, slots=True)
class Staging:
    """A row of the analysis whose data could be staged in shared memory. site: its number.

    sectors: of the first block, before and after. room: bytes of shared memory that the block's data take.
    """

    site: SiteCounts
    sectors: tuple[int, int]
    room: int


def staging(block: Analysis) -> tuple[Staging, ...]:
    """The rows that move fewer sectors if every sector that the block touches is moved once."""
    trace, chip = block.trace, block.arch
    used = shared_end(trace)
    found = []
    for number, site in enumerate(block.sites):
        if not is_badly_coalesced(site) or site.sectors is None:
            continue
        rows = block.requests_of_sites[number]
        touched = trace.addresses[rows][trace.active[rows]]
        sectors = len(np.unique(touched // chip.sector_bytes))  # an aligned access is within one sector
        room = len(np.unique(touched)) * site.width
        saves = site.sectors - sectors >= BADLY_COALESCED * site.sectors
        if saves and fits(used + room, trace.launch, chip):
            found.append(Staging(site, (site.sectors, sectors), room))
    return tuple(found)
