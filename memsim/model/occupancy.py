"""Occupancy: resident blocks per multiprocessor, what limits them, and what would make room for one more.

Not modelled: clusters, which may allow fewer, and `cudaFuncAttributePreferredSharedMemoryCarveout`.

Source: NVIDIA's occupancy calculator, cuda_occupancy.h of CUDA 13.0; on an H200 equal to ncu's limits
(`launch__occupancy_limit_*`) of 537 launches, with the shared memory configuration that the driver chose for
each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from memsim.arch import Arch

MOST_REGISTERS = 255  # that an instruction can name


@dataclass(frozen=True, slots=True)
class Needs:
    """The resources that a block needs.

    threads: of a block. registers: per thread, as the compiler allocated them. shared_bytes: static and
    dynamic, without what the system reserves. barriers: named ones; `__syncthreads` uses one.
    """

    threads: int
    registers: int
    shared_bytes: int
    barriers: int = 1


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Resident blocks.

    limits: resource -> blocks that it allows; None if the kernel does not use it. warps: of a block.
    most_warps: that can be resident on a multiprocessor.
    """

    needs: Needs
    limits: dict[str, int | None]
    warps: int
    most_warps: int

    @property
    def blocks(self) -> int:
        """Resident blocks per multiprocessor; 0: the launch fails."""
        return min(limit for limit in self.limits.values() if limit is not None)

    @property
    def limited_by(self) -> tuple[str, ...]:
        """The resources that set the limit."""
        return tuple(name for name, limit in self.limits.items() if limit == self.blocks)

    @property
    def share(self) -> float:
        """Resident warps relative to the maximum, 0 to 1: ncu's theoretical occupancy."""
        return self.blocks * self.warps / self.most_warps


def occupancy(needs: Needs, chip: Arch) -> Occupancy:
    """Resident blocks with such needs on a multiprocessor of `chip`."""
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
    """The smallest reductions that make more blocks resident: (reduced needs, resident blocks).

    Of registers and of shared memory separately; omitted if that does not help.
    """
    now = occupancy(needs, chip).blocks
    found = []
    for registers in range(min(needs.registers - 1, MOST_REGISTERS), 0, -1):
        less = replace(needs, registers=registers)
        if occupancy(less, chip).blocks > now:
            found.append((less, occupancy(less, chip).blocks))
            break
    granule = chip.shared_granule_bytes
    most = _allocated(min(needs.shared_bytes, chip.shared_block_bytes + granule), chip)
    for total in range(most - granule, 0, -granule):
        less = replace(needs, shared_bytes=max(total - chip.shared_reserved_bytes, 0))
        if occupancy(less, chip).blocks > now:
            found.append((less, occupancy(less, chip).blocks))
            break
        if total <= chip.shared_reserved_bytes:
            break
    return tuple(found)


def room_left(needs: Needs, chip: Arch) -> Needs:
    """The most registers, and the most shared memory, with which as many blocks are resident as now.

    Each by itself: with both, fewer may be.
    """
    blocks = occupancy(needs, chip).blocks
    registers = needs.registers
    while (
        registers < MOST_REGISTERS
        and occupancy(replace(needs, registers=registers + 1), chip).blocks == blocks
    ):
        registers += 1
    portion = chip.shared_multiprocessor_bytes // blocks // chip.shared_granule_bytes
    shared = portion * chip.shared_granule_bytes - chip.shared_reserved_bytes
    return replace(needs, registers=registers, shared_bytes=min(shared, chip.shared_block_bytes))


def _allocated(shared_bytes: int, chip: Arch) -> int:
    """A block's shared memory with the system's part, in whole allocation units."""
    granule = chip.shared_granule_bytes
    return -(-(shared_bytes + chip.shared_reserved_bytes) // granule) * granule


def _by_shared(shared_bytes: int, chip: Arch) -> int | None:
    if shared_bytes > chip.shared_block_bytes:
        return 0
    taken = _allocated(shared_bytes, chip)
    return chip.shared_multiprocessor_bytes // taken if taken else None


def _by_registers(registers: int, warps: int, chip: Arch) -> int | None:
    """Each partition allocates registers to whole warps."""
    granule, partitions = chip.register_granule, chip.partitions
    of_warp = -(-registers * chip.warp // granule) * granule
    if not of_warp:
        return None
    return chip.registers // partitions // of_warp * partitions // warps
