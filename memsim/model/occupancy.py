"""How many blocks a multiprocessor holds at once, what limits that, and what would make room for one more.

In: what a block needs, and a chip. Out: `Occupancy`, with the limits that ncu calls
`launch__occupancy_limit_*`. Left out on purpose: clusters, of which fewer may fit, and a preference for more
L1 cache than the launch leaves (`cudaFuncAttributePreferredSharedMemoryCarveout`).

Source: NVIDIA's occupancy calculator, cuda_occupancy.h of CUDA 13.0; on an H200 equal to ncu's limits of 537
launches, with the shared memory that the driver had set aside for each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from memsim.arch import Arch

MOST_REGISTERS = 255  # that an instruction can name


@dataclass(frozen=True, slots=True)
class Needs:
    """What a block takes of a multiprocessor.

    threads: of a block. registers: of a thread, as the compiler gave them out. shared_bytes: static and
    dynamic together, without what the system reserves. barriers: named ones, `__syncthreads` has one.
    """

    threads: int
    registers: int
    shared_bytes: int
    barriers: int = 1


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Resident blocks.

    limits: resource -> blocks that it allows; None where the kernel needs nothing of it. warps: of a block.
    most_warps: that a multiprocessor holds.
    """

    needs: Needs
    limits: dict[str, int | None]
    warps: int
    most_warps: int

    @property
    def blocks(self) -> int:
        """Resident blocks of a multiprocessor; 0: the launch is refused."""
        return min(limit for limit in self.limits.values() if limit is not None)

    @property
    def limited_by(self) -> tuple[str, ...]:
        """The resources that allow no more."""
        return tuple(name for name, limit in self.limits.items() if limit == self.blocks)

    @property
    def share(self) -> float:
        """Resident warps of those that there is room for, 0 to 1: ncu's theoretical occupancy."""
        return self.blocks * self.warps / self.most_warps


def occupancy(needs: Needs, chip: Arch) -> Occupancy:
    """How many blocks with such needs a multiprocessor of `chip` holds at once."""
    warps = -(-needs.threads // chip.warp)
    limits: dict[str, int | None] = {
        "registers": _by_registers(needs.registers, warps, chip),
        "shared memory": _by_shared(needs.shared_bytes, chip),
        "warps": chip.resident_warps // warps,
        "blocks": chip.resident_blocks,
        "barriers": min(chip.resident_barriers // max(needs.barriers, 1), chip.resident_blocks),
    }
    return Occupancy(needs, limits, warps, chip.resident_warps)


def next_cliffs(needs: Needs, chip: Arch) -> tuple[tuple[Needs, int], ...]:
    """The least that would have to go so that more blocks fit: (needs with it gone, resident blocks).

    Of registers and of shared memory, each alone; none where that does not help.
    """
    now = occupancy(needs, chip).blocks
    found = []
    for registers in range(min(needs.registers - 1, MOST_REGISTERS), 0, -1):
        less = replace(needs, registers=registers)
        if occupancy(less, chip).blocks > now:
            found.append((less, occupancy(less, chip).blocks))
            break
    granule = chip.shared_granule_bytes
    most = _portion(min(needs.shared_bytes, chip.shared_block_bytes + granule), chip)
    for total in range(most - granule, 0, -granule):
        less = replace(needs, shared_bytes=max(total - chip.shared_reserved_bytes, 0))
        if occupancy(less, chip).blocks > now:
            found.append((less, occupancy(less, chip).blocks))
            break
        if total <= chip.shared_reserved_bytes:
            break
    return tuple(found)


def _portion(shared_bytes: int, chip: Arch) -> int:
    """What a block's shared memory takes, with the system's part, in whole portions."""
    granule = chip.shared_granule_bytes
    return -(-(shared_bytes + chip.shared_reserved_bytes) // granule) * granule


def _by_shared(shared_bytes: int, chip: Arch) -> int | None:
    if shared_bytes > chip.shared_block_bytes:
        return 0
    taken = _portion(shared_bytes, chip)
    return chip.shared_multiprocessor_bytes // taken if taken else None


def _by_registers(registers: int, warps: int, chip: Arch) -> int | None:
    """Each partition gives registers to whole warps; the check of a launch takes all partitions as used."""
    granule, partitions = chip.register_granule, chip.partitions
    of_warp = -(-registers * chip.warp // granule) * granule
    if not of_warp:
        return None
    if of_warp * -(-warps // partitions) * partitions > chip.registers:
        return 0
    return chip.registers // partitions // of_warp * partitions // warps
