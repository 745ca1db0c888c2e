"""The cost of a larger array: bytes of shared memory, and resident blocks per multiprocessor.

Without machine code the number of registers is unknown; they may limit resident blocks further.
"""

from __future__ import annotations

from memsim.arch import Arch
from memsim.launch import Launch
from memsim.model.occupancy import Needs, occupancy
from memsim.trace.trace import Trace


def resident_blocks(trace: Trace, shared_bytes: int, chip: Arch) -> int:
    """The number of blocks with so much shared memory that can be resident on a multiprocessor."""
    taken = trace.resources
    needs = Needs(trace.launch.threads, 0, shared_bytes)
    if taken is not None:
        needs = Needs(trace.launch.threads, taken.registers, shared_bytes, taken.barriers)
    return occupancy(needs, chip).blocks


def shared_end(trace: Trace) -> int:
    """The end of the last shared array, in bytes."""
    return max((first + size for _, space, first, size in trace.arrays if space == "shared"), default=0)


def fits(shared_bytes: int, launch: Launch, chip: Arch) -> bool:
    """Whether a block can have so much shared memory; static shared memory has a lower limit than dynamic."""
    limit = chip.shared_block_bytes if launch.shared_bytes else chip.static_shared_bytes
    return shared_bytes <= limit
