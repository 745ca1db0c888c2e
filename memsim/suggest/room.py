"""What a larger array costs in room: bytes of shared memory, and the blocks that fit on a multiprocessor.

In: a launch, bytes of a block, and a chip. Out: counts. Left out on purpose: registers, which may allow fewer
blocks than these.
"""

from __future__ import annotations

from memsim.arch import Arch
from memsim.launch import Launch


def resident_blocks(launch: Launch, shared_bytes: int, chip: Arch) -> int:
    """How many blocks with so much shared memory a multiprocessor holds at once, as far as that decides."""
    granule = chip.shared_granule_bytes
    each = -(-(shared_bytes + chip.shared_reserved_bytes) // granule) * granule
    by_warps = chip.resident_warps // launch.warps
    return min(chip.shared_multiprocessor_bytes // each, by_warps, chip.resident_blocks)


def fits(shared_bytes: int, launch: Launch, chip: Arch) -> bool:
    """Whether a block may have so much: less where all of it is declared, as no launch can ask for more."""
    limit = chip.shared_block_bytes if launch.shared_bytes else chip.static_shared_bytes
    return shared_bytes <= limit
