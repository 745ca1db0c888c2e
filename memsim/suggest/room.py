"""What a larger array costs in room: bytes of shared memory, and the blocks that fit on a multiprocessor.

In: a trace, bytes of a block, and a chip. Out: counts. Where no machine code was read registers are not
known, and may allow fewer blocks than these.
"""

from __future__ import annotations

from memsim.arch import Arch
from memsim.launch import Launch
from memsim.model.occupancy import Needs, occupancy
from memsim.trace.trace import Trace


def resident_blocks(trace: Trace, shared_bytes: int, chip: Arch) -> int:
    """How many blocks with so much shared memory a multiprocessor holds at once."""
    taken = trace.resources
    needs = Needs(trace.launch.threads, 0, shared_bytes)
    if taken is not None:
        needs = Needs(trace.launch.threads, taken.registers, shared_bytes, taken.barriers)
    return occupancy(needs, chip).blocks


def fits(shared_bytes: int, launch: Launch, chip: Arch) -> bool:
    """Whether a block may have so much: less where all of it is declared, as no launch can ask for more."""
    limit = chip.shared_block_bytes if launch.shared_bytes else chip.static_shared_bytes
    return shared_bytes <= limit
