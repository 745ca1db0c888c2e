"""What the device says of itself: the attributes of `cuDeviceGetAttribute`, by their numbers in cuda.h."""

from __future__ import annotations

from memsim.arch import Arch
from memsim.arch.chip import chip_number
from memsim.launch import MAX_BLOCK, MAX_GRID, MAX_THREADS


def device_name(chip: Arch) -> str:
    """The name that programs print."""
    return f"memsim {chip.name} (no GPU)"


def device_attributes(chip: Arch) -> dict[int, int]:
    """Attribute -> value; what is not here is 0.

    Sizes of the chip are `chip`'s, others those of the CUDA C++ Programming Guide ("Technical Specifications
    per Compute Capability"). Clocks and buses are of no machine: 1 GHz, which no time is made of, and 1,024
    bits.
    """
    major, minor = divmod(chip_number(chip.name), 10)
    wide = {21: 131_072, 22: 131_072, 23: 65_536, 24: 16_384, 25: 16_384, 26: 16_384}  # textures
    return wide | {
        1: MAX_THREADS,
        **dict(zip((2, 3, 4), MAX_BLOCK)),
        **dict(zip((5, 6, 7), MAX_GRID)),
        8: chip.static_shared_bytes,
        9: 65_536,  # constant memory
        10: chip.warp,
        11: 2**31 - 1,  # pitch
        12: chip.registers,
        13: 1_000_000,  # kHz
        14: 512,  # alignment of textures
        15: 1,  # copies beside kernels
        16: chip.multiprocessors,
        19: 1,  # host memory is mapped
        30: 512,  # alignment of surfaces
        31: 1,  # concurrent kernels
        36: 1_000_000,  # kHz
        37: 1_024,  # bits
        38: chip.sheet.l2,
        39: chip.resident_warps * chip.warp,
        40: 1,  # copy engines
        41: 1,  # unified addressing
        51: 32,  # alignment of a texture's rows
        75: major,
        76: minor,
        78: 1,  # priorities of streams
        79: 1,  # global memory in L1
        80: 1,  # local memory in L1
        81: chip.shared_multiprocessor_bytes,
        82: chip.registers,
        83: 1,  # managed memory
        87: 2,  # float to double
        89: 1,  # managed memory beside kernels
        90: 1,  # preemption
        95: 1,  # cooperative launches
        97: chip.shared_block_bytes,
        102: 1,  # virtual memory management
        106: chip.resident_blocks,
        111: chip.shared_reserved_bytes,
        115: 1,  # pools of memory
        120: int(chip.front.in_cluster is not None),
    }
